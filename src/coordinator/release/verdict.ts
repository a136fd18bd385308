// The verdict on a stage: pure, from its counts and the time alone, so that whoever asks gets the same answer.
//
// A breach waits for no number of items. A promotion waits for enough of them, for enough time, for slow ones, for arms as large as their
// shares, and for numbers that are there; the step to all items for proof by every metric and for every worker as well, or for a person.
import { alphaOfArm, compare } from "../../base/statistics/metric.ts";
import type { Comparison, MetricSpec } from "../../base/statistics/metric.ts";
import { fitsShare } from "../../base/statistics/share-check.ts";
import type { StageSpec } from "../../config/release.ts";
import type { ArmNumbers, StageCounts } from "./counts.ts";
import type { Terms } from "./release.ts";

/** `reason` is in words for a person. */
export interface Verdict {
  readonly kind: "breach" | "promote" | "limit" | "hold";
  readonly reason: string;
}

/** Ready workers, and those of them that have both versions. */
export interface Crew {
  readonly withCandidate: number;
  readonly ready: number;
}

export interface Judged {
  readonly terms: Terms;
  /** Counts from 1. */
  readonly stage: number;
  readonly counts: StageCounts;
  /** The stage has been open for so long. */
  readonly openForMs: number;
  /** Asked only where it matters. */
  readonly crew: () => Crew;
}

/** Open attempts, and missing numbers, that are too many. */
const OPEN_SHARE_MAX = 0.05;
const MISSING_SHARE_MAX = 0.05;

export function armAlpha({ alpha, stages, metrics }: Terms): number {
  return alphaOfArm(alpha, { judgedStages: stages.length - 1, metrics: metrics.length });
}

export function comparisons({ terms, counts }: Pick<Judged, "terms" | "counts">): Comparison[] {
  const alpha = armAlpha(terms);
  return terms.metrics.flatMap((metric, at) => {
    const [stable, candidate] = [counts.stable.metrics[at], counts.candidate.metrics[at]];
    if (stable === undefined || candidate === undefined) return [];
    return [compare(metric, { stable: stable.counts, candidate: candidate.counts }, alpha)];
  });
}

export function judge(judged: Judged): Verdict {
  const { terms, stage, counts } = judged;
  const spec = terms.stages[stage - 1];
  if (spec === undefined) return hold("there is no such stage");
  const compared = comparisons(judged);
  const breached = compared.findIndex(({ verdict }) => verdict === "breach");
  const [metric, comparison] = [terms.metrics[breached], compared[breached]];
  if (metric !== undefined && comparison !== undefined)
    return { kind: "breach", reason: describeBreach(metric, comparison) };
  const missing = missingFor(judged, spec, compared);
  if (missing === undefined) return { kind: "promote", reason: describePromotion(counts) };
  const isFull = spec.maxItems !== undefined && counts.candidate.judged >= spec.maxItems;
  return isFull
    ? { kind: "limit", reason: `${counts.candidate.judged} items are judged, and ${missing}` }
    : hold(missing);
}

function hold(reason: string): Verdict {
  return { kind: "hold", reason };
}

/** The reason why the stage is not promoted yet; undefined when there is none. */
function missingFor(judged: Judged, spec: StageSpec, compared: readonly Comparison[]): string | undefined {
  const { terms, stage, counts, openForMs } = judged;
  const { candidate, givenAtEnough, early } = counts;
  if (candidate.judged < spec.minItems)
    return `${candidate.judged} of ${spec.minItems} items of the candidate are judged`;
  if (openForMs < spec.minTimeMs)
    return `the stage is open for ${seconds(openForMs)}, and is to be for ${seconds(spec.minTimeMs)}`;
  if (givenAtEnough !== null && early > OPEN_SHARE_MAX * givenAtEnough)
    return `${early} of the first ${givenAtEnough} attempts of the candidate have not ended`;
  const given = { stable: counts.stable.given, candidate: candidate.given };
  if (spec.kind === "items" && !fitsShare(given, spec.share))
    return `${given.candidate} of ${given.stable + given.candidate} attempts went to the candidate, which does not fit its share`;
  const incomplete = incompleteNumber(terms, counts);
  if (incomplete !== undefined) return incomplete;
  return stage === terms.stages.length - 1 ? missingForAll(judged, compared) : undefined;
}

function missingForAll({ terms, crew }: Judged, compared: readonly Comparison[]): string | undefined {
  const unproven = compared.findIndex(({ verdict }) => verdict !== "proof");
  const [metric, comparison] = [terms.metrics[unproven], compared[unproven]];
  if (metric !== undefined && comparison !== undefined)
    return `it is not proven for all by ${nameOf(metric)}: the candidate may be worse by ${amount(metric, comparison.difference.upper)}, and ${amount(metric, metric.maxWorse)} is allowed`;
  const { withCandidate, ready } = crew();
  return withCandidate < ready
    ? `${withCandidate} of ${ready} ready workers have the candidate, and all have to`
    : undefined;
}

function incompleteNumber({ metrics }: Terms, { stable, candidate }: StageCounts): string | undefined {
  for (const [at, metric] of metrics.entries())
    for (const [arm, numbers] of Object.entries<ArmNumbers>({ stable, candidate })) {
      const missing = numbers.metrics[at]?.missing ?? 0;
      if (missing > MISSING_SHARE_MAX * numbers.succeeded)
        return `${missing} of ${numbers.succeeded} successes of ${arm} have no number for ${nameOf(metric)}`;
    }
  return undefined;
}

export function nameOf(metric: MetricSpec): string {
  return metric.kind === "number" ? metric.name : metric.kind;
}

function describeBreach(metric: MetricSpec, { stable, candidate, difference }: Comparison): string {
  const of = ({ n, value }: Comparison["stable"]): string => `${amount(metric, value ?? 0)} of ${n}`;
  return `${nameOf(metric)}: the candidate ${of(candidate)}, stable ${of(stable)}: worse by at least ${amount(metric, difference.lower)}, and ${amount(metric, metric.maxWorse)} is allowed`;
}

function describePromotion({ candidate, stable }: StageCounts): string {
  return `nothing worse after ${candidate.judged} items of the candidate and ${stable.judged} of stable`;
}

/** A rate in percent, a number as it is. */
function amount(metric: MetricSpec, value: number): string {
  return metric.kind === "number" ? String(rounded(value)) : `${rounded(value * 100)} %`;
}

function rounded(value: number): number {
  return Number(value.toPrecision(3));
}

function seconds(ms: number): string {
  return `${Math.floor(ms / 1_000)} s`;
}
