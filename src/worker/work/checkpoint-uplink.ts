// The newest checkpoints of attempts that run, on their way to the coordinator: a worker that dies without a word takes no more
// with it than what came after them.
//
// Keeps true: nothing is sent that has not changed; of one attempt at most once in the interval, from its start on, so that
// short attempts send nothing; of all together no more bytes than the rate allows. Nothing is held here: what is sent is
// read from the executions when it leaves, and what was sent is forgotten with them.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Clock, Timer } from "../../base/clock.ts";
import type { CheckpointBatchSchema } from "../../gen/rollout/v1/work_pb.ts";
import type { Assigned } from "./backlog.ts";
import type { Saved } from "./execution.ts";

export interface CheckpointUplinkOptions {
  readonly clock: Clock;
  readonly intervalMs: number;
  /** There may be something to send now. */
  readonly onDue: () => void;
}

interface Sent {
  readonly checkpoint: Uint8Array;
  /** Monotonic. */
  readonly atMs: number;
}

/** A frame is well below the limit of a message; a larger checkpoint goes alone. */
const BATCH_MAX_BYTES = 1_024 * 1_024;
const BATCH_MAX = 1_024;
/** For all attempts of a worker together: one of the largest checkpoints in four seconds. */
const BYTES_PER_SECOND = 256 * 1_024;
/** The cost of a checkpoint beside its bytes. */
const OVERHEAD_BYTES = 128;

export class CheckpointUplink {
  readonly #options: CheckpointUplinkOptions;
  /** By attempt, on this stream. */
  #sent = new WeakMap<Assigned, Sent>();
  /** When there is something to send next, monotonic. */
  #dueAtMs = Infinity;
  /** Nothing more is sent before, because of what was. */
  #quietUntilMs = -Infinity;
  #timer: Timer | undefined;

  constructor(options: CheckpointUplinkOptions) {
    this.#options = options;
  }

  /** This attempt has another checkpoint than before. Cheap. */
  notice(saved: Saved): void {
    this.#expect(this.#dueOf(saved));
  }

  /** The checkpoints that are due, the longest due first; undefined when none is. They then count as sent. */
  next(executor: {
    readonly saved: readonly Saved[];
  }): MessageInitShape<typeof CheckpointBatchSchema> | undefined {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs < this.#dueAtMs) {
      // Timers may be a little early.
      if (this.#timer === undefined) this.#arm();
      return undefined;
    }
    this.#dueAtMs = Infinity;
    const changed = executor.saved.filter((one) => this.#isNews(one));
    const due = changed
      .filter((one) => this.#dueOf(one) <= nowMs)
      .sort((one, other) => this.#lastOf(one) - this.#lastOf(other));
    const taken = fitting(due);
    let bytes = 0;
    for (const { assigned, checkpoint } of taken) {
      this.#sent.set(assigned, { checkpoint, atMs: nowMs });
      bytes += checkpoint.length + OVERHEAD_BYTES;
    }
    if (bytes > 0) this.#quietUntilMs = nowMs + (bytes / BYTES_PER_SECOND) * 1_000;
    for (const one of changed) if (this.#isNews(one)) this.#expect(this.#dueOf(one));
    return taken.length === 0 ? undefined : { checkpoints: taken.map(messageOf) };
  }

  /** Nobody knows whether those that were sent have arrived: all of them are news again. */
  forget(): void {
    this.#sent = new WeakMap();
    this.#dueAtMs = -Infinity;
  }

  close(): void {
    this.#dueAtMs = Infinity;
    this.#arm();
  }

  #isNews(saved: Saved): boolean {
    const { assigned, checkpoint } = saved;
    const before = this.#sent.get(assigned)?.checkpoint ?? assigned.checkpoint;
    return checkpoint !== before && checkpoint.length > 0;
  }

  #lastOf({ assigned, startedMs }: Saved): number {
    return this.#sent.get(assigned)?.atMs ?? startedMs;
  }

  #dueOf(saved: Saved): number {
    return Math.max(this.#lastOf(saved) + this.#options.intervalMs, this.#quietUntilMs);
  }

  /** `onDue` is called then. Without a stream nobody hears it; the next one begins by asking. */
  #expect(atMs: number): void {
    if (atMs >= this.#dueAtMs) return;
    this.#dueAtMs = atMs;
    this.#arm();
  }

  #arm(): void {
    const { clock, onDue } = this.#options;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#dueAtMs === Infinity) return;
    const due = (): void => {
      this.#timer = undefined;
      onDue();
    };
    const leftMs = Math.max(0, Math.ceil(this.#dueAtMs - clock.monotonicMs()));
    this.#timer = clock.after(leftMs, due, { background: true });
  }
}

function fitting(due: readonly Saved[]): Saved[] {
  const taken: Saved[] = [];
  let bytes = 0;
  for (const one of due) {
    bytes += one.checkpoint.length + OVERHEAD_BYTES;
    if (taken.length > 0 && (bytes > BATCH_MAX_BYTES || taken.length >= BATCH_MAX)) break;
    taken.push(one);
  }
  return taken;
}

function messageOf({
  assigned: { itemId, attempt, epoch },
  checkpoint,
}: Saved): NonNullable<MessageInitShape<typeof CheckpointBatchSchema>["checkpoints"]>[number] {
  return { attempt: { itemId, attempt }, epoch, checkpoint };
}
