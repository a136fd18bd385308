// Bytes that may be under way at once, over all who share the budget. Who finds none left waits in line, and does not read on
// meanwhile: so what waits for the disk is bounded (C8), however many workers deliver however much at once.

interface Waiting {
  readonly bytes: number;
  readonly admit: () => void;
}

export class ByteBudget {
  readonly #max: number;
  #taken = 0;
  #line: Waiting[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Resolves when there is room, in order of asking. What is larger than the whole budget goes alone. */
  take(bytes: number): Promise<void> {
    return new Promise((admit) => {
      this.#line.push({ bytes, admit });
      this.#admit();
    });
  }

  /** False when there is no room now, or somebody waits for it: then nothing is taken. */
  takeNow(bytes: number): boolean {
    if (this.#line.length > 0 || (this.#taken > 0 && this.#taken + bytes > this.#max)) return false;
    this.#taken += bytes;
    return true;
  }

  /** What was taken is not under way any more. */
  giveBack(bytes: number): void {
    this.#taken -= bytes;
    this.#admit();
  }

  #admit(): void {
    for (let next = this.#line[0]; next !== undefined; next = this.#line[0]) {
      if (this.#taken > 0 && this.#taken + next.bytes > this.#max) return;
      this.#taken += next.bytes;
      this.#line.shift();
      next.admit();
    }
  }
}
