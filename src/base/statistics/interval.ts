// An interval of values that a set of observations leaves possible, and what two of them say of a difference.

export interface Interval {
  readonly lower: number;
  readonly upper: number;
}

/** Nothing is known of a value between 0 and 1. */
export const UNIT_INTERVAL: Interval = Object.freeze({ lower: 0, upper: 1 });

/** Every difference that the two leave possible. Both must hold at once: give each half of what may go wrong. */
export function differenceOf(minuend: Interval, subtrahend: Interval): Interval {
  return { lower: minuend.lower - subtrahend.upper, upper: minuend.upper - subtrahend.lower };
}

/** The part of it between 0 and 1. */
export function withinUnit({ lower, upper }: Interval): Interval {
  return { lower: Math.min(1, Math.max(0, lower)), upper: Math.max(0, Math.min(1, upper)) };
}
