// Rules between the values of a release, which the types of single fields cannot say. A coordinator asks them of a message too.
import type { MetricSpec, NumberMetric } from "../base/statistics/metric.ts";
import { isPointer } from "./http-rules.ts";
import { formatPercent } from "./percent.ts";
import type { ReleaseSpec, StageSpec } from "./release.ts";

/** A value that is not taken: its key, as a file of a release has it, and what is allowed there. */
export interface ReleaseRefusal {
  readonly key: string;
  readonly allowed: string;
}

const ALPHA_MIN = 0.001;
const ALPHA_MAX = 0.2;
/** Each has a row of its own, and each but the last takes its part of alpha. */
const STAGES_MAX = 16;
const METRICS_MAX = 16;
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;

/** The first value that is not taken; undefined when all are. */
export function refusalOfRelease(spec: ReleaseSpec): ReleaseRefusal | undefined {
  if (!(spec.alpha >= ALPHA_MIN && spec.alpha <= ALPHA_MAX))
    return { key: "release.alpha", allowed: `a number from ${ALPHA_MIN} to ${ALPHA_MAX}` };
  return refusalOfStages(spec.stages) ?? refusalOfMetrics(spec.metrics);
}

function refusalOfStages(stages: readonly StageSpec[]): ReleaseRefusal | undefined {
  const judged = stages.slice(0, -1);
  if (judged.length === 0)
    return {
      key: "stage[1].items",
      allowed: "less than 100%: all items are the last stage, after one that is judged",
    };
  if (stages.length > STAGES_MAX)
    return {
      key: `stage[${STAGES_MAX + 1}]`,
      allowed: `${STAGES_MAX} stages, all items as the last one included`,
    };
  const last = stages.at(-1);
  if (last?.kind !== "items" || last.share !== 1)
    return { key: `stage[${stages.length}].items`, allowed: "100%: all items are the last stage" };
  for (const [at, stage] of judged.entries()) {
    const before = judged[at - 1];
    const refusal = refusalOfStage(stage, before) ?? refusalOfDemands(stage);
    if (refusal !== undefined) return { key: `stage[${at + 1}].${refusal.key}`, allowed: refusal.allowed };
  }
  return undefined;
}

function refusalOfStage(stage: StageSpec, before: StageSpec | undefined): ReleaseRefusal | undefined {
  if (before !== undefined && before.kind !== stage.kind)
    return {
      key: stage.kind,
      allowed: `${before.kind}, as in the stage before: the stages of a release are of one kind, and all items follow by themselves`,
    };
  if (stage.kind === "workers") {
    const least = before?.kind === "workers" ? before.workers + 1 : 1;
    return stage.workers >= least
      ? undefined
      : { key: "workers", allowed: `${least} or more: each stage has more than the one before` };
  }
  const least = before?.kind === "items" ? before.share : 0;
  return stage.share > least && stage.share < 1
    ? undefined
    : {
        key: "items",
        allowed: `a share above ${formatPercent(least)} and below 100%: each stage has more than the one before, and all items follow by themselves`,
      };
}

function refusalOfDemands({ minItems, maxItems }: StageSpec): ReleaseRefusal | undefined {
  return maxItems !== undefined && maxItems < minItems
    ? { key: "max_items", allowed: `min_items (${minItems}) or more` }
    : undefined;
}

function refusalOfMetrics(metrics: readonly MetricSpec[]): ReleaseRefusal | undefined {
  if (metrics.length > METRICS_MAX)
    return { key: `metric[${METRICS_MAX + 1}]`, allowed: `${METRICS_MAX} metrics` };
  for (const [at, metric] of metrics.entries()) {
    const refusal = refusalOfMetric(metric, metrics.slice(0, at));
    if (refusal !== undefined) return { key: `metric[${at + 1}].${refusal.key}`, allowed: refusal.allowed };
  }
  return undefined;
}

function refusalOfMetric(metric: MetricSpec, others: readonly MetricSpec[]): ReleaseRefusal | undefined {
  if (metric.kind === "number") return refusalOfNumber(metric, others);
  if (others.some(({ kind }) => kind === metric.kind))
    return { key: "kind", allowed: `one metric of kind ${metric.kind}` };
  return metric.maxWorse >= 0 && metric.maxWorse < 1
    ? undefined
    : { key: "max_worse", allowed: 'a share from "0%" to below "100%"' };
}

function refusalOfNumber(metric: NumberMetric, others: readonly MetricSpec[]): ReleaseRefusal | undefined {
  const { name, pointer, low, high, maxWorse } = metric;
  if (!isPointer(pointer)) return { key: "pointer", allowed: 'a JSON pointer such as "/score"' };
  if (!NAME.test(name) || name === "errors" || name === "slower")
    return { key: "name", allowed: "letters, digits, _, . and -, and not errors or slower" };
  if (others.some((other) => other.kind === "number" && other.name === name))
    return { key: "name", allowed: `one metric of the name ${name}` };
  if (!(low < high)) return { key: "range", allowed: "two numbers, the lower one first, such as [0, 1]" };
  return maxWorse >= 0 && maxWorse < high - low
    ? undefined
    : { key: "max_worse", allowed: `a number from 0 to below ${high - low}, which is what range spans` };
}
