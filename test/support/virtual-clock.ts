// Time that stands still until a test moves it. Timers run in the order in which they are due, those of one moment in the
// order in which they were armed, and between two of them every promise that can settle has settled (`Timeline`).
//
// Keeps true: the same calls give the same run.
import { assert } from "../../src/base/assert.ts";
import type { Clock, Timer } from "../../src/base/clock.ts";
import { settle } from "./settle.ts";
import { Timeline } from "./timeline.ts";

interface VirtualClockOptions {
  /** Where the monotonic time begins; far from the wall time, so that taking one for the other shows. */
  readonly monotonicMs?: number;
  readonly wallMs?: number;
}

/** So many callbacks in one `advance` mean that the code under test re-arms itself without waiting. */
const CALLBACKS_MAX = 100_000;

export class VirtualClock implements Clock {
  readonly #timeline: Timeline;
  #wallOffsetMs: number;
  #advancing = false;

  constructor({ monotonicMs = 7_000, wallMs = Date.UTC(2026, 0, 1) }: VirtualClockOptions = {}) {
    this.#timeline = new Timeline(monotonicMs);
    this.#wallOffsetMs = wallMs - monotonicMs;
  }

  monotonicMs(): number {
    return this.#timeline.nowMs;
  }

  wallMs(): number {
    return this.#timeline.nowMs + this.#wallOffsetMs;
  }

  after(delayMs: number, callback: () => void): Timer {
    assert(!Number.isNaN(delayMs), "a timer has a delay");
    return this.#timeline.at(this.#timeline.nowMs + delayMs, callback);
  }

  nextTurn(callback: () => void): void {
    this.#timeline.turn(callback);
  }

  /** How many timers are armed. */
  get armed(): number {
    return this.#timeline.armed;
  }

  /** How long until the next timer is due; undefined when none is armed. */
  get nextDueInMs(): number | undefined {
    const { nextAtMs, nowMs } = this.#timeline;
    return nextAtMs === undefined ? undefined : nextAtMs - nowMs;
  }

  /**
   * Lets `byMs` pass. Callbacks due in that time are run at their own moments, those that they arm included, and those due at the
   * end as well; `advance(0)` runs what can run now. Rejects with what a callback throws.
   */
  async advance(byMs = 0): Promise<void> {
    assert(byMs >= 0, "time does not go back");
    assert(!this.#advancing, "one at a time moves the clock");
    this.#advancing = true;
    try {
      await this.#runUntil(this.#timeline.nowMs + byMs);
    } finally {
      this.#advancing = false;
    }
  }

  /** Somebody sets the wall clock. Nothing else notices. */
  jumpWall(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  async #runUntil(endMs: number): Promise<void> {
    await settle();
    for (let callbacks = 0; callbacks < CALLBACKS_MAX; callbacks++)
      if (!(await this.#timeline.step(endMs))) return this.#timeline.passTo(endMs);
    assert(false, `${CALLBACKS_MAX} callbacks and time did not move on`);
  }
}
