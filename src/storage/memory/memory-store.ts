// The store in memory: the port's meaning in its simplest form, for tests and simulation. Nothing outlives it.
//
// Keeps true: a commit takes effect within the call, and bytes are copied both ways, so that nobody holds a part of it.
import { assertBatch, assertKey, assertOpen, assertRange, isSameValue, NO_GENERATION } from "../store.ts";
import type { Batch, CommitOutcome, Entry, Expectation, ScanRange, Store } from "../store.ts";

export class MemoryStore implements Store {
  readonly location = "memory";
  readonly supports = { multiProcess: false };
  readonly generation = NO_GENERATION;
  readonly #values = new Map<string, Uint8Array>();
  /** The same keys in ascending order. */
  readonly #keys: string[] = [];
  #everWritten = false;
  #open = true;

  /** A store that already holds `entries`. */
  constructor(entries: Iterable<Entry> = []) {
    for (const entry of entries) this.#put(entry);
    this.#everWritten = this.#keys.length > 0;
  }

  get everWritten(): boolean {
    return this.#everWritten;
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    assertOpen(this.#open, this.location);
    assertKey(key);
    return this.#values.get(key)?.slice();
  }

  async getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    assertOpen(this.#open, this.location);
    keys.forEach(assertKey);
    return keys.map((key) => this.#values.get(key)?.slice());
  }

  async scan(range: ScanRange): Promise<Entry[]> {
    assertOpen(this.#open, this.location);
    assertRange(range);
    return this.#entries(range);
  }

  async commit(batch: Batch): Promise<CommitOutcome> {
    assertOpen(this.#open, this.location);
    assertBatch(batch);
    for (const expectation of batch.expect) {
      if (!this.#holds(expectation)) return { kind: "conflict", key: expectation.key };
    }
    this.#everWritten = true;
    for (const key of batch.deletes) if (this.#values.delete(key)) this.#keys.splice(this.#indexOf(key), 1);
    for (const entry of batch.puts) this.#put(entry);
    return { kind: "committed" };
  }

  async close(): Promise<void> {
    this.#open = false;
  }

  #entries(range: ScanRange): Entry[] {
    const start = this.#indexOf(range.from);
    const end = Math.min(this.#indexOf(range.to), start + range.limit);
    const { bytesMax = Infinity } = range;
    let bytes = 0;
    return this.#keys.slice(start, end).flatMap((key) => {
      const value = this.#values.get(key);
      if (value === undefined || bytes > bytesMax) return [];
      bytes += key.length + value.length;
      return [{ key, value: value.slice() }];
    });
  }

  #holds({ key, value }: Expectation): boolean {
    return isSameValue(this.#values.get(key) ?? null, value);
  }

  #put({ key, value }: Entry): void {
    if (!this.#values.has(key)) this.#keys.splice(this.#indexOf(key), 0, key);
    this.#values.set(key, Uint8Array.from(value));
  }

  /** Where `key` stands, or would stand. */
  #indexOf(key: string): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#keys[middle] ?? "") < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
