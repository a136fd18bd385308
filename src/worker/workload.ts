// Everything a worker does with items: what it was given, what runs, what has ended and is on its way. Its life (beats,
// certificate, goodbye) is elsewhere and only asked whether the worker may start something now.
import type { Client as Calls } from "@connectrpc/connect";
import { createHash } from "node:crypto";
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { RolloutError } from "../base/errors.ts";
import type { IncarnationId, RunId, WorkerId } from "../base/ids.ts";
import { LIMITS } from "../config/limits.ts";
import type { GetAssignmentResponse, WorkService } from "../gen/rollout/v1/work_pb.ts";
import type { Logger } from "../observe/log.ts";
import type { Exposition } from "../observe/metrics/exposition.ts";
import type { ChartStep } from "../runtime/driver.ts";
import type { Store } from "../storage/store.ts";
import type { Plugins } from "./backends/plugins.ts";
import type { DrainedWork } from "./life/drain.ts";
import type { SessionOptions } from "./link/session.ts";
import { Session } from "./link/session.ts";
import { leaderOf } from "./link/session-messages.ts";
import type { Assigned } from "./work/backlog.ts";
import { BacklogPace } from "./work/backlog-pace.ts";
import { CheckpointUplink } from "./work/checkpoint-uplink.ts";
import { notBegun } from "./work/execution.ts";
import type { Finished } from "./work/execution.ts";
import { Executor } from "./work/executor.ts";
import type { ExecutorOptions } from "./work/executor.ts";
import { Outbox } from "./work/outbox.ts";
import type { CheckpointStore } from "./partitions/checkpoint-store.ts";
import { Partitions } from "./partitions/partitions.ts";

/** Settings of a worker's items; limits that are left out are as `WORK_DEFAULTS`. */
export interface WorkSettings {
  /** The plugins that execute. The caller closes them, when the work has stopped. */
  readonly plugins: Plugins;
  /** How long the items that wait at the worker beside those that run are to last; 250 ms unless said. */
  readonly backlogTimeMs?: number;
  /** So many are to wait, however long they last: for those who count them. Or so many at least, where `prefetchMax` is more. */
  readonly prefetch?: number;
  readonly prefetchMax?: number;
  readonly limits?: Partial<WorkLimits>;
  /** How often the checkpoint of a running attempt goes to the coordinator at most; 5 s unless said. */
  readonly checkpointIntervalMs?: number;
  /** The fate of running items when the coordinator may be about to give them away; `finish` unless said. */
  readonly onFence?: "finish" | "abort";
  /** Where checkpoints of partitions of keys are; undefined: no states are kept, and items come with theirs. */
  readonly checkpointStore?: CheckpointStore | undefined;
  /** Bytes of states of keys in memory; 64 MiB unless said. */
  readonly maxStatesBytes?: number;
}

interface WorkLimits {
  /** A larger output makes the item fail as `too_large`. */
  readonly maxOutputBytes: number;
  /** A larger checkpoint is left out. */
  readonly maxCheckpointBytes: number;
  /** An item of a key that leaves a larger state fails. */
  readonly maxStateBytes: number;
  /** Over either, nothing is started until the coordinator has acknowledged some. */
  readonly maxUnackedResults: number;
  readonly maxUnackedBytes: number;
}

const MIB = 1_024 * 1_024;
const CHECKPOINT_INTERVAL_MS = 5_000;
const BACKLOG_TIME_MS = 250;

const WORK_DEFAULTS: WorkLimits = {
  maxOutputBytes: LIMITS.outputBytes,
  maxCheckpointBytes: LIMITS.checkpointBytes,
  maxStateBytes: LIMITS.stateBytes,
  maxUnackedResults: 16_384,
  maxUnackedBytes: 64 * MIB,
};

export interface WorkOptions extends WorkSettings {
  readonly runId: RunId;
  readonly workerId: WorkerId;
  readonly incarnation: IncarnationId;
  readonly slots: number;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** An attempt has ended here, and leaves a result. */
  readonly onAttemptEnded?: (finished: Finished) => void;
  /** The coordinator may have given this worker's items to others by now. */
  readonly isFenced: () => boolean;
  readonly onFatal: (error: unknown) => void;
  /** Told of the steps of executions. */
  readonly onStep?: ((step: ChartStep) => void) | undefined;
}

/** The part of the worker's life that a stream of work needs. */
export type StreamOptions = Pick<
  SessionOptions,
  "random" | "guard" | "envelope" | "onFailed" | "onSuperseded"
