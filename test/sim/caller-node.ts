// A machine with a worker on it that only makes calls. It keeps nothing: what a process of it had is gone with the process.
import type { RunId, WorkerId } from "../../src/base/ids.ts";
import { newUlid, ulidToBytes } from "../../src/base/ids.ts";
import type { IncarnationId } from "../../src/base/ids.ts";
import { PowerLossStore } from "../support/power-loss-store.ts";
import { Caller } from "./caller.ts";
import type { Journal } from "./journal.ts";
import type { Victim } from "./nemesis.ts";
import type { Network } from "./network.ts";
import type { Machine } from "./process.ts";
import { SimProcess } from "./process.ts";
import type { Settings } from "./settings.ts";
import { SimBackend } from "./sim-backend.ts";
import type { Services, Tap } from "./sim-transport.ts";
import { SimTransport } from "./sim-transport.ts";
import type { Witness } from "./witness.ts";
import type { World } from "./world.ts";
import { between, happens } from "./world.ts";

const RESTART_MIN_MS = 100;
const RESTART_MAX_MS = 4_000;
const SILENT_CHANCE = 0.3;
const LATE_CHANCE = 0.3;
const LATE_MAX_MS = 15_000;
const GIVES_UP_CHANCE = 0.5;

export interface CallerNodeOptions {
  readonly world: World;
  readonly network: Network;
  readonly witness: Witness;
  readonly journal: Journal;
  readonly settings: Settings;
  readonly runId: RunId;
  readonly number: number;
  readonly workerId: WorkerId;
  readonly taps: readonly Tap[];
  readonly servicesOf: (server: SimProcess) => Services | undefined;
}

export class CallerNode implements Victim {
  readonly machine: Machine;
  readonly #options: CallerNodeOptions;
  #started = 0;
  #process: SimProcess | undefined;

  constructor(options: CallerNodeOptions) {
    this.#options = options;
    this.machine = { name: `u${options.number}`, disk: new PowerLossStore(), wallOffsetMs: 0, clockRate: 1 };
  }

  get process(): SimProcess | undefined {
    return this.#process?.isAlive === true ? this.#process : undefined;
  }

  start(): void {
    const { world, settings, runId, workerId, network, taps, servicesOf, witness, journal } = this.#options;
    const process = new SimProcess(world, this.machine, ++this.#started);
    this.#process = process;
    witness.knows(process, workerId);
    process.say("starts");
    const { clock, random } = process;
    // It has no disk to remember the last one by: its clock is set before it starts.
    const wall = { ...clock, wallMs: () => clock.wallMs() - this.machine.wallOffsetMs };
    const worker = {
      workerId: ulidToBytes(workerId),
      incarnation: ulidToBytes(newUlid<IncarnationId>(wall, random)),
    };
    const identity = { runId, role: "worker", id: workerId } as const;
    const { transport } = new SimTransport({ network, client: process, identity, servicesOf, taps });
    const backend = new SimBackend({
      ...{ world, process, journal },
      onStart: (execution) => witness.started(execution),
      onKilled: () => this.kill(),
    });
    const isFirst = this.#started === 1;
    const isSilent = !isFirst && happens(random, SILENT_CHANCE);
    const lateMs = happens(random, LATE_CHANCE) ? between(random, 0, LATE_MAX_MS) : 0;
    const asksAfterMs = isSilent ? Infinity : lateMs;
    const givesUpAsking = happens(random, GIVES_UP_CHANCE);
    const { slots } = settings;
    const fail = (error: unknown): void => world.violate(error);
    const options = { process, transport, worker, slots, backend, asksAfterMs, givesUpAsking, fail };
    new Caller(options).live().catch(fail);
  }

  kill(): void {
    this.#end("is killed", (process) => this.#options.network.hangUp(process));
  }

  losePower(): void {
    this.#end("loses its power", (process) => this.#options.network.goDark(process));
  }

  stopFor(durationMs: number): void {
    const { process } = this;
    if (process === undefined || process.isStopped) return;
    process.stop();
    this.#options.world.after(durationMs, () => process.goOn());
  }

  /** It hears no notice: its machine is gone when its time has come. */
  preempt(leadMs: number): void {
    const { process } = this;
    process?.after(leadMs, () => this.losePower());
  }

  /** It does not say so. */
  putAtRisk(): void {
    this.process?.say("is at risk, and does not know");
  }

  heal(): void {
    this.process?.goOn();
  }

  startSoon(): void {
    const { world } = this.#options;
    world.after(between(world.random, RESTART_MIN_MS, RESTART_MAX_MS), () => {
      if (this.process === undefined) this.start();
    });
  }

  #end(why: string, leave: (process: SimProcess) => void): void {
    const { process } = this;
    if (process === undefined) return;
    this.#options.witness.workerDied();
    process.end(why);
    leave(process);
    this.startSoon();
  }
}
