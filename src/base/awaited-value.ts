// A value that changes, and callers who wait until it has changed far enough for them: what a call waits for in place of being asked
// again and again.
//
// Keeps true: nobody misses a change between looking at the value and beginning to wait; a caller who is gone, or one of too many, is
// not waited with (C8).
import type { Clock } from "./clock.ts";

/** Callers who wait at the same time: each holds a call open. */
const WAITING_MAX = 1_024;

export interface Patience {
  readonly clock: Clock;
  readonly waitMs: number;
  /** The caller has gone. */
  readonly signal: AbortSignal;
}

export class AwaitedValue<Value> {
  readonly #waiting = new Map<() => void, (value: Value) => boolean>();
  #value: Value | undefined;

  /** The last that was told; undefined before the first. */
  get value(): Value | undefined {
    return this.#value;
  }

  /** Wakes those for whom it is enough. */
  tell(value: Value): void {
    this.#value = value;
    for (const [wake, isEnough] of this.#waiting) if (isEnough(value)) wake();
  }

  /**
   * Resolves with true when a value was told that is enough, be it before; with false when the time is over, the signal aborts, or too
   * many wait already. Never rejects.
   */
  until(isEnough: (value: Value) => boolean, { clock, waitMs, signal }: Patience): Promise<boolean> {
    if (this.#value !== undefined && isEnough(this.#value)) return Promise.resolve(true);
    if (signal.aborted || waitMs <= 0 || this.#waiting.size >= WAITING_MAX) return Promise.resolve(false);
    return new Promise((resolve) => {
      const end = (isThere: boolean): void => {
        this.#waiting.delete(wake);
        timer.cancel();
        signal.removeEventListener("abort", giveUp);
        resolve(isThere);
      };
      const wake = (): void => end(true);
      const giveUp = (): void => end(false);
      const timer = clock.after(waitMs, giveUp, { background: true });
      signal.addEventListener("abort", giveUp);
      this.#waiting.set(wake, isEnough);
    });
  }
}
