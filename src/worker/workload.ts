// Everything a worker does with items: what it was given, what runs, what has ended and is on its way. Its life (beats,
// certificate, goodbye) is elsewhere and only asked whether the worker may start something now.
import type { Client as Calls } from "@connectrpc/connect";
import { createHash } from "node:crypto";
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import type { IncarnationId, RunId, WorkerId } from "../base/ids.ts";
import { LIMITS } from "../config/limits.ts";
import type { WorkService } from "../gen/rollout/v1/work_pb.ts";
import type { Logger } from "../observe/log.ts";
import type { Store } from "../storage/store.ts";
import type { Plugins } from "./backends/plugins.ts";
import type { DrainedWork } from "./life/drain.ts";
import type { SessionOptions } from "./link/session.ts";
import { Session } from "./link/session.ts";
import type { Assigned } from "./work/backlog.ts";
import { CheckpointUplink } from "./work/checkpoint-uplink.ts";
import { Executor } from "./work/executor.ts";
import { Outbox } from "./work/outbox.ts";

/** Settings of a worker's items; limits that are left out are as `WORK_DEFAULTS`. */
export interface WorkSettings {
  /** The plugins that execute. The caller closes them, when the work has stopped. */
  readonly plugins: Plugins;
  /** How many items may wait at the worker beside those that run; as many as it has slots unless said, at least 1. */
  readonly prefetch?: number;
  readonly limits?: Partial<WorkLimits>;
  /** How often the checkpoint of a running attempt goes to the coordinator at most; 5 s unless said. */
  readonly checkpointIntervalMs?: number;
  /** The fate of running items when the coordinator may be about to give them away; `finish` unless said. */
  readonly onFence?: "finish" | "abort";
}

interface WorkLimits {
  /** A larger output makes the item fail as `too_large`. */
  readonly maxOutputBytes: number;
  /** A larger checkpoint is left out. */
  readonly maxCheckpointBytes: number;
  /** Over either, nothing is started until the coordinator has acknowledged some. */
  readonly maxUnackedResults: number;
  readonly maxUnackedBytes: number;
}

const MIB = 1_024 * 1_024;
const CHECKPOINT_INTERVAL_MS = 5_000;

const WORK_DEFAULTS: WorkLimits = {
  maxOutputBytes: LIMITS.outputBytes,
  maxCheckpointBytes: LIMITS.checkpointBytes,
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
  /** The coordinator may have given this worker's items to others by now. */
  readonly isFenced: () => boolean;
  readonly onFatal: (error: unknown) => void;
}

/** The part of the worker's life that a stream of work needs. */
export type StreamOptions = Pick<
  SessionOptions,
  "random" | "guard" | "envelope" | "onFailed" | "onSuperseded"
> & { readonly client: Pick<Calls<typeof WorkService>, "session"> };

/** The items of a worker that executes none. */
export const NO_WORK: DrainedWork = {
  stopStarting: () => {},
  whenIdle: () => Promise.resolve(),
  abandon: () => Promise.resolve(),
  flushed: () => Promise.resolve(),
};

export class Workload implements DrainedWork {
  readonly #options: WorkOptions;
  readonly #outbox: Outbox;
  readonly #executor: Executor;
  readonly #uplink: CheckpointUplink;
  readonly #prefetch: number;
  #session: Session | undefined;

  private constructor(options: WorkOptions, limits: WorkLimits, outbox: Outbox) {
    this.#options = options;
    this.#outbox = outbox;
    this.#prefetch = options.prefetch ?? Math.max(1, options.slots);
    this.#uplink = new CheckpointUplink({
      clock: options.clock,
      intervalMs: options.checkpointIntervalMs ?? CHECKPOINT_INTERVAL_MS,
      onDue: () => this.#session?.ring(),
    });
    this.#executor = new Executor({
      ...limits,
      plugins: options.plugins,
      slots: options.slots,
      prefetch: this.#prefetch,
      env: { ROLLOUT_RUN_ID: options.runId, ROLLOUT_WORKER_ID: options.workerId },
      clock: options.clock,
      log: options.log,
      mayStart: () => this.#mayStart(),
      mayBegin: () => this.#mayBegin(),
      onFinished: (finished) => this.#outbox.add(finished),
      onCheckpoint: (saved) => this.#uplink.notice(saved),
      onHandedBack: (assigned) => this.#session?.release([assigned]),
      onRoom: () => this.#session?.ring(),
    });
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
      onBatch: () => opened.workload?.wake(),
    });
    return (opened.workload = new Workload(options, limits, outbox));
  }

  /** Gives the worker its way to the coordinator. Once. */
  attach(stream: StreamOptions): void {
    assert(this.#session === undefined, "a worker has one session");
    const { clock, log, onFatal } = this.#options;
    this.#session = new Session({
      ...stream,
      clock,
      log,
      onFatal,
      executor: this.#executor,
      outbox: this.#outbox,
      uplink: this.#uplink,
      worthwhileCredit: Math.max(1, Math.floor(this.#prefetch / 2)),
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

  /** The share of the slots that execute, 0 to 1. */
  get load(): number {
    return this.#executor.load;
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
    this.#session?.release(unstarted);
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

  /** Ends at once: kills what runs, leaves results that are not delivered for the next start. */
  async stop(): Promise<void> {
    this.#executor.kill();
    this.#uplink.close();
    await this.#session?.stop();
    await this.#outbox.close();
  }

  /** Over all attempts that are held, finished ones included. */
  #heldDigest(): Uint8Array {
    const { unstarted, running } = this.#executor;
    const held = [...unstarted, ...running, ...this.#outbox.finished];
    if (held.length === 0) return new Uint8Array(0);
    const digest = createHash("sha256");
    for (const { itemId, attempt } of held.sort(byItem)) {
      const counted = Buffer.alloc(4);
      counted.writeUInt32BE(attempt);
      digest.update(itemId).update(counted);
    }
    return digest.digest();
  }

  #mayStart(): boolean {
    return this.#isTrusted() && !this.#outbox.isFull;
  }

  #mayBegin(): boolean {
    return this.#isTrusted() && !this.#executor.isDraining;
  }

  /** Nobody else can have been given what this worker has. */
  #isTrusted(): boolean {
    return this.#session?.isReconciled === true && !this.#options.isFenced();
  }
}

function byItem(left: Assigned, right: Assigned): number {
  return Buffer.compare(left.itemId, right.itemId) || left.attempt - right.attempt;
}
