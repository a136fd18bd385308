// Bytes that may be under way at once, over all who share the budget: so those that wait for the disk are bounded (C8). Nobody
// waits for room: without room the bytes are done without.

export class ByteBudget {
  readonly #max: number;
  #taken = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** False when there is no room: then nothing is taken. A taking that is larger than the whole budget goes alone. */
  take(bytes: number): boolean {
    if (this.#taken > 0 && this.#taken + bytes > this.#max) return false;
    this.#taken += bytes;
    return true;
  }

  /** These bytes were taken, and are not under way any more. */
  free(bytes: number): void {
    this.#taken -= bytes;
  }
}
