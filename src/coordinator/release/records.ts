// The rows of releases: one of each release, one of each of its stages, one with the counts of a stage, and one that says which release is
// the latest and which version the run has reached. A run without releases has none of them.
import type { ArmCounts, MetricSpec } from "../../base/statistics/metric.ts";
import type { StageSpec } from "../../config/release.ts";
import { standingFrom, standingTuple } from "../../runtime/standing.ts";
import type { Standing } from "../../runtime/standing.ts";
import type { RecordType } from "../../storage/codec.ts";
import type { Fields, Tuple } from "../../storage/fields.ts";
import { RECORD_KIND, RELEASES_PREFIX } from "../../storage/keys.ts";
import type { ArmNumbers, MetricCounts, StageCounts } from "./counts.ts";
import type { Release, Terms, Version } from "./release.ts";

export function releaseKey(id: string): string {
  return `${RELEASES_PREFIX}${id}`;
}

export function stageKey(id: string, number: number): string {
  return `${releaseKey(id)}${STAGES}${digits(number)}`;
}

export function countsKey(id: string, number: number): string {
  return `${releaseKey(id)}${COUNTS}${digits(number)}`;
}

const STAGES = "/stages/";
const COUNTS = "/counts/";

/** Whether it is the row of a release itself. */
export function isReleaseKey(key: string): boolean {
  return !key.includes("/", RELEASES_PREFIX.length);
}

/** The kind of record that belongs under a key of a release. */
export function recordOfReleaseRow(
  key: string,
): RecordType<ReleaseRecord> | RecordType<Standing> | RecordType<StageCounts> {
  if (key.includes(STAGES)) return stageRecord;
  return key.includes(COUNTS) ? countsRecord : releaseRecord;
}

function digits(number: number): string {
  return String(number).padStart(2, "0");
}

export type ReleaseRecord = Pick<
  Release,
  "plugin" | "stable" | "candidate" | "terms" | "createdAtMs" | "endedAtMs" | "isWaiting"
> & { readonly standing: Standing };

export const releaseRecord: RecordType<ReleaseRecord> = {
  kind: RECORD_KIND.release,
  name: "release",
  encode: ({ plugin, stable, candidate, terms, standing, createdAtMs, endedAtMs, isWaiting }) => [
    ...[plugin, [stable.version, stable.digest], [candidate.version, candidate.digest]],
    ...[termsTuple(terms), standingTuple(standing), createdAtMs, endedAtMs, isWaiting],
  ],
  decode: (fields) => ({
    ...{
      plugin: fields.text(0),
      stable: versionFrom(fields.tuple(1)),
      candidate: versionFrom(fields.tuple(2)),
    },
    ...{ terms: termsFrom(fields.tuple(3)), standing: standingFrom(fields.tuple(4)) },
    ...{ createdAtMs: fields.number(5), endedAtMs: fields.isNull(6) ? null : fields.number(6) },
    isWaiting: fields.boolean(7),
  }),
};

export const stageRecord: RecordType<Standing> = {
  kind: RECORD_KIND.releaseStage,
  name: "stage of a release",
  encode: standingTuple,
  decode: standingFrom,
};

export const countsRecord: RecordType<StageCounts> = {
  kind: RECORD_KIND.releaseCounts,
  name: "counts of a release's stage",
  encode: ({ revision, stable, candidate, open, early, givenAtEnough }) => [
    ...[revision, armTuple(stable), armTuple(candidate), open, early, givenAtEnough],
  ],
  decode: (fields) => ({
    ...{ revision: fields.integer(0), stable: armFrom(fields.tuple(1)), candidate: armFrom(fields.tuple(2)) },
    ...{ open: fields.integer(3), early: fields.integer(4) },
    givenAtEnough: fields.isNull(5) ? null : fields.integer(5),
  }),
};

/** The releases of a run, and what they have come to. */
export interface ReleasesRecord {
  /** The release that began last. */
  readonly latest: string;
  /** The version that all items get, by the last release that was completed; undefined: none was. */
  readonly reached: Version | undefined;
  /** Tasks that completed releases have brought, the last of them last. */
  readonly digests: readonly Uint8Array[];
}