> & { readonly client: Pick<Calls<typeof WorkService>, "session" | "getAssignment"> };

export class Workload implements DrainedWork {
  readonly #options: WorkOptions;
  readonly #outbox: Outbox;
  readonly #executor: Executor;
  readonly #uplink: CheckpointUplink;
  readonly #partitions: Partitions | undefined;
  /** Monotonic. */
  #endedAtMs: number;
  #session: Session | undefined;

  private constructor(options: WorkOptions, limits: WorkLimits, outbox: Outbox) {
    this.#options = options;
    this.#outbox = outbox;
    this.#endedAtMs = options.clock.monotonicMs();
    this.#uplink = new CheckpointUplink({
      clock: options.clock,
      intervalMs: options.checkpointIntervalMs ?? CHECKPOINT_INTERVAL_MS,
      onDue: () => this.#session?.ring(),
    });
    this.#executor = new Executor({
      ...options,
      ...limits,
      ...backlogOf(options),
      env: { ROLLOUT_RUN_ID: options.runId, ROLLOUT_WORKER_ID: options.workerId },
      mayStart: () => this.#mayStart(),
      mayBegin: () => this.#isTrusted(),
      onFinished: (finished) => {
        this.#endedAtMs = options.clock.monotonicMs();
        options.onAttemptEnded?.(finished);
        this.#outbox.add(finished);
      },
      onCheckpoint: (saved) => this.#uplink.notice(saved),
      onHandedBack: (unstarted) => this.#session?.handBack(unstarted),
      onSurplus: (unstarted) => this.#session?.giveUp(unstarted),
      onRoom: () => this.#session?.offerRoom(),
    });
    this.#partitions = this.#openPartitions(options);
  }

  /** With the results that earlier incarnations could not deliver. Throws store_corrupt or store_newer. */
  static async open(options: WorkOptions): Promise<Workload> {
    const limits = { ...WORK_DEFAULTS, ...options.limits };
    // Those of the transport follow it (src/transport/limits.ts): a result travels in one message.
    assert(limits.maxOutputBytes <= LIMITS.dataMaxBytes, "an output fits in a message");
    assert(limits.maxCheckpointBytes <= LIMITS.checkpointBytes, "a checkpoint fits in a message");
    const opened: { workload?: Workload } = {};
    const outbox = await Outbox.open({
      ...options,
      ...limits,
      mayFollow: () => (opened.workload?.waiting ?? 0) > 0,
      onBatch: () => opened.workload?.wake(),
    });
    return (opened.workload = new Workload(options, limits, outbox));
  }

  #openPartitions(options: WorkOptions): Partitions | undefined {
    const { checkpointStore: store, maxStatesBytes } = options;
    if (store === undefined) return undefined;
    const atWork = (): readonly string[] =>
      [...this.#executor.running, ...this.#outbox.finished].flatMap(({ key, keyed }) => (keyed ? [key] : []));
    return new Partitions({
      ...options,
      store,
      ...(maxStatesBytes !== undefined && { maxBytes: maxStatesBytes }),
      atWork,
      isAtWork: (key) => this.#outbox.has(key) || this.#executor.isRunning(key),
      onNews: () => this.#session?.ring(),
    });
  }

  /** The answer to a beat has named this epoch of the assignment of partitions; undefined while the run has no keys. */
  sawAssignment(epoch: bigint | undefined): void {
    this.#partitions?.sawEpoch(epoch);
  }

  /** Gives the worker its way to the coordinator. Once. */
  attach(stream: StreamOptions): void {
    assert(this.#session === undefined, "a worker has one session");
    this.#partitions?.attach((leader) => askAssignment(stream, leader));
    this.#session = new Session({
      ...this.#options,
      ...stream,
      executor: this.#executor,
      outbox: this.#outbox,
      uplink: this.#uplink,
      partitions: this.#partitions,
      onStateMissing: (assigned) => this.#outbox.add(notBegun(assigned, this.#options.clock.wallMs())),
      mayAsk: () => this.#mayStart(),
    });
  }

  /** The coordinator knows this worker: from now on it asks for work. Idempotent. */
  start(): void {
    this.#session?.start();
  }

  /** Something outside has changed (a beat was answered): starts what can be started, says what can be said. Cheap. */
  wake(): void {
    this.#executor.pump();
    this.#session?.ring();
  }

  /** The coordinator may soon give away what this worker has. */
  fenced(): void {
    if (this.#options.onFence === "abort") this.#executor.fence();
  }

  /** The coordinator may have given away what this worker has. In effect when this returns. */
  distrust(): void {
    this.#session?.distrust();
  }

  /** Items that wait for a slot. */
  get waiting(): number {
    return this.#executor.counts.waiting;
  }

  /** Since when nothing executes or waits here, monotonic; undefined while something does. */
  get idleSinceMs(): number | undefined {
    const { executing, waiting } = this.#executor.counts;
    return executing + waiting > 0 ? undefined : this.#endedAtMs;
  }

  /** The share of the slots that execute, 0 to 1. */
  get load(): number {
    return this.#executor.load;
  }

  addMetrics(exposition: Exposition): void {
    const { executing, waiting } = this.#executor.counts;
    const { results, bytes } = this.#outbox.counts;
    exposition.add("rollout_worker_executing", executing);
    exposition.add("rollout_worker_backlog", waiting);
    exposition.add("rollout_worker_unacknowledged_results", results);
    exposition.add("rollout_worker_unacknowledged_bytes", bytes);
  }

  /** As a beat says it. */
  holdings(): { readonly heldDigest: Uint8Array; readonly ackedAssignment: bigint } {
    return {
      heldDigest: this.#heldDigest(),
      ackedAssignment: BigInt(this.#session?.ackedAssignment ?? 0),
    };
  }

  stopStarting(): void {
    // Before the first session too: there is nobody to give anything back to, and nothing may start all the same.
    const unstarted = this.#executor.drain();
    this.#session?.handBack(unstarted);
  }

  whenIdle(): Promise<void> {
    return this.#executor.whenIdle();
  }

  abandon(graceMs: number): Promise<void> {
    return this.#executor.abandon(graceMs);
  }

  flushed(): Promise<void> {
    return this.#outbox.flushed();
  }

  get unacknowledged(): number {
    return this.#outbox.counts.results;
  }

  /** Ends at once: kills what runs, leaves results that are not delivered for the next start. */
  async stop(): Promise<void> {
    this.#executor.kill();
    this.#uplink.close();
    await this.#session?.stop();
    await this.#partitions?.close();
    await this.#outbox.close();
  }

  /** Over all attempts that are held, finished ones included. */
  #heldDigest(): Uint8Array {
    const { unstarted, running } = this.#executor;
    return heldDigestOf([...unstarted, ...running, ...this.#outbox.finished]);
  }

  #mayStart(): boolean {
    return this.#isTrusted() && !this.#outbox.isFull;
  }

  /** Nobody else can have been given what this worker has. */
  #isTrusted(): boolean {
    return this.#session?.isReconciled === true && !this.#options.isFenced();
  }
}

