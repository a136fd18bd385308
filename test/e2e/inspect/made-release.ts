// A release that was made up, as news for the page: half-way through its second stage, with a rate and a number. The same numbers each time.
import type { Bounds, MetricPoint, PageNews, ReleaseNow } from "../../../src/inspector/page-messages.ts";

const POINTS = 80;
const JUDGED_EACH = 9;

interface MadeMetric {
  readonly name: string;
  readonly maxWorse: number;
  /** The means, and how far from them a thousand attempts leave the bounds. */
  readonly stable: number;
  readonly candidate: number;
  readonly spread: number;
  readonly isMoreWorse: boolean;
}

const METRICS: readonly MadeMetric[] = [
  { name: "errors", maxWorse: 0.05, stable: 0.021, candidate: 0.026, spread: 0.025, isMoreWorse: true },
  { name: "score", maxWorse: 0.4, stable: 7.1, candidate: 7.3, spread: 0.25, isMoreWorse: false },
];

/** The candidate has a ninth of stable's attempts. */
function boundsAt(mean: number, spread: number, n: number, at: number): Bounds {
  const wide = spread * Math.sqrt(1_000 / n);
  const value = mean + (wide / 4) * Math.sin(at / 3);
  return [Math.max(0, value - wide), Math.max(0, value), value + wide];
}

function pointAt({ stable, candidate, spread, maxWorse, isMoreWorse }: MadeMetric, at: number): MetricPoint {
  const judged = (at + 1) * JUDGED_EACH;
  const own = boundsAt(stable, spread, 9 * judged, at + 1);
  const margin = own[1] + (isMoreWorse ? maxWorse : -maxWorse);
  return { stable: own, candidate: boundsAt(candidate, spread, judged, at), margin };
}

function nowOf(judged: number): ReleaseNow {
  const stages = ["1%", "10%", "50%", "100%"].map((share, at) => ({
    ...{ stage: at + 1, share, judged: at === 0 ? 100 : at === 1 ? judged : 0 },
    phase: at === 0 ? "promoted" : at === 1 ? "active" : "waiting",
  }));
  return {
    ...{ release: "01KA2M9X3B7Q5W8E6R4T2Y1P0S", plugin: "summaries", stable_version: "3" },
    ...{ candidate_version: "4", state: "rolling", stage: 2, stages },
    reason: `${judged} of 1000 items of the candidate are judged`,
    metrics: METRICS.map((metric) => {
      const { stable, candidate } = pointAt(metric, POINTS - 1);
      const arm = ([lower, value, upper]: Bounds, n: number) => ({ n, value, lower, upper });
      const [more, less] = [
        { lower: candidate[0] - stable[2], upper: candidate[2] - stable[0] },
        { lower: stable[0] - candidate[2], upper: stable[2] - candidate[0] },
      ];
      return {
        ...{ metric: metric.name, max_worse: metric.maxWorse, verdict: "hold" },
        ...{ stable: arm(stable, 9 * judged), candidate: arm(candidate, judged) },
        difference: { value: null, ...(metric.isMoreWorse ? more : less) },
      };
    }),
  };
}

export function madeRelease(): Extract<PageNews, { kind: "release" }> {
  const points = Array.from({ length: POINTS }, (_, at) => ({
    judged: (at + 1) * JUDGED_EACH,
    metrics: METRICS.map((metric) => pointAt(metric, at)),
  }));
  return { kind: "release", release: nowOf(POINTS * JUDGED_EACH), anew: true, points };
}
