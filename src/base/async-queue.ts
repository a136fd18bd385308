// From code that produces at once to code that iterates when it can: the outgoing side of a stream. Bounded (C8): a
// reader that does not keep up is the producer's to handle.
import { assert } from "./assert.ts";

/** A bound beside the number of items, for those of very different sizes. */
interface Scale<T> {
  readonly max: number;
  /** The same for the same item. */
  readonly weigh: (item: T) => number;
}

export class AsyncQueue<T> implements AsyncIterable<T> {
  readonly #capacity: number;
  readonly #scale: Scale<T> | undefined;
  #items: T[] = [];
  /** The sum over items that were pushed and are not read. */
  #weight = 0;
  #ended = false;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(capacity: number, scale?: Scale<T>) {
    this.#capacity = capacity;
    this.#scale = scale;
  }

  /** False when the queue is full or has ended: the item was not taken. One item fits into an empty queue whatever it weighs. */
  push(item: T): boolean {
    if (this.#ended || this.#items.length >= this.#capacity) return false;
    const weight = this.#scale?.weigh(item) ?? 0;
    if (this.#scale !== undefined && this.#weight > 0 && this.#weight + weight > this.#scale.max)
      return false;
    this.#weight += weight;
    this.#items.push(item);
    this.#wake?.();
    return true;
  }

  /** Items that were pushed are still read; then the iteration ends, or throws `failure`. The first call counts. */
  end(failure?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#failure = failure;
    this.#wake?.();
  }

  /** For one reader. Leaving the loop ends the queue. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    assert(this.#wake === undefined, "an async queue has one reader");
    try {
      for (;;) {
        const items = this.#items;
        this.#items = [];
        for (const item of items) {
          this.#weight -= this.#scale?.weigh(item) ?? 0;
          yield item;
        }
        if (this.#items.length > 0) continue;
        if (this.#ended) break;
        await new Promise<void>((resolve) => (this.#wake = resolve));
        this.#wake = undefined;
      }
      if (this.#failure !== undefined) throw this.#failure;
    } finally {
      this.#ended = true;
      this.#items = [];
    }
  }
}
