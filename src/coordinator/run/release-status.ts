// How a release stands, as operators see it: the message that `rollout release status --json` shows.
import { MetricVerdict, PromotedBy, ReleaseState, StagePhase } from "../../gen/rollout/v1/release_pb.ts";
import type {
  MetricArm,
  MetricDifference,
  ReleaseMetric,
  ReleaseStage,
  ReleaseStatus,
  ReleaseSummary,
  StageSpec as StageSpecMessage,
} from "../../gen/rollout/v1/release_pb.ts";
import type { Comparison, Estimate, MetricSpec } from "../../base/statistics/metric.ts";
import type { StageSpec } from "../../config/release.ts";
import type { MetricCounts } from "../release/counts.ts";
import { currentStage, releaseStateOf, stageStateOf } from "../release/release.ts";
import type { Release, ReleaseName, Stage, StageName } from "../release/release.ts";
import { comparisons, nameOf } from "../release/verdict.ts";
import type { Crew } from "../release/verdict.ts";
import type { Filled } from "../turn/operator-message.ts";
import { constantOf } from "../turn/operator-message.ts";

const STATES: Readonly<Record<ReleaseName, ReleaseState>> = {
  Rolling: ReleaseState.ROLLING,
  Held: ReleaseState.HELD,
  Completed: ReleaseState.COMPLETED,
  RolledBack: ReleaseState.ROLLED_BACK,
  Aborted: ReleaseState.ABORTED,
  Ended: ReleaseState.ENDED,
};

const PHASES: Readonly<Record<StageName, StagePhase>> = {
  Waiting: StagePhase.WAITING,
  Active: StagePhase.ACTIVE,
  Promoted: StagePhase.PROMOTED,
  Breached: StagePhase.BREACHED,
  Abandoned: StagePhase.ABANDONED,
};

/** `pending` says what the release waits for, where nobody has decided; `crew` is undefined for one that is over. */
export function statusOf(
  release: Release,
  { pending, crew }: { readonly pending: string | undefined; readonly crew: Crew },
): Filled<ReleaseStatus> {
  const { context } = release.row;
  return {
    ...summaryParts(release),
    reason: reasonOf(release, pending),
    stages: release.stages.map(stageOf),
    metrics: metricsOf(release, currentStage(release)),
    workers: { withCandidate: crew.withCandidate, ready: crew.ready },
    ...(context.by !== "" && { by: context.by }),
    createdAtMs: release.createdAtMs,
    ...(release.endedAtMs !== null && { endedAtMs: release.endedAtMs }),
  };
}

/** `pending` as in `statusOf`. */
export function summaryOf(release: Release, pending?: string): Filled<ReleaseSummary> {
  return {
    ...summaryParts(release),
    reason: reasonOf(release, pending),
    stages: release.stages.length,
    createdAtMs: release.createdAtMs,
    ...(release.endedAtMs !== null && { endedAtMs: release.endedAtMs }),
    share: shareOf(currentStage(release).spec),
  };
}

function reasonOf(release: Release, pending: string | undefined): string {
  const decided = release.row.context.reason;
  if (releaseStateOf(release) !== "Rolling") return decided;
  return release.isWaiting ? "no ready worker has both versions" : (pending ?? decided);
}

function summaryParts(release: Release) {
  return {
    release: release.id,
    plugin: release.plugin,
    stableVersion: release.stable.version,
    candidateVersion: release.candidate.version,
    state: STATES[releaseStateOf(release)],
    stage: release.row.context.stage,
  };
}

function stageOf(stage: Stage): Filled<ReleaseStage> {
  const { number, spec, counts, row } = stage;
  const { openedAtMs, endedAtMs, promotedBy } = row.context;
  return {
    ...{ stage: number, share: shareOf(spec), phase: PHASES[stageStateOf(stage)] },
    ...(openedAtMs !== null && { openedAtMs }),
    ...(promotedBy !== null &&
      endedAtMs !== null && { promotedAtMs: endedAtMs, promotedBy: PromotedBy[constantOf(promotedBy)] }),
    ...{ tried: counts.candidate.given, judged: counts.candidate.judged, open: counts.open },
  };
}

/** As a spec has it. */
export function shareOf(stage: StageSpec): string {
  if (stage.kind === "items") return `${Number((stage.share * 100).toPrecision(12))}%`;
  return stage.workers === 1 ? "1 worker" : `${stage.workers} workers`;
}

function metricsOf(release: Release, { counts }: Stage): Filled<ReleaseMetric>[] {
  const { terms } = release;
  return comparisons({ terms, counts }).flatMap((comparison, at) => {
    const metric = terms.metrics[at];
    const [stable, candidate] = [counts.stable.metrics[at], counts.candidate.metrics[at]];
    if (metric === undefined || stable === undefined || candidate === undefined) return [];
    return [metricOf(metric, comparison, { stable, candidate })];
  });
}

function metricOf(
  metric: MetricSpec,
  { stable, candidate, difference, verdict }: Comparison,
  counts: { readonly stable: MetricCounts; readonly candidate: MetricCounts },
): Filled<ReleaseMetric> {
  return {
    metric: nameOf(metric),
    maxWorse: metric.maxWorse,
    verdict: MetricVerdict[constantOf(verdict)],
    stable: armOf(stable, counts.stable),
    candidate: armOf(candidate, counts.candidate),
    difference: differenceOf(difference),
  };
}

function armOf({ n, value, lower, upper }: Estimate, { missing, clipped }: MetricCounts): Filled<MetricArm> {
  return { n, ...(value !== undefined && { value }), lower, upper, missing, clipped };
}

function differenceOf({ value, lower, upper }: Comparison["difference"]): Filled<MetricDifference> {
  return { ...(value !== undefined && { value }), lower, upper };
}

export function stageMessageOf(stage: StageSpec): Filled<StageSpecMessage> {
  const { minItems, minTimeMs, maxItems } = stage;
  return {
    ...(stage.kind === "items" ? { items: stage.share } : { workers: stage.workers }),
    ...{ minItems, minTimeMs, ...(maxItems !== undefined && { maxItems }) },
  };
}
