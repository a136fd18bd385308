// A machine with a worker on it: the real worker, heartbeats, session, executor, outbox, drain and all, over the simulated network
// and disk. The machine outlives its processes.
import { RolloutError } from "../../src/base/errors.ts";
import type { RunId, WorkerId } from "../../src/base/ids.ts";
import { resultBatchRecord } from "../../src/worker/work/outbox-record.ts";
import { decodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import { OUTBOX_PREFIX } from "../../src/storage/keys.ts";
import { PowerLossStore } from "../support/power-loss-store.ts";
import type { Batch, CommitOutcome, Store } from "../../src/storage/store.ts";
import { Worker } from "../../src/worker/worker.ts";
import { fixedPlugins } from "../support/fixed-plugins.ts";
import type { Journal } from "./journal.ts";
import type { Victim } from "./nemesis.ts";
import type { Network } from "./network.ts";
import type { Machine } from "./process.ts";
import { SimProcess } from "./process.ts";
import { ProcessStore } from "./process-store.ts";
import type { DiskWeather } from "./process-store.ts";
import type { Settings } from "./settings.ts";
import { SimBackend } from "./sim-backend.ts";
import type { Services, Tap } from "./sim-transport.ts";
import { SimTransport } from "./sim-transport.ts";
import { eventsOf, logOf } from "./voice.ts";
import type { Witness } from "./witness.ts";
import type { World } from "./world.ts";
import { between, Violation } from "./world.ts";
import { OUTPUT_MAX_BYTES } from "./workload.ts";

const RESTART_MIN_MS = 100;
const RESTART_MAX_MS = 4_000;
const SELF_FENCE_MS = 4_000;
/** The longest time of a drain beyond its deadline: its flush, its goodbye, an execution that does not end, a slow disk. */
const DRAIN_SLACK_MS = 15_000;
/** Nobody but the certificate looks into them, and there is none here. */
const CREDENTIALS = { certificatePem: "", keyPem: "", caPem: "" };

export interface WorkerNodeOptions {
  readonly world: World;
  readonly network: Network;
  readonly witness: Witness;
  readonly journal: Journal;
  readonly settings: Settings;
  readonly disk: DiskWeather;
  readonly runId: RunId;
  readonly number: number;
  readonly workerId: WorkerId;
  readonly taps: readonly Tap[];
  readonly servicesOf: (server: SimProcess) => Services | undefined;
  /** The store as the worker sees it. */
  readonly store: (store: Store) => Store;
  readonly selfFenceTimeoutMs?: number;
  readonly beginsUnasked?: true;
}

export class WorkerNode implements Victim {
  readonly machine: Machine;
  readonly #options: WorkerNodeOptions;
  #started = 0;
  #process: SimProcess | undefined;
  #worker: Worker | undefined;
  #isDraining = false;

  constructor(options: WorkerNodeOptions, clockRate: number) {
    this.#options = options;
    const name = `w${options.number}`;
    this.machine = { name, disk: new PowerLossStore(), wallOffsetMs: 0, clockRate };
  }

  get workerId(): WorkerId {
    return this.#options.workerId;
  }

  get process(): SimProcess | undefined {
    return this.#process?.isAlive === true ? this.#process : undefined;
  }

  start(): void {
    const { world, disk, settings, runId, workerId, network, taps, servicesOf, witness } = this.#options;
    const process = new SimProcess(world, this.machine, ++this.#started);
    this.#process = process;
    this.#worker = undefined;
    this.#isDraining = false;
    witness.knows(process, workerId);
    process.say("starts");
    const identity = { runId, role: "worker", id: workerId } as const;
    const store = new ProcessStore(world, process, disk, (_, batch, outcome) => this.#stored(batch, outcome));
    const { clock, random } = process;
    Worker.start({
      runId,
      workerId,
      store: this.#options.store(store),
      address: "sim:1",
      credentials: { kind: "own", credentials: CREDENTIALS },
      slots: settings.slots,
      work: {
        plugins: fixedPlugins(this.#backend(process)),
        prefetch: settings.prefetch,
        limits: { maxOutputBytes: OUTPUT_MAX_BYTES },
        checkpointIntervalMs: 100,
      },
      heartbeatIntervalMs: 500,
      selfFenceTimeoutMs: this.#options.selfFenceTimeoutMs ?? SELF_FENCE_MS,
      failureTimeoutMs: 5_000,
      clock,
      random,
      events: eventsOf(process),
      log: logOf(process),
      connect: () => {
        const { transport } = new SimTransport({ network, client: process, identity, servicesOf, taps });
        return { transport, setCredentials: () => {}, close: () => {} };
      },
      onFatal: (error) => this.#died(process, error),
      onEnded: (error) => world.violate(error),
    }).then(
      (worker) => {
        if (this.#process === process) this.#worker = worker;
      },
      (error: unknown) => this.#died(process, error),
    );
  }

  kill(): void {
    const { process } = this;
    if (process === undefined) return;
    this.#options.witness.workerDied();
    process.end("is killed");
    this.#options.network.hangUp(process);
    this.startSoon();
  }

  losePower(): void {
    const { process } = this;
    const { world, network, witness } = this.#options;
    if (process === undefined) return;
    witness.workerDied();
    process.end("loses its power");
    network.goDark(process);
    world.after(0, () => {
      this.machine.disk = this.machine.disk.losePower(world.random);
    });
    this.startSoon();
  }

  stopFor(durationMs: number): void {
    const { process } = this;
    if (process === undefined || process.isStopped) return;
    process.stop();
    this.#options.world.after(durationMs, () => process.goOn());
  }

  /** A notice: drains within `leadMs`, then the machine is gone for a while. */
  preempt(leadMs: number): void {
    const { process } = this;
    const worker = this.#worker;
    if (process === undefined || process.isStopped || worker === undefined || this.#isDraining) return;
    this.#isDraining = true;
    process.say(`is preempted, ${leadMs.toFixed()} ms left`);
    const drained = worker.drain({ cause: "gcp", deadlineMs: process.clock.monotonicMs() + leadMs });
    this.#options.witness.drainAsked(process);
    const overdue = process.after(leadMs / this.machine.clockRate + DRAIN_SLACK_MS, () => {
      this.#options.world.violate(
        new Violation(`${process.name} has not drained ${DRAIN_SLACK_MS} ms after its deadline`),
      );
    });
    drained
      .then(() => worker.stop())
      .then(
        () => {
          overdue.cancel();
          this.#options.witness.workerLeft(process);
          process.end("has drained, exits");
          this.#options.network.hangUp(process);
          this.startSoon();
        },
        (error: unknown) => this.#died(process, error),
      );
  }

  /** Its cloud says that it may be taken away; for this process only. */
  putAtRisk(): void {
    if (this.process?.isStopped === false) this.#worker?.sayAtRisk();
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

  #backend(process: SimProcess): SimBackend {
    const { world, journal, witness, beginsUnasked } = this.#options;
    return new SimBackend({
      world,
      ...(beginsUnasked && { beginsUnasked }),
      process,
      journal,
      onStart: (execution) => witness.started(execution),
      onKilled: () => this.kill(),
    });
  }

  #stored({ puts, durability }: Batch, outcome: CommitOutcome): void {
    if (outcome.kind !== "committed" || durability !== "sync") return;
    for (const { key, value } of puts)
      if (key.startsWith(OUTBOX_PREFIX)) {
        const { results } = okOrFailure("outbox", decodeRecord(resultBatchRecord, key, value));
        this.#options.witness.resultsStored(results);
      }
  }

  #died(process: SimProcess, error: unknown): void {
    if (!process.isAlive) return;
    const isExpected = error instanceof RolloutError && error.code === "store_write_failed";
    if (!isExpected) this.#options.world.violate(error);
    this.#options.witness.workerDied();
    process.end("ends: its store is broken");
    this.#options.network.hangUp(process);
    this.startSoon();
  }
}
