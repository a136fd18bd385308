// The attempts of a stage in numbers: what was given out and judged of either version, and the sums of each metric. One row of each stage,
// in the batch of the results that it counts, so that no end of an attempt can be missed.
//
// Keeps true: an attempt counts once, in the stage in which it was given out. The sums of a number depend on the order in which they
// were made, and are never made again.
import { addNumber, emptyCounts, isClipped } from "../../base/statistics/metric.ts";
import type { ArmCounts, MetricSpec } from "../../base/statistics/metric.ts";
import { addToRate } from "../../base/statistics/rate-sequence.ts";
import type { Ended } from "./ports.ts";

export interface MetricCounts {
  readonly counts: ArmCounts;
  /** Successes without a number, and numbers beyond the range. */
  missing: number;
  clipped: number;
}

export interface ArmNumbers {
  /** Attempts that were given out to be judged. */
  given: number;
  judged: number;
  succeeded: number;
  /** In the order of the metrics of the release. */
  readonly metrics: readonly MetricCounts[];
}

export interface StageCounts {
  /** Grows with each write of the row. */
  revision: number;
  readonly stable: ArmNumbers;
  readonly candidate: ArmNumbers;
  /** Attempts of the candidate that have not ended. */
  open: number;
  /** Those of them that had been given out when enough were judged. */
  early: number;
  /** How many had been given out then; null before. */
  givenAtEnough: number | null;
}

export function emptyStage(metrics: readonly MetricSpec[]): StageCounts {
  return {
    ...{ revision: 0, stable: emptyArm(metrics), candidate: emptyArm(metrics) },
    ...{ open: 0, early: 0, givenAtEnough: null },
  };
}

function emptyArm(metrics: readonly MetricSpec[]): ArmNumbers {
  return {
    ...{ given: 0, judged: 0, succeeded: 0 },
    metrics: metrics.map((metric) => ({ counts: emptyCounts(metric), missing: 0, clipped: 0 })),
  };
}

/** Whether the end says something of the version: true when it is bad, undefined when it says nothing. */
export function badnessOf({
  class: how,
  isCounted,
}: Pick<Ended, "class" | "isCounted">): boolean | undefined {
  switch (how) {
    case "success":
      return false;
    case "error":
    case "timeout":
    case "crash":
    case "crash_shared":
    case "too_large":
      return true;
    case "lost":
      return isCounted ? true : undefined;
    case "preempted":
    case "stolen":
    case "fenced":
    case "cancelled":
      return undefined;
  }
}

/** One judged attempt more. `alpha` is that of one arm. */
export function addEnd(
  arm: ArmNumbers,
  metrics: readonly MetricSpec[],
  ended: Ended & { readonly isBad: boolean },
  alpha: number,
): void {
  arm.judged++;
  if (!ended.isBad) arm.succeeded++;
  let numbers = 0;
  for (const [at, metric] of metrics.entries()) {
    const into = arm.metrics[at];
    if (into === undefined) continue;
    if (metric.kind === "number") addMeasure(into, metric, ended, { at: numbers++, alpha });
    else addJudgement(into, metric, ended);
  }
}

function addJudgement(
  { counts }: MetricCounts,
  metric: Exclude<MetricSpec, { readonly kind: "number" }>,
  { isBad, class: how, durationMs }: Ended & { readonly isBad: boolean },
): void {
  if (counts.kind !== "rate") return;
  if (metric.kind === "errors") addToRate(counts, isBad);
  else if (how === "timeout") addToRate(counts, true);
  else if (durationMs !== undefined) addToRate(counts, durationMs > metric.thanMs);
}

function addMeasure(
  into: MetricCounts,
  metric: Extract<MetricSpec, { readonly kind: "number" }>,
  { isBad, measures }: Ended & { readonly isBad: boolean },
  { at, alpha }: { readonly at: number; readonly alpha: number },
): void {
  if (isBad || into.counts.kind !== "mean") return;
  const measure = measures[at];
  if (typeof measure !== "number" || !Number.isFinite(measure)) {
    into.missing++;
    return;
  }
  if (isClipped(metric, measure)) into.clipped++;
  addNumber(metric, into.counts, measure, alpha);
}
