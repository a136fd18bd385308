// The course of a release as it was seen here: how far the intervals of both versions were apart when so many of the candidate's attempts were
// judged, in the stage that it is in.
//
// Keeps true: it is bounded, also in a stage of a million items: when it is full, every second point goes. A stage begins anew.
import type { MetricPoint, PageNews, ReleaseNow, ReleasePoint } from "./page-messages.ts";

type News = Extract<PageNews, { kind: "release" }>;
type Metric = ReleaseNow["metrics"][number];

/**
 * Points that are kept.
 * @internal
 */
export const POINTS_MAX = 160;

export class ReleaseCourse {
  #now: ReleaseNow | null = null;
  #text = "null";
  #points: readonly ReleasePoint[] = [];

  /** For a page that has just come. */
  whole(): News[] {
    return this.#now === null
      ? []
      : [{ kind: "release", release: this.#now, anew: true, points: this.#points }];
  }

  /** Null: the run has had none. */
  take(release: ReleaseNow | null): News[] {
    const text = JSON.stringify(release);
    if (text === this.#text) return [];
    const isOther = stageOf(release) !== stageOf(this.#now);
    [this.#now, this.#text] = [release, text];
    const point = release === null ? undefined : pointOf(release);
    const before = isOther ? [] : this.#points;
    const isNew = point !== undefined && point.judged > (before.at(-1)?.judged ?? -1);
    const points = isNew ? [...before, point] : before;
    this.#points = points.length > POINTS_MAX ? thinned(points) : points;
    if (isOther || this.#points !== points)
      return [{ kind: "release", release, anew: true, points: this.#points }];
    return [{ kind: "release", release, anew: false, points: isNew ? [point] : [] }];
  }
}

function stageOf(release: ReleaseNow | null): string {
  return release === null ? "" : `${release.release} ${release.stage}`;
}

/** The last one stays. */
function thinned(points: readonly ReleasePoint[]): readonly ReleasePoint[] {
  return points.filter((_, at) => (points.length - 1 - at) % 2 === 0);
}

function pointOf({ stage, stages, metrics }: ReleaseNow): ReleasePoint | undefined {
  const current = stages.find((one) => one.stage === stage);
  return current && { judged: current.judged, metrics: metrics.map(boundsOf) };
}

function boundsOf(metric: Metric): MetricPoint | null {
  const { stable, candidate, max_worse: margin } = metric;
  const [own, other] = [stable.value, candidate.value];
  if (own === null || other === null) return null;
  return {
    stable: [stable.lower, own, stable.upper],
    candidate: [candidate.lower, other, candidate.upper],
    margin: isMoreWorse(metric) ? own + margin : own - margin,
  };
}

/** A difference says how much worse the candidate is: only one of the two orders has these bounds. */
function isMoreWorse({ stable, candidate, difference }: Metric): boolean {
  const [more, less] = [candidate.upper - stable.lower, stable.upper - candidate.lower];
  return Math.abs(more - difference.upper) <= Math.abs(less - difference.upper);
}
