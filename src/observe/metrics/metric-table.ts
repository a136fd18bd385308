// The table of all metrics: their names, kinds, meanings, and every value that a label of theirs may have. docs/metrics.md is made from it, and
// nothing else is exposed.
//
// Keeps true: a label has the values that stand here and no others, so a cluster of any size and age has the same number of series; none names
// an item or a worker.
import { COORDINATOR_METRICS } from "./coordinator-metrics.ts";
import { LEADER_METRICS } from "./leader-metrics.ts";
import type { Metric } from "./metric-values.ts";
import { PROCESS_METRICS } from "./process-metrics.ts";
import { WORKER_METRICS } from "./worker-metrics.ts";

export const METRICS = {
  ...LEADER_METRICS,
  ...COORDINATOR_METRICS,
  ...WORKER_METRICS,
  ...PROCESS_METRICS,
} as const;

export type MetricName = keyof typeof METRICS;

type Row<Name extends MetricName> = (typeof METRICS)[Name];

/** Names of one type. */
export type NameOf<Type extends Metric["type"]> = {
  [Name in MetricName]: Row<Name>["type"] extends Type ? Name : never;
}[MetricName];

/** Each label with one of its values; undefined for a metric that has none. */
export type LabelsOf<Name extends MetricName> =
  Row<Name> extends { readonly labels: infer Labels }
    ? { readonly [Label in keyof Labels]: Labels[Label] extends readonly (infer Value)[] ? Value : never }
    : undefined;

/** The row by the type that all rows have. */
export function metricOf(name: MetricName): Metric {
  return METRICS[name];
}
