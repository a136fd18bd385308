// The prospect of a release with the items that are left, before it begins: how many items each stage tries, which difference they
// show, and whether equal versions can be proven equal. Expected numbers are put into the test that judges the release.
import { addToMean, emptyMean, meanBounds } from "../base/statistics/mean-sequence.ts";
import { differenceOf } from "../base/statistics/interval.ts";
import type { Interval } from "../base/statistics/interval.ts";
import { alphaOfArm, verdictOn } from "../base/statistics/metric.ts";
import type { MetricSpec } from "../base/statistics/metric.ts";
import { rateBounds } from "../base/statistics/rate-sequence.ts";
import type { ReleaseSpec, StageSpec } from "./release.ts";

export interface ReleaseFacts {
  readonly itemsLeft: number;
  readonly readyWorkers: number;
  /** Attempts of the old version that have ended, and those that failed. */
  readonly attempts: number;
  readonly failed: number;
}

interface StageProspect {
  /** Items of the candidate that it tries: `min_items`, or fewer when no more are left for it. The last judged stage takes what is left. */
  readonly tries: number;
  readonly isEnough: boolean;
}

interface MetricProspect {
  readonly metric: MetricSpec;
  /** The old version's rate, or the deviation of a number, that the figures are for. */
  readonly assumed: number;
  /** The smallest difference that one of the stages finds, as a rule; undefined: none. */
  readonly shows: number | undefined;
  /** Items that have to be left for a proof that equal versions are equal; undefined: no number is enough. */
  readonly proofItems: number | undefined;
}

export interface ReleaseProspect {
  /** One for each judged stage, in order. */
  readonly stages: readonly StageProspect[];
  readonly metrics: readonly MetricProspect[];
  readonly isProvable: boolean;
}

/** Rates that are taken where nothing is known yet. */
const ERROR_RATE = 0.01;
const SLOW_RATE = 0.1;
/** The deviation of a number, as a part of its range. */
const DEVIATION = 0.15;
const ATTEMPTS_KNOWN = 100;
const ITEMS_MAX = 100_000_000;
/** Numbers are laid out one by one: more than these show hardly less. */
const NUMBERS_MAX = 200_000;
const HALVINGS = 40;

interface Arms {
  readonly stable: number;
  readonly candidate: number;
}

export function prospectOf(spec: ReleaseSpec, facts: ReleaseFacts): ReleaseProspect {
  const stages = stagesOf(spec, facts);
  const metrics = spec.metrics.map((metric): MetricProspect => {
    const assumed = assumedOf(metric, facts);
    const alpha = alphaOfArm(spec.alpha, {
      judgedStages: spec.stages.length - 1,
      metrics: spec.metrics.length,
    });
    const isProof = (arms: Arms): boolean =>
      outcomeOf(metric, arms, { assumed, alpha, worse: 0 }) === "proof";
    return {
      ...{
        metric,
        assumed,
        shows: smallestOf(stages.map((arms) => smallestShown(metric, arms, { assumed, alpha }))),
      },
      proofItems: smallestItems((itemsLeft) => {
        const arms = stagesOf(spec, { ...facts, itemsLeft }).at(-1);
        return arms !== undefined && isProof(arms);
      }),
    };
  });
  return {
    stages: stages.map(({ candidate }, at) => {
      const { minItems } = spec.stages[at] ?? { minItems: 0 };
      const isLast = at === stages.length - 1;
      return {
        tries: Math.floor(isLast ? candidate : Math.min(candidate, minItems)),
        isEnough: candidate >= minItems,
      };
    }),
    metrics,
    isProvable: metrics.every(({ proofItems }) => proofItems !== undefined && proofItems <= facts.itemsLeft),
  };
}

/** Items of both versions in each judged stage. All but the last of these stages end with their `min_items`. */
function stagesOf({ stages }: ReleaseSpec, { itemsLeft, readyWorkers }: ReleaseFacts): Arms[] {
  let left = itemsLeft;
  const judged = stages.slice(0, -1);
  return judged.map((stage, at) => {
    const share = shareOf(stage, readyWorkers);
    const isLast = at === judged.length - 1;
    const passing = isLast ? left : Math.min(left, stage.minItems / share);
    left -= passing;
    return { candidate: passing * share, stable: passing * (1 - share) };
  });
}

/** Workers are taken to be equally fast. */
function shareOf(stage: StageSpec, readyWorkers: number): number {
  if (stage.kind === "items") return stage.share;
  return stage.workers / Math.max(stage.workers + 1, readyWorkers);
}

function assumedOf(metric: MetricSpec, { attempts, failed }: ReleaseFacts): number {
  switch (metric.kind) {
    case "errors":
      return attempts >= ATTEMPTS_KNOWN ? failed / attempts : ERROR_RATE;
    case "slower":
      return SLOW_RATE;
    case "number":
      return DEVIATION * (metric.high - metric.low);
  }
}

interface Assumption {
  /** The old version's rate, or the deviation of a number. */
  readonly assumed: number;
  readonly alpha: number;
}

function outcomeOf(
  metric: MetricSpec,
  arms: Arms,
  { assumed, alpha, worse }: Assumption & { readonly worse: number },
): ReturnType<typeof verdictOn> {
  if (metric.kind !== "number") {
    const stable = rateBounds({ kind: "rate", n: arms.stable, k: arms.stable * assumed }, alpha);
    const k = arms.candidate * Math.min(1, assumed + worse);
    const candidate = rateBounds({ kind: "rate", n: arms.candidate, k }, alpha);
    return verdictOn(differenceOf(candidate, stable), metric.maxWorse);
  }
  const unit = metric.high - metric.low;
  const laid = { deviation: assumed / unit, alpha };
  const candidate = laidOut(arms.candidate, { ...laid, mean: 0.5 + worse / unit / 2 });
  const stable = laidOut(arms.stable, { ...laid, mean: 0.5 - worse / unit / 2 });
  return verdictOn(differenceOf(candidate, stable), metric.maxWorse / unit);
}

/** The bounds after so many numbers that lie evenly on both sides of their mean. */
function laidOut(
  count: number,
  { mean, deviation, alpha }: { readonly mean: number; readonly deviation: number; readonly alpha: number },
): Interval {
  const counts = emptyMean();
  const most = Math.min(NUMBERS_MAX, Math.floor(count));
  for (let at = 0; at < most; at++)
    addToMean(counts, Math.min(1, Math.max(0, mean + (at % 2 === 0 ? deviation : -deviation))), alpha);
  return meanBounds(counts, alpha);
}

function smallestShown(metric: MetricSpec, arms: Arms, assumption: Assumption): number | undefined {
  const most = metric.kind === "number" ? metric.high - metric.low : 1 - assumption.assumed;
  const isShown = (worse: number): boolean => outcomeOf(metric, arms, { ...assumption, worse }) === "breach";
  if (!isShown(most)) return undefined;
  let [low, high] = [metric.maxWorse, most];
  for (let at = 0; at < HALVINGS && high - low > most * 1e-4; at++) {
    const middle = (low + high) / 2;
    if (isShown(middle)) high = middle;
    else low = middle;
  }
  return high;
}

function smallestOf(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

/** To about a hundredth. */
function smallestItems(isEnough: (items: number) => boolean): number | undefined {
  if (!isEnough(ITEMS_MAX)) return undefined;
  let [low, high] = [1, ITEMS_MAX];
  while (high - low > 1 && high / low > 1.01) {
    const middle = Math.floor(Math.sqrt(low * high));
    if (isEnough(middle)) high = middle;
    else low = Math.max(middle, low + 1);
  }
  return high;
}
