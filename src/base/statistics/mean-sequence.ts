// A confidence sequence for the mean of numbers between 0 and 1: empirical Bernstein with predictable weights, as in "Estimating means of
// bounded random variables by betting" (arXiv 2010.09686) and in its package confseq. No intersection over time is taken: the state is
// these sums and nothing else.
//
// Keeps true: with chance 1 - alpha the true mean is in the interval after every observation at once, however often one looks.
// The sums depend on the order of the observations and on alpha, so they are kept and never counted again.
import { UNIT_INTERVAL, withinUnit } from "./interval.ts";
import type { Interval } from "./interval.ts";

export interface MeanCounts {
  readonly kind: "mean";
  n: number;
  /** Σλ, where λ is the weight of an observation, chosen before it is seen. */
  weights: number;
  /** Σλx */
  weighted: number;
  /** Σψ(λ)v, where v is the squared distance of an observation from its prediction. */
  penalty: number;
  /** Σx */
  sum: number;
  /** Σ(x - μ)², each by the mean after it. */
  squares: number;
}

/** No weight is above it: the price of a surprise grows without bound towards 1. */
const WEIGHT_MAX = 0.5;
/** The mean and the variance before the first observation, which count as one. */
const PRIOR_MEAN = 0.5;
const PRIOR_VARIANCE = 0.25;

export function emptyMean(): MeanCounts {
  return { kind: "mean", n: 0, weights: 0, weighted: 0, penalty: 0, sum: 0, squares: 0 };
}

/** `value` is between 0 and 1, and `alpha` the same for every observation and for `meanBounds`. */
export function addToMean(counts: MeanCounts, value: number, alpha: number): void {
  const seen = counts.n + 1;
  const variance = (PRIOR_VARIANCE + counts.squares) / seen;
  const weight = Math.min(
    WEIGHT_MAX,
    Math.sqrt((2 * Math.log(2 / alpha)) / (variance * seen * Math.log1p(seen))),
  );
  const surprise = value - (PRIOR_MEAN + counts.sum) / seen;
  counts.n = seen;
  counts.weights += weight;
  counts.weighted += weight * value;
  counts.penalty += (-Math.log1p(-weight) - weight) * surprise * surprise;
  counts.sum += value;
  const distance = value - (PRIOR_MEAN + counts.sum) / (seen + 1);
  counts.squares += distance * distance;
}

/** Means that are possible, all but a chance of `alpha`. */
export function meanBounds(counts: Readonly<MeanCounts>, alpha: number): Interval {
  if (counts.n === 0) return UNIT_INTERVAL;
  const centre = counts.weighted / counts.weights;
  const margin = (Math.log(2 / alpha) + counts.penalty) / counts.weights;
  return withinUnit({ lower: centre - margin, upper: centre + margin });
}
