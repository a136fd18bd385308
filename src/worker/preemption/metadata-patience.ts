// How long a question to the metadata server may take. Short at first, so that one that hangs hides a notice for a moment only;
// longer, step by step, while the server is silent, so that one that is slow is heard in the end.

/** A server that takes longer than this is of no use: the shortest notice has 30 s. */
export const PATIENCE_MAX_MS = 10_000;
const GROWTH = 2;

export class Patience {
  readonly #quickMs: number;
  #timeoutMs: number;

  /** `isSlow`: the server is known to be. */
  constructor(quickMs: number, isSlow: boolean) {
    this.#quickMs = quickMs;
    this.#timeoutMs = isSlow ? PATIENCE_MAX_MS : quickMs;
  }

  get timeoutMs(): number {
    return this.#timeoutMs;
  }

  /** There was no answer in that time. */
  tooShort(): void {
    this.#timeoutMs = Math.min(this.#timeoutMs * GROWTH, PATIENCE_MAX_MS);
  }

  /** There was one, after so long. */
  answered(afterMs: number): void {
    if (afterMs <= this.#quickMs) this.#timeoutMs = this.#quickMs;
  }
}
