// A confidence sequence for a rate: the beta-binomial mixture with Beta(½, ½), as in "Time-uniform, nonparametric, nonasymptotic
// confidence sequences" (Annals of Statistics, 2021).
//
// Keeps true: with chance 1 - alpha the true rate is in the interval after every observation at once, however often one looks.
import type { Interval } from "./interval.ts";
import { logGamma } from "./log-gamma.ts";

/** `k` of `n` observations were bad. The two say everything: the order does not matter. */
export interface RateCounts {
  readonly kind: "rate";
  n: number;
  k: number;
}

/** More steps than any counts take; far fewer are the rule. */
const STEPS_MAX = 64;
const PRECISION = 1e-13;
const LOG_PI = Math.log(Math.PI);

export function emptyRate(): RateCounts {
  return { kind: "rate", n: 0, k: 0 };
}

export function addToRate(counts: RateCounts, isBad: boolean): void {
  counts.n++;
  if (isBad) counts.k++;
}

/** Rates that are possible, all but a chance of `alpha`: any before the first observation. */
export function rateBounds({ n, k }: Readonly<RateCounts>, alpha: number): Interval {
  const threshold = logMixture(n, k) + Math.log(alpha);
  return { lower: lowerBound(n, k, threshold), upper: 1 - lowerBound(n, n - k, threshold) };
}

/**
 * The logarithm of the chance that the mixture gives to one sequence of `n` with `k`: B(k + ½, n - k + ½) / B(½, ½).
 * @internal
 */
export function logMixture(n: number, k: number): number {
  return logGamma(k + 0.5) + logGamma(n - k + 0.5) - logGamma(n + 1) - LOG_PI;
}

/**
 * The rate below k/n whose own chance for the sequence is just so much smaller than the mixture's. The function is convex, so Newton's
 * steps from the left stay on the left: an iterate that is not exact makes the interval wider, never narrower.
 */
function lowerBound(n: number, k: number, threshold: number): number {
  if (k === 0) return 0;
  let rate = Math.exp(threshold / k);
  for (let step = 0; step < STEPS_MAX; step++) {
    const excess = threshold - k * Math.log(rate) - (n - k) * Math.log1p(-rate);
    const slope = k / rate - (n - k) / (1 - rate);
    const move = excess / slope;
    // Also where rounding has turned it round, at the root itself.
    if (!(move > rate * PRECISION)) break;
    rate += move;
  }
  return Math.min(rate, k / n);
}
