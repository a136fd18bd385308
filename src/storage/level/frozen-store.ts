// A database as it is at one moment, to be read while it is written. It keeps all that it sees until it is closed.
import { assert } from "../../base/assert.ts";
import { assertKey, assertOpen, assertRange } from "../store.ts";
import type { CommitOutcome, Entry, ScanRange, Store } from "../store.ts";
import type { LevelEngine, Snapshot } from "./level-engine.ts";

export class FrozenStore implements Store {
  readonly location: string;
  readonly supports: Store["supports"];
  readonly everWritten: boolean;
  readonly generation: string;
  readonly #engine: LevelEngine;
  readonly #snapshot: Snapshot;
  #isOpen = true;

  constructor({ location, supports, everWritten, generation }: Store, engine: LevelEngine) {
    [this.location, this.supports] = [location, supports];
    [this.everWritten, this.generation] = [everWritten, generation];
    this.#engine = engine;
    this.#snapshot = engine.snapshot();
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    assertOpen(this.#isOpen, this.location);
    assertKey(key);
    return this.#engine.get(key, { snapshot: this.#snapshot });
  }

  async getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    assertOpen(this.#isOpen, this.location);
    keys.forEach(assertKey);
    return this.#engine.read(keys, { snapshot: this.#snapshot });
  }

  async scan(range: ScanRange): Promise<Entry[]> {
    assertOpen(this.#isOpen, this.location);
    assertRange(range);
    return this.#engine.scan(range, { snapshot: this.#snapshot });
  }

  async commit(): Promise<CommitOutcome> {
    assert(false, "nothing is written to a frozen store");
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    await this.#snapshot.close();
  }
}
