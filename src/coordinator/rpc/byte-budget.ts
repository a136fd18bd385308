// Bytes that may be under way at once, over all who share the budget: so what waits for the disk is bounded (C8). Nobody waits for
// room: what there is none for is done without.

export class ByteBudget {
  readonly #max: number;
  #taken = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** False when there is no room: then nothing is taken. What is larger than the whole budget goes alone. */
  take(bytes: number): boolean {
    if (this.#taken > 0 && this.#taken + bytes > this.#max) return false;
    this.#taken += bytes;
    return true;
  }

  /** What was taken is not under way any more. */
  free(bytes: number): void {
    this.#taken -= bytes;
  }
}
