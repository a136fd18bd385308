// A release as statistics see it: items come in order, each goes to one of two versions by chance, and after each one all metrics of the
// stage are looked at. Nothing else of a release is here: no workers, no time, no attempts under way.
import { alphaOfArm } from "../../../src/base/statistics/metric.ts";
import type { MetricSpec } from "../../../src/base/statistics/metric.ts";
import { JudgedMetric } from "./judged-metric.ts";
import type { ArmName } from "./judged-metric.ts";

export interface Scenario {
  readonly name: string;
  readonly alpha: number;
  /** Shares of the stages that are judged, in order. */
  readonly shares: readonly number[];
  /** Stages that alpha is shared among, where that is not the number of `shares`. */
  readonly judgedStages?: number;
  readonly metrics: readonly MetricSpec[];
  /** Judged items of the candidate that a stage needs. */
  readonly minItems: number;
  /** Items that are left: with the last one an undecided release ends. */
  readonly items: number;
  /** One observation of the metric at that place, of the item at a part of all items. */
  observe(metric: number, arm: ArmName, part: number, unit: () => number): number;
}

export interface Outcome {
  readonly ending: "rolled back" | "completed" | "undecided";
  /** Items that were tried on the candidate, and all items, until the end. */
  readonly tried: number;
  readonly passed: number;
}

export function simulateRelease(scenario: Scenario, unit: () => number): Outcome {
  const { alpha, shares, metrics, minItems, items, judgedStages = shares.length } = scenario;
  const level = alphaOfArm(alpha, { judgedStages, metrics: metrics.length });
  const fresh = (): readonly JudgedMetric[] => metrics.map((metric) => new JudgedMetric(metric, level));
  let [stage, judged, tried, triedInStage] = [0, fresh(), 0, 0];
  for (let at = 0; at < items; at++) {
    const arm = unit() < (shares[stage] ?? 1) ? "candidate" : "stable";
    if (arm === "candidate") {
      tried++;
      triedInStage++;
    }
    let index = 0;
    let isProved = true;
    for (const metric of judged) {
      metric.add(arm, scenario.observe(index++, arm, at / items, unit));
      const verdict = metric.look();
      if (verdict === "breach") return { ending: "rolled back", tried, passed: at + 1 };
      if (verdict !== "proof") isProved = false;
    }
    const isLast = stage === shares.length - 1;
    if (triedInStage < minItems || (isLast && !isProved)) continue;
    if (isLast) return { ending: "completed", tried, passed: at + 1 };
    [stage, judged, triedInStage] = [stage + 1, fresh(), 0];
  }
  return { ending: "undecided", tried, passed: items };
}
