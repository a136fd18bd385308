// The release that its cost is measured by: one stage of ten per cent, three metrics of which none will ever be decided, so that all of them are
// judged in every turn until the run is over.
import type { MetricSpec } from "../../../src/base/statistics/metric.ts";
import type { ReleaseSpec, StageSpec } from "../../../src/config/release.ts";

const SHARE = 0.1;
const POINTER = "/score";

/** More items than any run here has. */
const NEVER = 1e9;

const METRICS: readonly MetricSpec[] = [
  { kind: "errors", maxWorse: 0.01 },
  { kind: "slower", thanMs: 60_000, maxWorse: 0.01 },
  {
    ...{ kind: "number", name: "score", pointer: POINTER, low: 0, high: 1 },
    ...{ better: "higher", maxWorse: 0.01 },
  },
];

function stage(share: number): StageSpec {
  return { kind: "items", share, minItems: NEVER, minTimeMs: 0, maxItems: undefined };
}

/** `stages` counts the one that the release stays in, those that would follow, and the last one of all items. */
export function termsOf(stages = 2): Omit<ReleaseSpec, "plugin"> {
  const judged = Array.from({ length: stages - 1 }, (_, at) => stage(SHARE + at / 100));
  return { alpha: 0.05, onBreach: "rollback", stages: [...judged, stage(1)], metrics: METRICS };
}
