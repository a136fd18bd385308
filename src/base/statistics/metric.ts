// A metric of a release: a bounded mean that two versions are compared by, in the unit that its user has for it.
//
// Keeps true: inside, every observation is a badness between 0 and 1, so that one test judges all metrics; outside, every figure is in the
// metric's own unit, and a difference says how much worse the candidate is.
import { addToMean, emptyMean, meanBounds } from "./mean-sequence.ts";
import type { MeanCounts } from "./mean-sequence.ts";
import { emptyRate, rateBounds } from "./rate-sequence.ts";
import type { RateCounts } from "./rate-sequence.ts";
import { differenceOf } from "./interval.ts";
import type { Interval } from "./interval.ts";

export type MetricSpec =
  /** The share of attempts that end in an error. */
  | { readonly kind: "errors"; readonly maxWorse: number }
  /** The share of attempts that take longer than that. */
  | { readonly kind: "slower"; readonly thanMs: number; readonly maxWorse: number }
  /** The mean of a number in the output, at a JSON pointer. Beyond its range it counts as the nearest end. */
  | {
      readonly kind: "number";
      readonly name: string;
      readonly pointer: string;
      readonly low: number;
      readonly high: number;
      readonly better: "higher" | "lower";
      /** In the unit of the number. */
      readonly maxWorse: number;
    };

export type NumberMetric = Extract<MetricSpec, { readonly kind: "number" }>;

/** One version's observations of one metric in one stage. */
export type ArmCounts = RateCounts | MeanCounts;

export type Verdict = "breach" | "proof" | "hold";

/** A mean that is known so well. `value` is undefined before the first observation. */
export interface Estimate extends Interval {
  readonly n: number;
  readonly value: number | undefined;
}

/** How two versions compare by one metric, in its own unit. */
export interface Comparison {
  readonly stable: Estimate;
  readonly candidate: Estimate;
  /** How much worse the candidate is: above zero it is worse, whichever way the metric is better. */
  readonly difference: Interval & { readonly value: number | undefined };
  readonly verdict: Verdict;
}

export function emptyCounts(metric: MetricSpec): ArmCounts {
  return metric.kind === "number" ? emptyMean() : emptyRate();
}

/** Whether a number lies beyond the range of its metric, where it counts as the nearest end. */
export function isClipped(metric: NumberMetric, value: number): boolean {
  return value < metric.low || value > metric.high;
}

/** One more number. `alpha` is that of one arm. NaN is no number: it is counted as missing, elsewhere. */
export function addNumber(metric: NumberMetric, counts: MeanCounts, value: number, alpha: number): void {
  addToMean(counts, badnessOf(metric, Math.min(metric.high, Math.max(metric.low, value))), alpha);
}

/** The part of a release's alpha that one arm may be wrong by, in one metric of one stage. */
export function alphaOfArm(
  alpha: number,
  { judgedStages, metrics }: { readonly judgedStages: number; readonly metrics: number },
): number {
  return alpha / (2 * Math.max(1, judgedStages) * Math.max(1, metrics));
}

/** `alpha` is that of one arm. */
export function compare(
  metric: MetricSpec,
  counts: { readonly stable: Readonly<ArmCounts>; readonly candidate: Readonly<ArmCounts> },
  alpha: number,
): Comparison {
  const bounds = {
    stable: boundsOf(counts.stable, alpha),
    candidate: boundsOf(counts.candidate, alpha),
  };
  const worse = differenceOf(bounds.candidate, bounds.stable);
  const [mean, stableMean] = [meanOf(counts.candidate), meanOf(counts.stable)];
  const unit = unitOf(metric);
  return {
    stable: estimateOf(metric, counts.stable, bounds.stable),
    candidate: estimateOf(metric, counts.candidate, bounds.candidate),
    difference: {
      value: mean === undefined || stableMean === undefined ? undefined : (mean - stableMean) * unit,
      lower: worse.lower * unit,
      upper: worse.upper * unit,
    },
    verdict: verdictOn(worse, metric.maxWorse / unit),
  };
}

/** All that is possible is too bad, or nothing that is possible is, or neither. */
export function verdictOn(worse: Interval, margin: number): Verdict {
  if (worse.lower > margin) return "breach";
  return worse.upper < margin ? "proof" : "hold";
}

/** @internal */
export function boundsOf(counts: Readonly<ArmCounts>, alpha: number): Interval {
  return counts.kind === "rate" ? rateBounds(counts, alpha) : meanBounds(counts, alpha);
}

function meanOf(counts: Readonly<ArmCounts>): number | undefined {
  if (counts.n === 0) return undefined;
  return (counts.kind === "rate" ? counts.k : counts.sum) / counts.n;
}

function estimateOf(metric: MetricSpec, counts: Readonly<ArmCounts>, bounds: Interval): Estimate {
  const mean = meanOf(counts);
  const ends = [inUnit(metric, bounds.lower), inUnit(metric, bounds.upper)] as const;
  return {
    n: counts.n,
    value: mean === undefined ? undefined : inUnit(metric, mean),
    lower: Math.min(...ends),
    upper: Math.max(...ends),
  };
}

/** A badness of 1 in the metric's own unit. */
function unitOf(metric: MetricSpec): number {
  return metric.kind === "number" ? metric.high - metric.low : 1;
}

function badnessOf({ low, high, better }: NumberMetric, value: number): number {
  return (better === "lower" ? value - low : high - value) / (high - low);
}

function inUnit(metric: MetricSpec, badness: number): number {
  if (metric.kind !== "number") return badness;
  const { low, high, better } = metric;
  return better === "lower" ? low + badness * (high - low) : high - badness * (high - low);
}
