// The last values of the keys that batches expect, so that the one key every batch expects (the epoch) is not read from
// disk each time. The store's writer is the only one who writes, so what it remembers is what is there.
//
// Keeps true: a remembered value is the one after all accepted batches, written or on their way; memory is bounded.
import { assert } from "../../base/assert.ts";
import type { Batch, Expectation } from "../store.ts";

const MAX_KEYS = 4_096;
const MAX_BYTES = 8 * 1024 * 1024;

export class ExpectedValues {
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
    if (found === null || value === null) return found === value;
    return Buffer.compare(found, value) === 0;
  }

  #set(key: string, value: Uint8Array | null): void {
    this.#bytes += (value?.length ?? 0) - (this.#values.get(key)?.length ?? 0);
    this.#values.set(key, value);
  }
}
