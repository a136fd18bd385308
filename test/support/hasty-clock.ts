// A clock on which waits are over sooner, so that a test need not wait for the patience of what it looks at.
import type { Clock } from "../../src/base/clock.ts";
import { systemClock } from "../../src/base/clock.ts";

/** Its time goes `factor` times as fast; its wall clock shows what others show. */
export function hastyClock(factor: number): Clock {
  return {
    monotonicMs: () => systemClock.monotonicMs() * factor,
    wallMs: () => systemClock.wallMs(),
    after: (delayMs, callback, options) => systemClock.after(delayMs / factor, callback, options),
    nextTurn: (callback) => systemClock.nextTurn(callback),
  };
}
