// A machine with something on it that works for the coordinator: a worker of the product, or a program that only makes calls.
import type { RunId, WorkerId } from "../../src/base/ids.ts";
import type { Journal } from "./journal.ts";
import type { Victim } from "./nemesis.ts";
import type { NodeOptions } from "./node.ts";
import { SimNode } from "./node.ts";
import type { SimProcess } from "./process.ts";
import { STABLE_VERSION } from "./release-settings.ts";
import type { Settings } from "./settings.ts";
import { SimBackend } from "./sim-backend.ts";
import type { SimBackendOptions } from "./sim-backend.ts";
import type { Services, Tap } from "./sim-transport.ts";
import { SimTransport } from "./sim-transport.ts";
import type { Witness } from "./witness.ts";

export interface WorkerMachineOptions extends NodeOptions {
  readonly witness: Witness;
  readonly journal: Journal;
  readonly settings: Settings;
  readonly runId: RunId;
  readonly number: number;
  readonly workerId: WorkerId;
  readonly taps: readonly Tap[];
  readonly addresses: readonly string[];
  readonly servicesOf: (server: SimProcess) => Services | undefined;
}

const RESTART_MS = [100, 4_000] as const;

export abstract class WorkerMachine extends SimNode implements Victim {
  readonly #options: WorkerMachineOptions;

  constructor(options: WorkerMachineOptions, letter: string, clockRate?: number) {
    const { witness, number } = options;
    super(options, `${letter}${number}`, {
      restartMs: RESTART_MS,
      onLost: () => witness.workerDied(),
      ...(clockRate !== undefined && { clockRate }),
    });
    this.#options = options;
  }

  protected override run(process: SimProcess): void {
    const { witness, workerId } = this.#options;
    witness.knows(process, workerId);
  }

  abstract preempt(leadMs: number): void;

  abstract putAtRisk(): void;

  losePower(): void {
    if (this.process !== undefined) this.goDark(this.process);
  }

  heal(): void {
    this.process?.goOn();
  }

  /** A way to the coordinator, with the certificate of this worker. */
  protected connect(process: SimProcess): SimTransport["transport"] {
    const { network, runId, workerId, servicesOf, taps, addresses } = this.#options;
    const identity = { runId, role: "worker", id: workerId } as const;
    return new SimTransport({ network, client: process, identity, servicesOf, taps, addresses }).transport;
  }

  protected backend(
    process: SimProcess,
    parts: Partial<Pick<SimBackendOptions, "beginsUnasked" | "version" | "badness" | "actors">> = {},
  ): SimBackend {
    const { world, journal, witness, settings } = this.#options;
    const { loadingChance } = settings;
    return new SimBackend({
      ...{ world, process, journal, loadingChance, version: STABLE_VERSION, ...parts },
      onStart: (execution) => witness.started(execution),
      onKilled: () => this.kill(),
    });
  }
}
