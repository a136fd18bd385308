// The one writer of a LevelDB. LevelDB has no compare-and-swap of its own, so all batches go through here, one group
// after the other; batches that wait while a group is on its way to the disk share the next one, and its fsync.
//
// Keeps true: batches take effect and are answered in the order of the calls; expectations see everything before them;
// after the first write that failed nothing more is written, and every answer is `unknown`.
import { assert } from "../../base/assert.ts";
import type { Batch, CommitOutcome } from "../store.ts";
import { ExpectedValues } from "./expected-values.ts";

/** The database, as the writer needs it. */
export interface Engine {
  read(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]>;
  /** Atomic. Rejects with the reason for good, as an error of the table; then the outcome is unknown. */
  write(operations: Operation[], sync: boolean): Promise<void>;
}

export type Operation =
  | { readonly type: "put"; readonly key: string; readonly value: Uint8Array }
  | { readonly type: "del"; readonly key: string };

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

export class GroupCommit {
  readonly #engine: Engine;
  readonly #expected = new ExpectedValues();
  #queue: Waiting[] = [];
  #running: Promise<void> | undefined;
  #broken: Error | undefined;

  constructor(engine: Engine) {
    this.#engine = engine;
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
        await this.#write(group);
      } catch (error) {
        const cause = error instanceof Error ? error : new Error(String(error));
        this.#broken = cause;
        for (const waiting of [...group, ...this.#queue]) waiting.answer({ kind: "unknown", cause });
        this.#queue = [];
      }
    }
    this.#running = undefined;
  }

  /**
   * The longest run from the head that fits. Flushed batches at the head go without those that want a sync, which follow
   * at once in a group of their own: they pay no fsync. Behind a synced batch they have to wait for it anyway, and share.
   */
  #takeGroup(): Waiting[] {
    const sync = this.#queue[0]?.batch.durability === "sync";
    let [count, operations, bytes] = [0, 0, 0];
    for (const waiting of this.#queue) {
      operations += waiting.operations;
      bytes += waiting.bytes;
      if (count > 0 && (operations > GROUP_MAX_OPERATIONS || bytes > GROUP_MAX_BYTES)) break;
      if (!sync && waiting.batch.durability === "sync") break;
      count++;
    }
    return this.#queue.splice(0, count);
  }

  async #write(group: readonly Waiting[]): Promise<void> {
    await this.#learnExpected(group);
    const operations: Operation[] = [];
    const answers = group.map((waiting) => ({ waiting, outcome: this.#decide(waiting.batch, operations) }));
    const sync = answers.some(
      ({ waiting, outcome }) => outcome.kind === "committed" && waiting.batch.durability === "sync",
    );
    // An empty batch that wants a sync still gets one: what was flushed before it is on the disk when it is answered.
    if (operations.length > 0 || sync) await this.#engine.write(operations, sync);
    this.#expected.trim();
    for (const { waiting, outcome } of answers) waiting.answer(outcome);
  }

  /** Accepts the batch, on condition that the group is written, or not. */
  #decide(batch: Batch, operations: Operation[]): CommitOutcome {
    const key = this.#expected.firstMismatch(batch.expect);
    if (key !== undefined) return { kind: "conflict", key };
    this.#expected.apply(batch);
    append(operations, batch);
    return { kind: "committed" };
  }

  /** Nothing is on its way to the disk now, so what is read is current; batches of the group then change what is known. */
  async #learnExpected(group: readonly Waiting[]): Promise<void> {
    const unknown = new Set<string>();
    for (const { batch } of group) {
      for (const { key } of batch.expect) if (!this.#expected.knows(key)) unknown.add(key);
    }
    if (unknown.size === 0) return;
    const keys = [...unknown];
    const values = await this.#engine.read(keys);
    for (const [at, key] of keys.entries()) this.#expected.learn(key, values[at]);
  }
}

function append(operations: Operation[], batch: Batch): void {
  for (const key of batch.deletes) operations.push({ type: "del", key });
  for (const { key, value } of batch.puts) operations.push({ type: "put", key, value });
}

function weigh(batch: Batch): { operations: number; bytes: number } {
  let bytes = 0;
  for (const { key, value } of batch.puts) bytes += key.length + value.length;
  return { operations: batch.puts.length + batch.deletes.length, bytes };
}