function backlogOf(options: WorkOptions): Pick<ExecutorOptions, "pace" | "capacity"> {
  const { slots, prefetch, prefetchMax, backlogTimeMs = BACKLOG_TIME_MS } = options;
  const most = prefetchMax ?? prefetch ?? LIMITS.backlogPerWorker;
  const pace = new BacklogPace({ timeMs: backlogTimeMs, slots, least: prefetch ?? 1, most });
  // Twice what is wanted at most: what was asked for and is not wanted any more may come all the same.
  return { pace, capacity: 2 * (slots + most) };
}

/** Undefined when nobody answers now, or another leader than that one does: the next answer to a beat names the epoch again. */
async function askAssignment(
  { client, guard, envelope }: StreamOptions,
  leader: string,
): Promise<GetAssignmentResponse | undefined> {
  try {
    const response = await client.getAssignment({ worker: envelope() });
    const admission = await guard.admit(response.coordinator);
    return admission.kind === "admitted" && leaderOf(response.coordinator) === leader ? response : undefined;
  } catch (error) {
    if (error instanceof RolloutError) return undefined;
    throw error;
  }
}

type Holding = Pick<Assigned, "itemId" | "attempt">;

/** As `Beat.held_digest` has it. @internal The simulated worker that makes calls says the same. */
export function heldDigestOf(held: readonly Holding[]): Uint8Array {
  if (held.length === 0) return new Uint8Array(0);
  const digest = createHash("sha256");
  for (const { itemId, attempt } of [...held].sort(byItem)) {
    const counted = Buffer.alloc(4);
    counted.writeUInt32BE(attempt);
    digest.update(itemId).update(counted);
  }
  return digest.digest();
}

function byItem(left: Holding, right: Holding): number {
  return Buffer.compare(left.itemId, right.itemId) || left.attempt - right.attempt;
}
