// How many items became final in each of the last seconds, for people who watch. Bounded (C8); time comes from the turns.

/** One more than is shown: the current second. */
const SECONDS = 61;

export class Pulse {
  readonly #beganMs: number;
  /** The second `n` stands at `n % SECONDS`; seconds from `#second - SECONDS + 1` to `#second` are here. */
  readonly #counts = new Array<number>(SECONDS).fill(0);
  /** The latest one that was touched, counted from the beginning. */
  #second = 0;

  /** `nowMs` is the moment of leading; monotonic, as all times here. */
  constructor(nowMs: number) {
    this.#beganMs = nowMs;
  }

  count(nowMs: number, finished: number): void {
    const at = this.#advance(nowMs) % SECONDS;
    this.#counts[at] = (this.#counts[at] ?? 0) + finished;
  }

  /**
   * Counts of the whole seconds that have passed, latest last; fewer when there have been fewer. The current one is not over
   * yet.
   */
  read(nowMs: number): number[] {
    const current = this.#advance(nowMs);
    const length = Math.min(current, SECONDS - 1);
    return Array.from({ length }, (_, at) => this.#counts[(current - length + at) % SECONDS] ?? 0);
  }

  /** The current second. Seconds that were skipped are empty. */
  #advance(nowMs: number): number {
    const current = Math.floor((nowMs - this.#beganMs) / 1_000);
    const skipped = Math.min(current - this.#second, SECONDS);
    for (let step = 0; step < skipped; step++) this.#counts[(current - step) % SECONDS] = 0;
    this.#second = Math.max(this.#second, current);
    return this.#second;
  }
}