export const releasesRecord: RecordType<ReleasesRecord> = {
  kind: RECORD_KIND.releases,
  name: "releases",
  encode: ({ latest, reached, digests }) => [
    latest,
    reached === undefined ? null : [reached.version, reached.digest],
    digests,
  ],
  decode: (fields) => {
    const all = fields.tuple(2);
    return {
      latest: fields.text(0),
      reached: fields.isNull(1) ? undefined : versionFrom(fields.tuple(1)),
      digests: Array.from({ length: all.length }, (_, at) => all.bytes(at)),
    };
  },
};

function versionFrom(fields: Fields): Version {
  return { version: fields.text(0), digest: fields.bytes(1) };
}

function armTuple({ given, judged, succeeded, metrics }: ArmNumbers): Tuple {
  return [given, judged, succeeded, metrics.map(metricTuple)];
}

function metricTuple({ counts, missing, clipped }: MetricCounts): Tuple {
  if (counts.kind === "rate") return [missing, clipped, counts.n, counts.k];
  const { n, weights, weighted, penalty, sum, squares } = counts;
  return [missing, clipped, n, weights, weighted, penalty, sum, squares];
}

function armFrom(fields: Fields): ArmNumbers {
  return {
    ...{ given: fields.integer(0), judged: fields.integer(1), succeeded: fields.integer(2) },
    metrics: fields.tuples(3).map(metricFrom),
  };
}

const RATE_FIELDS = 4;

function metricFrom(fields: Fields): MetricCounts {
  const counts: ArmCounts =
    fields.length === RATE_FIELDS
      ? { kind: "rate", n: fields.integer(2), k: fields.integer(3) }
      : {
          ...{ kind: "mean", n: fields.integer(2), weights: fields.number(3), weighted: fields.number(4) },
          ...{ penalty: fields.number(5), sum: fields.number(6), squares: fields.number(7) },
        };
  return { missing: fields.integer(0), clipped: fields.integer(1), counts };
}

function termsTuple({ alpha, onBreach, stages, metrics }: Terms): Tuple {
  return [alpha, onBreach === "hold", stages.map(stageTuple), metrics.map(specTuple)];
}

function stageTuple({ minItems, minTimeMs, maxItems, ...stage }: StageSpec): Tuple {
  const amount = stage.kind === "items" ? stage.share : stage.workers;
  return [stage.kind, amount, minItems, minTimeMs, maxItems ?? null];
}

function specTuple(metric: MetricSpec): Tuple {
  switch (metric.kind) {
    case "errors":
      return [metric.kind, metric.maxWorse];
    case "slower":
      return [metric.kind, metric.maxWorse, metric.thanMs];
    case "number": {
      const { kind, maxWorse, name, pointer, low, high, better } = metric;
      return [kind, maxWorse, name, pointer, low, high, better === "higher"];
    }
  }
}

function termsFrom(fields: Fields): Terms {
  return {
    ...{ alpha: fields.number(0), onBreach: fields.boolean(1) ? "hold" : "rollback" },
    ...{ stages: fields.tuples(2).map(stageFrom), metrics: fields.tuples(3).map(specFrom) },
  };
}

function stageFrom(fields: Fields): StageSpec {
  const demands = {
    ...{ minItems: fields.integer(2), minTimeMs: fields.number(3) },
    maxItems: fields.isNull(4) ? undefined : fields.integer(4),
  };
  switch (fields.text(0)) {
    case "items":
      return { kind: "items", share: fields.number(1), ...demands };
    case "workers":
      return { kind: "workers", workers: fields.integer(1), ...demands };
    default:
      return fields.refuse(0, "is no kind of a stage");
  }
}

function specFrom(fields: Fields): MetricSpec {
  const maxWorse = fields.number(1);
  switch (fields.text(0)) {
    case "errors":
      return { kind: "errors", maxWorse };
    case "slower":
      return { kind: "slower", maxWorse, thanMs: fields.number(2) };
    case "number":
      return {
        ...{ kind: "number", maxWorse, name: fields.text(2), pointer: fields.text(3) },
        ...{ low: fields.number(4), high: fields.number(5), better: fields.boolean(6) ? "higher" : "lower" },
      };
    default:
      return fields.refuse(0, "is no kind of a metric");
  }
}
