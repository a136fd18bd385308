// The memory that a simulated host has of its store: like `SeenFile`, without a file. It outlives the processes of its machine.
import { laterOf, NO_EXTENT, NOTHING_SEEN } from "../../src/coordinator/lead/store-memory.ts";
import type { Remembered, StoreExtent, StoreMemory } from "../../src/coordinator/lead/store-memory.ts";

export class SimMemory implements StoreMemory {
  #known: Remembered = NOTHING_SEEN;

  recall(): Promise<Remembered> {
    return Promise.resolve(this.#known);
  }

  note(seen: Partial<StoreExtent>): void {
    this.adopt({ ...NO_EXTENT, accepted: this.#known.accepted, ...seen });
  }

  adopt(accepted: Remembered): void {
    this.#known = laterOf(this.#known, accepted);
  }

  async keep(): Promise<void> {
    // It is kept at once.
  }

  accept({ completion, submitted, done }: StoreExtent): void {
    const { epoch, accepted } = this.#known;
    this.#known = { epoch, completion, submitted, done, accepted: accepted + 1 };
  }
}
