// Counters of one metric by the values of its label: plain fields, so that counting is an addition.
import type { LabelsOf, NameOf } from "./metric-table.ts";
import { metricOf } from "./metric-table.ts";

export type CountBy<
  Name extends NameOf<"counter" | "gauge">,
  Label extends keyof LabelsOf<Name> & string,
> = Record<LabelsOf<Name>[Label] & string, number>;

/** All of them at 0, so that each series is there before anything has happened. */
export function countBy<
  Name extends NameOf<"counter" | "gauge">,
  Label extends keyof LabelsOf<Name> & string,
>(name: Name, label: Label): CountBy<Name, Label> {
  const values = metricOf(name).labels?.[label] ?? [];
  return Object.fromEntries(values.map((value) => [value, 0])) as CountBy<Name, Label>;
}
