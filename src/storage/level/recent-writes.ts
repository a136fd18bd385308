// The last writes of a database with little to do, so that who follows closely reads them without a way to a thread and back: that way takes
// longer than all the rest of a read, and much longer where the machine is busy.
//
// Keeps true: what it knows of a key is what the last write of it left; its memory is bounded; of large writes it remembers nothing, and they
// cost nothing here.
import type { Operation } from "./level-writer.ts";

/** A write of more operations is one of many items: nobody reads them one by one. */
const OPERATIONS_MAX = 32;
const KEYS_MAX = 512;
const VALUE_MAX_BYTES = 4_096;

export class RecentWrites {
  /** Null: deleted. In order of their last write. */
  readonly #values = new Map<string, Uint8Array | null>();

  /** The database has taken them. */
  note(operations: readonly Operation[]): void {
    if (operations.length > OPERATIONS_MAX) return this.#values.clear();
    for (const operation of operations) {
      this.#values.delete(operation.key);
      if (operation.type === "del") this.#values.set(operation.key, null);
      else if (operation.value.length <= VALUE_MAX_BYTES)
        // A copy: from now on the bytes are their writer's again.
        this.#values.set(operation.key, Uint8Array.from(operation.value));
    }
    for (const key of this.#values.keys()) {
      if (this.#values.size <= KEYS_MAX) return;
      this.#values.delete(key);
    }
  }

  /** The values that a read of these would find; undefined when one of them is not known here. */
  read(keys: readonly string[]): (Uint8Array | undefined)[] | undefined {
    const found: (Uint8Array | undefined)[] = [];
    for (const key of keys) {
      const value = this.#values.get(key);
      if (value === undefined) return undefined;
      // A copy, as every reading gives one.
      found.push(value === null ? undefined : Uint8Array.from(value));
    }
    return found;
  }
}
