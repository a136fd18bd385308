// Where all requests of a worker pass: so many at once, in the order in which they came, and none while the server asked to
// be left alone. What it refuses makes fewer pass, what it answers makes more.
//
// Keeps true: setbacks of requests that were under way together count as one.
import { assert } from "../../../base/assert.ts";
import { backoffMs } from "../../../base/backoff.ts";
import type { BackoffRange } from "../../../base/backoff.ts";
import type { Clock, Timer } from "../../../base/clock.ts";
import type { Random } from "../../../base/random.ts";

export interface GateOptions {
  /** How many may pass at once; 1 or more. */
  readonly concurrency: number;
  readonly clock: Clock;
  readonly random: Random;
}

/** One passage, to be given back. */
export interface Passage {
  /** How many pauses there had been. */
  readonly pauses: number;
}

/** Why the server is left alone: it asked for it, or nobody is there. */
export type Setback = "throttled" | "absent";

const PAUSE: BackoffRange = { baseMs: 1_000, ceilingMs: 30_000 };
/** Those who waited for the same moment do not come at the same moment. */
const SPREAD = 0.1;

export class Gate {
  readonly #options: GateOptions;
  readonly #waiting = new Set<() => void>();
  #passing = 0;
  /** How many may pass now; grows in fractions. */
  #width: number;
  /** Up to it the width doubles; beyond it grows by one in the time of a request. */
  #knownWidth: number;
  #pauses = 0;
  /** In a row. */
  #setbacks = 0;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#width = options.concurrency;
    this.#knownWidth = options.concurrency;
  }

  /** Resolves when it may pass; undefined when `signal` aborts before. */
  enter(signal: AbortSignal): Promise<Passage | undefined> {
    if (signal.aborted) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const settle = (passage: Passage | undefined): void => {
        this.#waiting.delete(pass);
        signal.removeEventListener("abort", giveUp);
        resolve(passage);
      };
      const pass = (): void => {
        this.#passing++;
        settle({ pauses: this.#pauses });
      };
      const giveUp = (): void => {
        settle(undefined);
        this.#pump();
      };
      signal.addEventListener("abort", giveUp);
      this.#waiting.add(pass);
      this.#pump();
    });
  }

  /** Once for each passage. */
  leave(): void {
    assert(this.#passing > 0, "who leaves has entered");
    this.#passing--;
    this.#pump();
  }

  /** The server has answered. */
  succeeded(): void {
    this.#setbacks = 0;
    const { concurrency } = this.#options;
    const growth = this.#width < this.#knownWidth ? 1 : 1 / this.#width;
    this.#width = Math.min(concurrency, this.#width + growth);
    this.#pump();
  }

  /** Nobody passes for `forMs`, or for as long as setbacks in a row deserve. */
  pause(passage: Passage, setback: Setback, forMs?: number): void {
    const { clock, random } = this.#options;
    if (passage.pauses === this.#pauses) {
      this.#pauses++;
      this.#setbacks++;
      const half = Math.max(1, Math.floor(this.#width / 2));
      if (setback === "throttled") this.#knownWidth = half;
      this.#width = setback === "throttled" ? half : 1;
      forMs ??= backoffMs(PAUSE, this.#setbacks, random);
    }
    if (forMs === undefined) return;
    const spreadMs = forMs * SPREAD * random.unit();
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, clock.monotonicMs() + forMs + spreadMs);
    this.#pump();
  }

  /** Whether the next one passes at once. */
  get isOpen(): boolean {
    return this.pausedForMs === 0 && this.#waiting.size === 0 && this.#passing < Math.floor(this.#width);
  }

  /** Milliseconds until requests may pass again; 0 when they may. */
  get pausedForMs(): number {
    return Math.max(0, this.#pausedUntilMs - this.#options.clock.monotonicMs());
  }

  #pump(): void {
    const pausedForMs = this.pausedForMs;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (pausedForMs > 0) {
      if (this.#waiting.size === 0) return;
      this.#timer = this.#options.clock.after(pausedForMs, () => this.#pump());
      return;
    }
    for (const pass of this.#waiting) {
      if (this.#passing >= Math.floor(this.#width)) return;
      pass();
    }
  }
}
