// The one writer of a LevelDB. LevelDB has no compare-and-swap of its own, so all batches go through here, one group
// after the other (src/storage/group-commit.ts).
//
// Keeps true: expectations see everything before them; after the first write that failed nothing more is written.
import { assert } from "../../base/assert.ts";
import type { GroupWriter } from "../group-commit.ts";
import { isSameValue } from "../store.ts";
import type { Batch, CommitOutcome, Expectation } from "../store.ts";

/** The database, as the writer needs it. */
export interface Engine {
  read(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]>;
  /** Atomic. Rejects with the reason for good, as an error of the table; then the outcome is unknown. */
  write(operations: Operation[], sync: boolean): Promise<void>;
}

export type Operation =
  | { readonly type: "put"; readonly key: string; readonly value: Uint8Array }
  | { readonly type: "del"; readonly key: string };

export class LevelWriter implements GroupWriter {
  readonly #engine: Engine;
  readonly #expected = new ExpectedValues();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async write(group: readonly Batch[]): Promise<readonly CommitOutcome[]> {
    await this.#learnExpected(group);
    const operations: Operation[] = [];
    const outcomes = group.map((batch) => this.#decide(batch, operations));
    const sync = group.some(
      ({ durability }, at) => durability === "sync" && outcomes[at]?.kind === "committed",
    );
    // An empty batch that wants a sync still gets one: what was flushed before it is on the disk when it is answered.
    if (operations.length > 0 || sync) await this.#engine.write(operations, sync);
    this.#expected.trim();
    return outcomes;
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
  async #learnExpected(group: readonly Batch[]): Promise<void> {
    const unknown = new Set<string>();
    for (const { expect } of group) {
      for (const { key } of expect) if (!this.#expected.knows(key)) unknown.add(key);
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

// The last values of the keys that batches expect, so that the one key every batch expects (the epoch) is not read from
// disk each time. The store's writer is the only one who writes, so what it remembers is what is there.
//
// Keeps true: a remembered value is the one after all accepted batches, written or on their way; memory is bounded.

const MAX_KEYS = 4_096;
const MAX_BYTES = 8 * 1024 * 1024;

class ExpectedValues {
  /** Null: known to be absent. In order of last use. */
  readonly #values = new Map<string, Uint8Array | null>();
  #bytes = 0;

  knows(key: string): boolean {
    return this.#values.has(key);
  }

  /** Takes a value that was read from disk while nothing was on its way there. */
  learn(key: string, value: Uint8Array | undefined): void {
    this.#set(key, value ?? null);
  }

  /** The first key that does not hold what is expected. Every key must be known. */
  firstMismatch(expect: readonly Expectation[]): string | undefined {
    return expect.find((expectation) => !this.#holds(expectation))?.key;
  }

  /** An accepted batch changes what is known, and only that. */
  apply(batch: Batch): void {
    for (const key of batch.deletes) if (this.#values.has(key)) this.#set(key, null);
    for (const { key, value } of batch.puts)
      if (this.#values.has(key)) this.#set(key, Uint8Array.from(value));
  }

  /** Forgets what was not used for longest. Between groups only: within one, what was learnt is still needed. */
  trim(): void {
    for (const [key, value] of this.#values) {
      if (this.#values.size <= MAX_KEYS && this.#bytes <= MAX_BYTES) return;
      this.#values.delete(key);
      this.#bytes -= value?.length ?? 0;
    }
  }

  #holds({ key, value }: Expectation): boolean {
    const found = this.#values.get(key);
    assert(found !== undefined, `an expected value is known before it is compared: ${key}`);
    this.#values.delete(key);
    this.#values.set(key, found);
    return isSameValue(found, value);
  }

  #set(key: string, value: Uint8Array | null): void {
    this.#bytes += (value?.length ?? 0) - (this.#values.get(key)?.length ?? 0);
    this.#values.set(key, value);
  }
}
