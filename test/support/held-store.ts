// A store whose commits wait for the test: each takes effect and is answered when it is let go, in the order of the calls.
import assert from "node:assert/strict";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import type { Batch, CommitOutcome, Entry } from "../../src/storage/store.ts";
import { DelegatingStore } from "./delegating-store.ts";

interface HeldCommit {
  readonly batch: Batch;
  readonly answer: (outcome: CommitOutcome) => void;
}

export class HeldStore extends DelegatingStore {
  readonly inner: MemoryStore;
  /** Every batch that was handed over. */
  readonly batches: Batch[] = [];
  readonly #held: HeldCommit[] = [];

  constructor(entries: Iterable<Entry> = []) {
    const inner = new MemoryStore(entries);
    super(inner);
    this.inner = inner;
  }

  /** How many commits wait. */
  get held(): number {
    return this.#held.length;
  }

  override commit(batch: Batch): Promise<CommitOutcome> {
    this.batches.push(batch);
    return new Promise((answer) => void this.#held.push({ batch, answer }));
  }

  /** Lets the oldest commit go. */
  async release(): Promise<void> {
    const { batch, answer } = this.#next();
    answer(await this.inner.commit(batch));
  }

  /** The oldest commit is answered so, and not executed. */
  answer(outcome: CommitOutcome): void {
    this.#next().answer(outcome);
  }

  #next(): HeldCommit {
    const next = this.#held.shift();
    assert(next !== undefined, "a commit waits");
    return next;
  }
}
