// How many requests may be under way at a server that refuses what is too much for it, and how close they may follow one another:
// fewer by a share at a refusal, then slowly more (additive increase, multiplicative decrease). Nothing is held back before the
// first refusal, nor when what the server takes has been found to be as much as there is to send.
//
// Keeps true: refusals that come of the same excess count as one.
import type { Clock } from "../../../base/clock.ts";

/** A request under way. */
export interface Sent {
  readonly atMs: number;
  /** How many decreases there had been. */
  readonly decreases: number;
}

/** From the last decrease on. */
interface Growth {
  /** The width that was too much. */
  readonly ceiling: number;
  readonly from: number;
  /** In how long it comes back to the ceiling, in a line. */
  readonly byMs: number;
  /** Whether the width had grown to the ceiling, or was lowered to what may be far below or above what is just too much. */
  readonly isKnown: boolean;
  /** How long requests took by then, of which their distance is made. */
  readonly meanMs: number;
}

/** Kept of what was under way when it was too much: by how far is not known, or it is known to be just too much. */
const KEPT_AT_FIRST = 0.5;
const KEPT_AT_CEILING = 0.8;
/** A refusal of what has grown by so much since the last one has met the ceiling. */
const GROWN = 1.1;
/** Less than one request under way is a wait before the next one: of some rates a single connection is too fast. */
const WIDTH_MIN = 0.001;
const SPACING_MAX_MS = 30_000;
/** A refusal costs somebody `Retry-After`: what is known to be too much is not met often. */
const KNOWN_MIN_MS = 5_000;
const KNOWN_WAITS = 0.5;
const UNKNOWN_MIN_MS = 2_000;
const GROWTH_REQUESTS = 4;
/** A width of so many times the ceiling that nobody has refused shows that the ceiling is another: it doubles from there. */
const NEW_CEILING = 1.5;
const DOUBLING_MIN_MS = 1_000;
const DOUBLING_REQUESTS = 2;
/** The share of the time in which it grows so far that one answer may stand for: while nothing is sent nothing is learned. */
const STEP_MAX = 0.25;
/** The weight of the last request in the mean of how long requests take. */
const MEAN_SHARE = 0.0625;

export class Throttle {
  readonly #concurrency: number;
  readonly #clock: Clock;
  /** How many may be under way; a fraction in its last one. */
  #width: number;
  /** Undefined: nothing was refused, or it has grown to all that there is to send. */
  #growth: Growth | undefined;
  #grewAtMs = 0;
  #decreases = 0;
  #decreasedAtMs = Number.NEGATIVE_INFINITY;
  /** Whether the server has answered what was sent after the last decrease. */
  #hasAnswered = true;
  /** How long the server takes for what it answers, and of how many answers that is the mean. */
  #meanMs = 0;
  #answers = 0;

  constructor(concurrency: number, clock: Clock) {
    this.#concurrency = concurrency;
    this.#clock = clock;
    this.#width = concurrency;
  }

  /** Whether the server takes less than there is to send. */
  get isNarrow(): boolean {
    return this.#growth !== undefined;
  }

  /** Requests that may be under way; 1 or more. */
  get width(): number {
    return Math.ceil(this.#width);
  }

  /** Milliseconds from one request to the next; 0 when they may follow at once. */
  get spacingMs(): number {
    return this.#growth === undefined ? 0 : Math.min(SPACING_MAX_MS, this.#growth.meanMs / this.#width);
  }

  /** A request is sent now. */
  sent(): Sent {
    return { atMs: this.#clock.monotonicMs(), decreases: this.#decreases };
  }

  answered({ atMs, decreases }: Sent): void {
    const nowMs = this.#clock.monotonicMs();
    this.#answers++;
    this.#meanMs += Math.max(MEAN_SHARE, 1 / this.#answers) * (nowMs - atMs - this.#meanMs);
    if (decreases === this.#decreases) this.#hasAnswered = true;
    if (this.#growth === undefined) return;
    this.#grow(this.#growth, nowMs - this.#grewAtMs);
    this.#grewAtMs = nowMs;
  }

  /** `underWay`: requests, this one included. `askedMs`: for how long the server does not want to see it. */
  refused({ atMs, decreases }: Sent, underWay: number, askedMs: number): void {
    const nowMs = this.#clock.monotonicMs();
    // Sent before the last decrease; or after it, but the server has answered nothing since, and said that it would not.
    if (decreases !== this.#decreases) return;
    if (!this.#hasAnswered && nowMs - this.#decreasedAtMs < askedMs) return;
    // How long a refusal takes says little, but more than nothing.
    const meanMs = Math.max(1, this.#answers === 0 ? nowMs - atMs : this.#meanMs);
    const byMs = GROWTH_REQUESTS * meanMs;
    const before = this.#growth;
    if (before !== undefined && (before.isKnown || this.#width >= GROWN * before.from)) {
      const ceiling = this.#width;
      this.#width = Math.max(WIDTH_MIN, ceiling * KEPT_AT_CEILING);
      const knownByMs = Math.max(KNOWN_MIN_MS, KNOWN_WAITS * askedMs, byMs);
      this.#growth = { ceiling, from: this.#width, byMs: knownByMs, isKnown: true, meanMs: meanMs };
    } else {
      const ceiling = Math.min(this.#width, underWay);
      this.#width = Math.max(WIDTH_MIN, ceiling * KEPT_AT_FIRST);
      this.#growth = {
        ceiling,
        from: this.#width,
        byMs: Math.max(UNKNOWN_MIN_MS, byMs),
        isKnown: false,
        meanMs,
      };
    }
    this.#decreases++;
    [this.#decreasedAtMs, this.#grewAtMs, this.#hasAnswered] = [nowMs, nowMs, false];
  }

  #grow({ ceiling, from, byMs, isKnown }: Growth, forMs: number): void {
    if (this.#width < ceiling * (isKnown ? NEW_CEILING : 1))
      this.#width += (ceiling - from) * Math.min(forMs / byMs, STEP_MAX);
    else
      this.#width *=
        2 ** Math.min(forMs / Math.max(DOUBLING_MIN_MS, DOUBLING_REQUESTS * this.#meanMs), STEP_MAX);
    if (this.#width >= this.#concurrency) [this.#width, this.#growth] = [this.#concurrency, undefined];
  }
}
