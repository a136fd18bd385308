// A release as the program has it: the stages that a candidate passes, and the metrics by which it is judged.
import type { MetricSpec } from "../base/statistics/metric.ts";

export interface StageDemands {
  /** Judged attempts of the candidate before the stage can be promoted. */
  readonly minItems: number;
  readonly minTimeMs: number;
  /** Judged attempts of the candidate after which a stage without a verdict is held; undefined: there is no such number. */
  readonly maxItems: number | undefined;
}

/** Which items the candidate gets: a share of them, more than 0 and at most 1; or all of some workers'. */
export type StageSpec = StageDemands &
  (
    | { readonly kind: "items"; readonly share: number }
    | { readonly kind: "workers"; readonly workers: number }
  );

export interface ReleaseSpec {
  /** The chance of a wrong verdict, over the whole release. */
  readonly alpha: number;
  readonly onBreach: "rollback" | "hold";
  /** The last one is all items, and no verdict is needed in it: it is promoted as it opens. */
  readonly stages: readonly StageSpec[];
  readonly metrics: readonly MetricSpec[];
}
