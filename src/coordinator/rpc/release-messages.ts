// A release as a message asks for it, checked: a client has read its spec strictly, and this coordinator relies on nobody's word for that.
import type { MetricSpec } from "../../base/statistics/metric.ts";
import { LIMITS } from "../../config/limits.ts";
import type { StageSpec } from "../../config/release.ts";
import { Better, MetricKind, OnBreach } from "../../gen/rollout/v1/release_pb.ts";
import type {
  CreateReleaseRequest,
  MetricSpec as MetricMessage,
  ReleaseSpec as SpecMessage,
  StageSpec as StageMessage,
} from "../../gen/rollout/v1/release_pb.ts";
import type { ReleaseRequest } from "../release/operator.ts";
import type { Terms } from "../release/release.ts";
import { nameOf } from "../release/verdict.ts";
import { refuse } from "./leader.ts";

const STAGES_MAX = 16;
const METRICS_MAX = 16;
const DIGEST_BYTES = 32;
const ALPHA = { min: 0.001, max: 0.2 };
const ALL = 1;

function wrong(reason: string): never {
  return refuse("CreateRelease", reason);
}

export function readCandidate({
  candidate,
  candidateDigest,
}: Pick<CreateReleaseRequest, "candidate" | "candidateDigest">): ReleaseRequest["candidate"] {
  const { name = "", version = "" } = candidate ?? {};
  if (name === "" || version === "") return wrong("no candidate is named");
  if (Buffer.byteLength(name + version) > LIMITS.pluginTextBytes)
    return wrong("the candidate's name is too long");
  if (candidateDigest.length !== DIGEST_BYTES) return wrong("candidate_digest is no SHA-256");
  return { plugin: name, version, digest: new Uint8Array(candidateDigest) };
}

export function readTerms(spec: SpecMessage | undefined): Terms {
  if (spec === undefined) return wrong("spec is missing");
  const { alpha, onBreach } = spec;
  if (!(alpha >= ALPHA.min && alpha <= ALPHA.max))
    return wrong(`alpha is not between ${ALPHA.min} and ${ALPHA.max}`);
  if (onBreach !== OnBreach.ROLLBACK && onBreach !== OnBreach.HOLD) return wrong("on_breach is not said");
  if (spec.metrics.length > METRICS_MAX) return wrong(`more than ${METRICS_MAX} metrics`);
  const metrics = spec.metrics.map(readMetric);
  if (metrics.length === 0) return wrong("no metric is named");
  if (new Set(metrics.map(nameOf)).size < metrics.length) return wrong("a metric is named twice");
  return {
    ...{ alpha, onBreach: onBreach === OnBreach.HOLD ? "hold" : "rollback" },
    ...{ stages: readStages(spec.stages), metrics },
  };
}

function readStages(messages: readonly StageMessage[]): StageSpec[] {
  if (messages.length < 2 || messages.length > STAGES_MAX) return wrong(`stages are 2 to ${STAGES_MAX}`);
  const stages = messages.map(readStage);
  const [last, ...judged] = [...stages].reverse();
  if (last?.kind !== "items" || last.share !== ALL) return wrong("the last stage is not all items");
  const kinds = new Set(judged.map(({ kind }) => kind));
  if (kinds.size > 1) return wrong("stages of items and of workers are mixed");
  const amounts = judged.map((stage) => (stage.kind === "items" ? stage.share : stage.workers)).reverse();
  if (amounts.some((amount, at) => at > 0 && amount <= (amounts[at - 1] ?? 0)))
    return wrong("stages do not grow");
  if (judged.some((stage) => stage.kind === "items" && stage.share >= ALL))
    return wrong("stages do not grow");
  return stages;
}

function readStage({ items, workers, minItems, minTimeMs, maxItems }: StageMessage): StageSpec {
  if ((items === undefined) === (workers === undefined)) return wrong("a stage is of items or of workers");
  if (!isWhole(minItems, 1) || !isWhole(minTimeMs, 0)) return wrong("a stage's minimum is no whole number");
  if (maxItems !== undefined && !isWhole(maxItems, minItems)) return wrong("max_items is below min_items");
  const demands = { minItems, minTimeMs, maxItems };
  if (items !== undefined)
    return items > 0 && items <= ALL
      ? { kind: "items", share: items, ...demands }
      : wrong("a share is above 0, at most 1");
  return workers !== undefined && workers > 0
    ? { kind: "workers", workers, ...demands }
    : wrong("a stage has no workers");
}

function readMetric({
  kind,
  maxWorse,
  thanMs,
  name,
  pointer,
  rangeMin,
  rangeMax,
  better,
}: MetricMessage): MetricSpec {
  if (!(maxWorse >= 0 && Number.isFinite(maxWorse))) return wrong("max_worse is not 0 or more");
  if (kind !== MetricKind.NUMBER && maxWorse >= 1) return wrong("max_worse of a rate is below 1");
  switch (kind) {
    case MetricKind.ERRORS:
      return { kind: "errors", maxWorse };
    case MetricKind.SLOWER:
      return thanMs !== undefined && isWhole(thanMs, 1)
        ? { kind: "slower", maxWorse, thanMs }
        : wrong("slower than what is not said");
    case MetricKind.NUMBER: {
      const [low = NaN, high = NaN] = [rangeMin, rangeMax];
      if (!(low < high) || !Number.isFinite(high - low)) return wrong("the range of a number is empty");
      if (maxWorse >= high - low) return wrong("max_worse is outside the range");
      if (name === "" || Buffer.byteLength(name + (pointer ?? "")) > LIMITS.itemTextBytes)
        return wrong("a number has no name");
      if (better !== Better.HIGHER && better !== Better.LOWER) return wrong("better is not said");
      const side = better === Better.HIGHER ? "higher" : "lower";
      return { kind: "number", name, pointer: pointer ?? "", low, high, better: side, maxWorse };
    }
    default:
      return wrong("a metric is of no kind that this version knows");
  }
}

function isWhole(value: number, min: number): boolean {
  return Number.isSafeInteger(value) && value >= min;
}
