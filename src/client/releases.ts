// Releases of a run, as the library gives them, and the messages by which one is asked for.
import type { Client } from "@connectrpc/connect";
import type { Clock } from "../base/clock.ts";
import type { MetricSpec } from "../base/statistics/metric.ts";
import type { ReleaseSpec, StageSpec } from "../config/release.ts";
import type {
  CreatedRelease as CreatedReleaseWire,
  GetReleaseResponse,
  ReleaseMetric as ReleaseMetricWire,
  ReleaseService,
  ReleaseStage as ReleaseStageWire,
  ReleaseStatus,
  ReleaseSummary as ReleaseSummaryWire,
} from "../gen/rollout/v1/release_pb.ts";
import {
  Better,
  MetricKind,
  OnBreach,
  ReleaseAction,
  ReleaseStatusSchema,
  ReleaseSummarySchema,
} from "../gen/rollout/v1/release_pb.ts";
import { LongCall } from "./long-call.ts";
import { plainOf, told } from "./operator-message.ts";
import type { Plain } from "./operator-message.ts";

export type ReleaseState = "rolling" | "held" | "completed" | "rolled_back" | "aborted" | "ended" | "unknown";

export interface Release extends Plain<ReleaseStatus> {
  readonly state: ReleaseState;
  readonly stages: readonly ReleaseStage[];
  /** Those of the stage that it is in. */
  readonly metrics: readonly ReleaseMetric[];
  /** The one who has decided last; undefined while nobody but the verdict has. */
  readonly by: string | undefined;
}

export interface ReleaseStage extends Plain<ReleaseStageWire> {
  readonly phase: "waiting" | "active" | "promoted" | "breached" | "abandoned" | "unknown";
  readonly promotedBy: "verdict" | "operator" | "unknown" | undefined;
}

export interface ReleaseMetric extends Plain<ReleaseMetricWire> {
  readonly verdict: "breach" | "proof" | "hold" | "unknown";
}

export interface ReleaseSummary extends Plain<ReleaseSummaryWire> {
  readonly state: ReleaseState;
}

export type ReleaseSteering = "pause" | "resume" | "promote" | "abort";

type Calls = Client<typeof ReleaseService>;

const ACTIONS: Readonly<Record<ReleaseSteering, ReleaseAction>> = {
  pause: ReleaseAction.PAUSE,
  resume: ReleaseAction.RESUME,
  promote: ReleaseAction.PROMOTE,
  abort: ReleaseAction.ABORT,
};

/** Nothing of it changes any more. */
export function isReleaseOver({ state }: Pick<Release, "state">): boolean {
  return state !== "rolling" && state !== "held" && state !== "unknown";
}

export interface ReleaseAsked {
  /** ULID: the same one again begins nothing. */
  readonly id: string;
  readonly spec: ReleaseSpec;
  readonly candidate: { readonly name: string; readonly version: string; readonly digest: Uint8Array };
  readonly wait: boolean;
  readonly dryRun: boolean;
}

/** Throws the transport's rows, and those of release-errors.ts. */
export async function createRelease(
  calls: Calls,
  { id, spec, candidate: { name, version, digest }, wait, dryRun }: ReleaseAsked,
): Promise<CreatedReleaseWire> {
  const { created } = await calls.createRelease({
    ...{ release: id, spec: specMessageOf(spec), candidate: { name, version }, candidateDigest: digest },
    ...{ wait, dryRun },
  });
  return told(created);
}

/** Without an id the one that is not over, or else the last one. Throws the transport's rows, and release_unknown. */
export async function getRelease(calls: Calls, id: string): Promise<Release> {
  return releaseOf((await calls.getRelease({ release: id })).release);
}

/** The latest first. Throws the transport's rows. */
export async function listReleases(calls: Calls): Promise<ReleaseSummary[]> {
  const { releases } = await calls.listReleases({});
  return releases.map((release) => plainOf(ReleaseSummarySchema, release) as ReleaseSummary);
}

/** Resolves when it is on the coordinator's disk. `stage` is that of a promotion. Throws the transport's rows, and those of release-errors.ts. */
export async function steerRelease(
  calls: Calls,
  steering: ReleaseSteering,
  { id, reason = "", stage = 0 }: { readonly id: string; readonly reason?: string; readonly stage?: number },
): Promise<Release> {
  return releaseOf(
    (await calls.steerRelease({ release: id, action: ACTIONS[steering], reason, stage })).release,
  );
}

/** A release for who stays: at once the first time, then when there is news. */
export class ReleaseNews {
  readonly #call: LongCall<GetReleaseResponse>;

  /** Numbers that change are collected for so long. */
  constructor(
    calls: Calls,
    { id, clock, collectMs }: { readonly id: string; readonly clock: Clock; readonly collectMs: number },
  ) {
    this.#call = new LongCall(
      (waiting, options) => calls.getRelease({ release: id, ...waiting, collectMs }, options),
      clock,
    );
  }

  /** One call at a time. Throws the transport's rows, release_unknown, and interrupted. */
  async next(signal?: AbortSignal): Promise<Release> {
    return releaseOf((await this.#call.next(signal)).release);
  }
}

function releaseOf(status: ReleaseStatus | undefined): Release {
  return plainOf(ReleaseStatusSchema, told(status)) as Release;
}

/**
 * A spec as the wire has it.
 * @internal
 */
export function specMessageOf({ alpha, onBreach, stages, metrics }: ReleaseSpec) {
  return {
    ...{ alpha, onBreach: onBreach === "hold" ? OnBreach.HOLD : OnBreach.ROLLBACK },
    ...{ stages: stages.map(stageMessageOf), metrics: metrics.map(metricMessageOf) },
  };
}

function stageMessageOf(stage: StageSpec) {
  const { minItems, minTimeMs, maxItems } = stage;
  return {
    ...(stage.kind === "items" ? { items: stage.share } : { workers: stage.workers }),
    ...{ minItems, minTimeMs, ...(maxItems !== undefined && { maxItems }) },
  };
}

function metricMessageOf(metric: MetricSpec) {
  const { maxWorse } = metric;
  switch (metric.kind) {
    case "errors":
      return { kind: MetricKind.ERRORS, name: "errors", maxWorse };
    case "slower":
      return { kind: MetricKind.SLOWER, name: "slower", maxWorse, thanMs: metric.thanMs };
    case "number": {
      const { name, pointer, low, high, better } = metric;
      const side = better === "higher" ? Better.HIGHER : Better.LOWER;
      return {
        ...{ kind: MetricKind.NUMBER, name, maxWorse, pointer },
        ...{ rangeMin: low, rangeMax: high, better: side },
      };
    }
  }
}
