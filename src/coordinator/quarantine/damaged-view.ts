// A store with rows that cannot be read, as it would be without them: each is gone, or stands as it can be made again. Nothing is
// written; the store must not change meanwhile.
import type { Damage } from "../../storage/codec.ts";
import type { CommitOutcome, Entry, ScanRange, Store } from "../../storage/store.ts";
import { nextKey } from "../../storage/store.ts";
import { substituteFor } from "./substitute.ts";

export class DamagedView implements Store {
  readonly location: string;
  readonly supports: Store["supports"];
  readonly everWritten: boolean;
  readonly #store: Store;
  /** Null: gone. */
  readonly #instead: ReadonlyMap<string, Uint8Array | null>;

  private constructor(store: Store, instead: ReadonlyMap<string, Uint8Array | null>) {
    this.location = store.location;
    this.supports = store.supports;
    this.everWritten = store.everWritten;
    this.#store = store;
    this.#instead = instead;
  }

  static async over(store: Store, damages: readonly Damage[]): Promise<DamagedView> {
    const instead = new Map<string, Uint8Array | null>();
    for (const { key } of damages) {
      const substitute = await substituteFor(store, key);
      if (substitute.kind !== "vital") instead.set(key, substitute.kind === "row" ? substitute.bytes : null);
      // Without its id an item cannot be told of at all.
      else if (!key.startsWith("meta/")) instead.set(key, null);
    }
    return new DamagedView(store, instead);
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    const instead = this.#instead.get(key);
    return instead === undefined ? this.#store.get(key) : (instead ?? undefined);
  }

  getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    return Promise.all(keys.map((key) => this.get(key)));
  }

  async scan(range: ScanRange): Promise<Entry[]> {
    const found: Entry[] = [];
    for (let { from } = range; ;) {
      const limit = range.limit - found.length;
      const page = await this.#store.scan({ ...range, from, limit });
      for (const { key, value } of page) {
        const instead = this.#instead.get(key);
        if (instead !== null) found.push({ key, value: instead ?? value });
      }
      const last = page.at(-1);
      if (last === undefined || page.length < limit || found.length >= range.limit) return found;
      from = nextKey(last.key);
    }
  }

  commit(): Promise<CommitOutcome> {
    return Promise.resolve({ kind: "unknown", cause: new Error("a view of a damaged store is only read") });
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}
