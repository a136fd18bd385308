// A first-in first-out queue with a maximum (C8). A full queue is the producer's to handle: it is told, nothing is dropped.

export class BoundedQueue<T> {
  #items: T[] = [];
  #head = 0;
  readonly #capacity: number;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#items.length - this.#head;
  }

  /** False when the queue is full: the item was not taken. */
  push(item: T): boolean {
    if (this.size >= this.#capacity) return false;
    this.#items.push(item);
    return true;
  }

  /** Up to `max` items in order of arrival. */
  take(max: number): T[] {
    const end = Math.min(this.#items.length, this.#head + max);
    const taken = this.#items.slice(this.#head, end);
    this.#head = end;
    if (this.#head === this.#items.length) {
      this.#items = [];
      this.#head = 0;
    } else if (this.#head > this.#capacity) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return taken;
  }
}
