// A machine with a worker on it: the real worker, heartbeats, session, executor, outbox, drain and all, over the simulated network
// and disk. The machine outlives its processes.
import type { StayLimits } from "../../machines/worker-stay.ts";
import { resultBatchRecord } from "../../src/worker/work/outbox-record.ts";
import { decodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import { OUTBOX_PREFIX } from "../../src/storage/keys.ts";
import type { Batch, CommitOutcome, Store } from "../../src/storage/store.ts";
import { Plugins } from "../../src/worker/backends/plugins.ts";
import type { CheckpointStore } from "../../src/worker/partitions/checkpoint-store.ts";
import { Worker } from "../../src/worker/worker.ts";
import { fixedPlugins } from "../support/fixed-plugins.ts";
import type { SimProcess } from "./process.ts";
import { ProcessStore } from "./process-store.ts";
import type { DiskWeather } from "./process-store.ts";
import { CANDIDATE_DIGEST, CANDIDATE_VERSION, PLUGIN, STABLE_VERSION } from "./release-settings.ts";
import type { SimBackendOptions } from "./sim-backend.ts";
import { eventsOf, logOf } from "./voice.ts";
import { WorkerMachine } from "./worker-machine.ts";
import type { WorkerMachineOptions } from "./worker-machine.ts";
import { LATEST_VERSION } from "./actor-machine.ts";
import { happens, Violation } from "./world.ts";
import { OUTPUT_MAX_BYTES, TASK_DIGEST } from "./workload.ts";

const UPGRADE_CHANCE = 0.3;
const SELF_FENCE_MS = 4_000;
/** Quick items wait by so many times the number of a seed. */
const BACKLOG_FACTOR = 8;
/** The longest time of a drain beyond its deadline: its flush, its goodbye, an execution that does not end, a slow disk. */
const DRAIN_SLACK_MS = 15_000;
/** For one that is asked to leave, or leaves by itself. */
const DRAIN_MS = 10_000;
/** So little that a partition is dropped now and then. */
const STATES_BYTES_MAX = 2_000;
/** Nobody but the certificate looks into them, and there is none here. */
const CREDENTIALS = { certificatePem: "", keyPem: "", caPem: "" };

export interface WorkerNodeOptions extends WorkerMachineOptions {
  readonly disk: DiskWeather;
  /** The store as the worker sees it. */
  readonly store: (store: Store) => Store;
  readonly selfFenceTimeoutMs?: number;
  readonly beginsUnasked?: true;
  /** Without it the worker stays until it is told to leave. */
  readonly stay?: StayLimits;
  /** Undefined for a cluster without checkpoints of partitions. */
  readonly checkpoints: ((process: SimProcess) => CheckpointStore) | undefined;
}

export class WorkerNode extends WorkerMachine {
  readonly #options: WorkerNodeOptions;
  #worker: Worker | undefined;
  #isDraining = false;
  /** That of its code, where keys are actors. */
  #version = 1;
  #isHealed = false;
  #hasBoth = true;

  constructor(options: WorkerNodeOptions, clockRate: number) {
    super(options, "w", clockRate);
    this.#options = options;
  }

  protected override run(process: SimProcess): void {
    super.run(process);
    const { world, disk, settings, runId, workerId, beginsUnasked, witness, checkpoints } = this.#options;
    witness.remembersLeaders(process);
    this.#worker = undefined;
    this.#isDraining = false;
    const store = new ProcessStore(world, process, disk, (_, batch, outcome) => this.#stored(batch, outcome));
    const { clock, random } = process;
    // Machines get newer code one after the other, each when its worker is started anew.
    if (settings.hasActors && happens(random, UPGRADE_CHANCE)) this.#version = LATEST_VERSION;
    const actors = settings.hasActors ? { version: this.#version, actors: settings.keys } : undefined;
    Worker.start({
      runId,
      workerId,
      store: this.#options.store(store),
      address: "sim:1",
      credentials: { kind: "own", credentials: CREDENTIALS },
      slots: settings.slots,
      work: {
        plugins: this.#plugins(process, { actors, ...(beginsUnasked && { beginsUnasked }) }),
        prefetch: settings.prefetch,
        prefetchMax: BACKLOG_FACTOR * settings.prefetch,
        limits: { maxOutputBytes: OUTPUT_MAX_BYTES },
        checkpointIntervalMs: 100,
        checkpointStore: checkpoints?.(process),
        maxStatesBytes: STATES_BYTES_MAX,
      },
      heartbeatIntervalMs: 500,
      selfFenceTimeoutMs: this.#options.selfFenceTimeoutMs ?? SELF_FENCE_MS,
      failureTimeoutMs: 5_000,
      clock,
      random,
      events: eventsOf(process),
      log: logOf(process),
      connect: () => ({
        transport: this.connect(process),
        setCredentials: () => {},
        doubt: () => false,
        close: () => {},
      }),
      stay: this.#options.stay,
      onLeaving: () => this.preempt(DRAIN_MS),
      onDrainAsked: () => this.preempt(DRAIN_MS),
      onFatal: (error) => this.died(process, error),
      onEnded: (error) => world.violate(error),
    }).then(
      (worker) => {
        if (this.isLatest(process)) this.#worker = worker;
      },
      (error: unknown) => this.died(process, error),
    );
  }

  /** One version that says nothing of its task, as long as there is no other one. */
  #plugins(process: SimProcess, parts: Pick<SimBackendOptions, "beginsUnasked" | "actors">): Plugins {
    const { settings, number } = this.#options;
    const { release } = settings;
    const stateVersion = parts.actors?.version;
    const versioned = stateVersion === undefined ? {} : { stateVersion };
    if (release === undefined) return fixedPlugins(this.backend(process, parts), versioned);
    const { random } = process;
    const { badness, oneVersion, loadedVersions } = release;
    const stable = {
      ...{ name: PLUGIN, version: STABLE_VERSION, taskDigest: TASK_DIGEST },
      open: () => this.backend(process, parts),
    };
    const candidate = {
      ...{ name: PLUGIN, version: CANDIDATE_VERSION, taskDigest: CANDIDATE_DIGEST },
      open: () => this.backend(process, { ...parts, version: CANDIDATE_VERSION, badness }),
    };
    // The first worker has both: the run goes on whichever of them it comes to.
    const hasOne = number > 1 && !this.#isHealed && happens(random, oneVersion);
    const both = [stable, candidate];
    this.#hasBoth = !hasOne;
    const plugins = hasOne ? both.filter((_, at) => at === (happens(random, 0.5) ? 0 : 1)) : both;
    process.say(`has ${plugins.map(({ version }) => version).join(" and ")}`);
    return new Plugins(plugins, (error) => this.#options.world.violate(error), { loadedVersions });
  }

  /** After the storm it has both versions. */
  override heal(): void {
    super.heal();
    this.#isHealed = true;
    if (!this.#hasBoth) this.kill();
  }

  override losePower(): void {
    if (this.process === undefined) return;
    super.losePower();
    const { world } = this.#options;
    world.after(0, () => {
      this.machine.disk = this.machine.disk.losePower(world.random);
    });
  }

  /** A notice: drains within `leadMs`, then the machine is gone for a while. */
  override preempt(leadMs: number): void {
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
          this.exit(process, "has drained, exits");
        },
        (error: unknown) => this.died(process, error),
      );
  }

  /** Its cloud says that it may be taken away; for this process only. */
  override putAtRisk(): void {
    if (this.process?.isStopped === false) this.#worker?.sayAtRisk();
  }

  #stored({ puts, durability }: Batch, outcome: CommitOutcome): void {
    if (outcome.kind !== "committed" || durability !== "sync") return;
    for (const { key, value } of puts)
      if (key.startsWith(OUTBOX_PREFIX)) {
        const { results } = okOrFailure("outbox", decodeRecord(resultBatchRecord, key, value));
        this.#options.witness.resultsStored(results);
      }
  }
}
