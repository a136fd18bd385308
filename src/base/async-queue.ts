// From code that produces at once to code that iterates when it can: the outgoing side of a stream. Bounded (C8): a
// reader that does not keep up is the producer's to handle.
import { assert } from "./assert.ts";

export class AsyncQueue<T> implements AsyncIterable<T> {
  readonly #capacity: number;
  #items: T[] = [];
  #ended = false;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** False when the queue is full or has ended: the item was not taken. */
  push(item: T): boolean {
    if (this.#ended || this.#items.length >= this.#capacity) return false;
    this.#items.push(item);
    this.#wake?.();
    return true;
  }

  /** What was pushed is still read; then the iteration ends, or throws `failure`. The first call counts. */
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
        yield* items;
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
