// Where all requests of a worker pass: so many at once, in the order in which they came, and none while nobody is there to ask.
// How many a server takes that refuses some of them is in throttle.ts.
//
// Keeps true: setbacks of requests that were under way together count as one.
import { assert } from "../../../base/assert.ts";
import { backoffMs } from "../../../base/random.ts";
import type { Clock, Timer } from "../../../base/clock.ts";
import type { Random, BackoffRange } from "../../../base/random.ts";
import { Throttle } from "./throttle.ts";
import type { Sent } from "./throttle.ts";

export interface GateOptions {
  /** How many may pass at once; 1 or more. */
  readonly concurrency: number;
  readonly clock: Clock;
  readonly random: Random;
}

/** One passage, to be given back. */
export interface Passage extends Sent {
  /** How many pauses there had been. */
  readonly pauses: number;
}

const PAUSE: BackoffRange = { baseMs: 1_000, ceilingMs: 30_000 };
/** Requests that waited for the same moment do not come at the same moment. */
const SPREAD = 0.1;

export class Gate {
  readonly #options: GateOptions;
  readonly #throttle: Throttle;
  readonly #waiting = new Set<() => void>();
  #passing = 0;
  /** How many may pass since somebody is there again. */
  #width: number;
  #pauses = 0;
  /** In a row. */
  #setbacks = 0;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;
  /** When the next one may pass, by the distance that the throttle wants. */
  #nextAtMs = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#throttle = new Throttle(options.concurrency, options.clock);
    this.#width = options.concurrency;
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
        settle({ pauses: this.#pauses, ...this.#throttle.sent() });
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

  /** The server has answered. Before `leave`. */
  succeeded(passage: Passage): void {
    this.#setbacks = 0;
    this.#width = Math.min(this.#options.concurrency, this.#width + 1);
    this.#throttle.answered(passage);
    this.#pump();
  }

  /** The server does not want to see this request for so long: fewer pass from now on. Before `leave`. */
  refused(passage: Passage, forMs: number): void {
    this.#throttle.refused(passage, this.#passing, forMs);
  }

  /** Nobody is there: nobody passes for `forMs`, or for as long as setbacks in a row deserve; then one, to look. */
  pause(passage: Passage, forMs?: number): void {
    const { clock, random } = this.#options;
    if (passage.pauses === this.#pauses) {
      this.#pauses++;
      this.#setbacks++;
      this.#width = 1;
      forMs ??= backoffMs(PAUSE, this.#setbacks, random);
    }
    if (forMs === undefined) return;
    const spreadMs = forMs * SPREAD * random.unit();
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, clock.monotonicMs() + forMs + spreadMs);
    this.#pump();
  }

  /** Whether the next one passes at once. */
  get isOpen(): boolean {
    return this.pausedForMs === 0 && this.#waiting.size === 0 && this.#hasRoom();
  }

  /** Whether the server takes less than there is to send. */
  get isThrottled(): boolean {
    return this.#throttle.isNarrow;
  }

  /** Milliseconds until requests may pass again; 0 when they may. */
  get pausedForMs(): number {
    const nextMs = Math.max(this.#pausedUntilMs, this.#throttle.isNarrow ? this.#nextAtMs : 0);
    return Math.max(0, nextMs - this.#options.clock.monotonicMs());
  }

  #hasRoom(): boolean {
    return this.#passing < Math.min(this.#width, this.#throttle.width);
  }

  #pump(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    for (const pass of this.#waiting) {
      const pausedForMs = this.pausedForMs;
      if (pausedForMs > 0) {
        this.#timer = this.#options.clock.after(pausedForMs, () => this.#pump());
        return;
      }
      if (!this.#hasRoom()) return;
      this.#nextAtMs = this.#options.clock.monotonicMs() + this.#throttle.spacingMs;
      pass();
    }
  }
}
