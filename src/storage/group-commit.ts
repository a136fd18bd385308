// The queue in front of the one writer of a store. Batches are written one group after the other; batches that wait while a
// group is on its way share the next one, and its fsync.
//
// Keeps true: batches take effect and are answered in the order of the calls; behind one that is `unknown` nothing is written that
// was asked for before its answer.
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import type { Batch, CommitOutcome } from "./store.ts";

/** The part that knows the database. */
export interface GroupWriter {
  /**
   * Writes the group as one, and answers each batch. Rejects with the reason for good, as an error of the table: then the outcomes are
   * unknown, and nothing is written any more.
   */
  write(group: readonly Batch[]): Promise<readonly CommitOutcome[]>;
  /** Whether `next` may be of the group that begins with `first`; each may, unless this says otherwise. */
  mayShare?(first: Batch, next: Batch): boolean;
  /** Batches whose answer was `unknown`: no writer has to have seen them. */
  onUnknown?(batches: readonly Batch[]): void;
}

interface Waiting {
  readonly batch: Batch;
  readonly operations: number;
  readonly bytes: number;
  answer(outcome: CommitOutcome): void;
}

/** Beyond these a group gains nothing (docs/adr/0009), and the ones behind it would wait longer. */
const GROUP_MAX_OPERATIONS = 2_048;
const GROUP_MAX_BYTES = 4 * 1024 * 1024;
/** Callers bound what they have outstanding (C8); one that does not is found here and not by the end of memory. */
const QUEUE_MAX = 65_536;

/** Told how long each group took that had a sync in it. */
export interface SyncTiming {
  readonly clock: Clock;
  readonly onSynced: (tookMs: number) => void;
}

export class GroupCommit {
  readonly #writer: GroupWriter;
  readonly #timing: SyncTiming | undefined;
  #queue: Waiting[] = [];
  #running: Promise<void> | undefined;
  #broken: Error | undefined;

  constructor(writer: GroupWriter, timing?: SyncTiming) {
    this.#writer = writer;
    this.#timing = timing;
  }

  /** Why nothing is written any more. */
  get broken(): Error | undefined {
    return this.#broken;
  }

  commit(batch: Batch): Promise<CommitOutcome> {
    if (this.#broken !== undefined) return Promise.resolve({ kind: "unknown", cause: this.#broken });
    assert(this.#queue.length < QUEUE_MAX, "C8: commits on their way are bounded by their caller");
    return new Promise((answer) => {
      this.#queue.push({ batch, ...weigh(batch), answer });
      this.#running ??= this.#run();
    });
  }

  /** Resolves when everything that was asked for has its answer. */
  async drained(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    // Commits of one turn of the caller share a group.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      const group = this.#takeGroup();
      try {
        const outcomes = await this.#timed(group.map(({ batch }) => batch));
        for (const [at, waiting] of group.entries()) waiting.answer(outcomeAt(outcomes, at));
        const unknown = outcomes.find((outcome) => outcome.kind === "unknown");
        if (unknown !== undefined) this.#giveUp(group, unknown.cause);
      } catch (error) {
        const cause = error instanceof Error ? error : new Error(String(error));
        this.#broken = cause;
        for (const waiting of group) waiting.answer({ kind: "unknown", cause });
        this.#giveUp(group, cause);
      }
    }
    this.#running = undefined;
  }

  async #timed(group: readonly Batch[]): Promise<readonly CommitOutcome[]> {
    const timing = group.some(({ durability }) => durability === "sync") ? this.#timing : undefined;
    if (timing === undefined) return this.#writer.write(group);
    const startedMs = timing.clock.monotonicMs();
    const outcomes = await this.#writer.write(group);
    timing.onSynced(timing.clock.monotonicMs() - startedMs);
    return outcomes;
  }

  /** All that waits was asked for by callers who did not know of it. */
  #giveUp(group: readonly Waiting[], cause: Error): void {
    const waiting = this.#queue;
    this.#queue = [];
    for (const one of waiting) one.answer({ kind: "unknown", cause });
    this.#writer.onUnknown?.([...group, ...waiting].map(({ batch }) => batch));
  }

  /**
   * The longest run from the head that fits. Flushed batches at the head go without those that want a sync, which follow
   * at once in a group of their own: they pay no fsync. Behind a synced batch they have to wait for it anyway, and share.
   */
  #takeGroup(): Waiting[] {
    const first = this.#queue[0]?.batch;
    let [count, operations, bytes] = [0, 0, 0];
    for (const waiting of this.#queue) {
      operations += waiting.operations;
      bytes += waiting.bytes;
      if (count > 0 && (operations > GROUP_MAX_OPERATIONS || bytes > GROUP_MAX_BYTES)) break;
      if (first?.durability !== "sync" && waiting.batch.durability === "sync") break;
      if (count > 0 && first !== undefined && this.#writer.mayShare?.(first, waiting.batch) === false) break;
      count++;
    }
    return this.#queue.splice(0, count);
  }
}

function outcomeAt(outcomes: readonly CommitOutcome[], at: number): CommitOutcome {
  const outcome = outcomes[at];
  assert(outcome !== undefined, "each batch of a group is answered");
  return outcome;
}

function weigh(batch: Batch): { operations: number; bytes: number } {
  let bytes = 0;
  for (const { key, value } of batch.puts) bytes += key.length + value.length;
  return { operations: batch.puts.length + batch.deletes.length, bytes };
}
