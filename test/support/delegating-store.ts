// A store that is another one, to be changed where a test wants it changed.
import type { Batch, CommitOutcome, Entry, ScanRange, Store } from "../../src/storage/store.ts";

export class DelegatingStore implements Store {
  readonly #inner: Store;

  constructor(inner: Store) {
    this.#inner = inner;
  }

  get location(): string {
    return this.#inner.location;
  }

  get supports(): Store["supports"] {
    return this.#inner.supports;
  }

  get everWritten(): boolean {
    return this.#inner.everWritten;
  }

  get generation(): string {
    return this.#inner.generation;
  }

  get(key: string): Promise<Uint8Array | undefined> {
    return this.#inner.get(key);
  }

  getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    return this.#inner.getMany(keys);
  }

  scan(range: ScanRange): Promise<Entry[]> {
    return this.#inner.scan(range);
  }

  commit(batch: Batch): Promise<CommitOutcome> {
    return this.#inner.commit(batch);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}
