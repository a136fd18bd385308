// Time that stands still until a test moves it. Timers run in the order in which they are due, those of one moment in the
// order in which they were armed, and between two of them every promise that can settle has settled.
//
// Keeps true: the same calls give the same run. Real I/O is not part of it: what waits for a socket or a disk is not
// waited for.
import { assert } from "../../src/base/assert.ts";
import type { Clock, Timer } from "../../src/base/clock.ts";

interface Armed {
  readonly dueMs: number;
  readonly callback: () => void;
}

interface VirtualClockOptions {
  /** Where the monotonic time begins; far from the wall time, so that taking one for the other shows. */
  readonly monotonicMs?: number;
  readonly wallMs?: number;
}

/** So many callbacks in one `advance` mean that the code under test re-arms itself without waiting. */
const CALLBACKS_MAX = 100_000;

export class VirtualClock implements Clock {
  #nowMs: number;
  #wallOffsetMs: number;
  /** In the order of arming. */
  readonly #armed = new Set<Armed>();
  #turns: (() => void)[] = [];
  #advancing = false;

  constructor({ monotonicMs = 7_000, wallMs = Date.UTC(2026, 0, 1) }: VirtualClockOptions = {}) {
    this.#nowMs = monotonicMs;
    this.#wallOffsetMs = wallMs - monotonicMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs + this.#wallOffsetMs;
  }

  after(delayMs: number, callback: () => void): Timer {
    assert(!Number.isNaN(delayMs), "a timer has a delay");
    const armed = { dueMs: this.#nowMs + Math.max(delayMs, 0), callback };
    this.#armed.add(armed);
    return { cancel: () => void this.#armed.delete(armed) };
  }

  nextTurn(callback: () => void): void {
    this.#turns.push(callback);
  }

  /** How many timers are armed. */
  get armed(): number {
    return this.#armed.size;
  }

  /** How long until the next timer is due; undefined when none is armed. */
  get nextDueInMs(): number | undefined {
    const next = this.#next();
    return next && next.dueMs - this.#nowMs;
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
      await this.#runUntil(this.#nowMs + byMs);
    } finally {
      this.#advancing = false;
    }
  }

  /** Somebody sets the wall clock. Nothing else notices. */
  jumpWall(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  async #runUntil(endMs: number): Promise<void> {
    for (let callbacks = 0; callbacks < CALLBACKS_MAX; callbacks++) {
      await settle();
      const turn = this.#turns.shift();
      if (turn !== undefined) {
        turn();
        continue;
      }
      const next = this.#next();
      if (next === undefined || next.dueMs > endMs) {
        this.#nowMs = endMs;
        return;
      }
      this.#armed.delete(next);
      this.#nowMs = next.dueMs;
      next.callback();
    }
    assert(false, `${CALLBACKS_MAX} callbacks and time did not move on`);
  }

  #next(): Armed | undefined {
    let next: Armed | undefined;
    for (const armed of this.#armed) if (next === undefined || armed.dueMs < next.dueMs) next = armed;
    return next;
  }
}

/** Every promise that can settle settles before the loop's next turn. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
