// Somebody who submits items one by one, and follows what becomes of them.
import { systemClock } from "../../src/base/clock.ts";

export interface Followed {
  /** Resolves with the moment at which the result of the item is known, monotonic. */
  readonly submit: () => Promise<number>;
}

/** Items whose results are not known yet, by name. */
export class Awaited {
  readonly #known = new Map<string, (atMs: number) => void>();

  wait(name: string): Promise<number> {
    return new Promise((resolve) => this.#known.set(name, resolve));
  }

  tell(name: string): void {
    this.#known.get(name)?.(systemClock.monotonicMs());
    this.#known.delete(name);
  }
}
