// The answer to one scrape: metrics of the table in Prometheus' text format, version 0.0.4.
//
// The room of metrics: `metric-table` says which there are, `histogram` and `count-by` are kept where something happens, `process-meter` knows the
// process, and this file is made anew for each scrape.
import type { Histogram } from "./histogram.ts";
import { METRICS, metricOf } from "./metric-table.ts";
import type { LabelsOf, MetricName, NameOf } from "./metric-table.ts";

export const EXPOSITION_TYPE = "text/plain; version=0.0.4; charset=utf-8";

type Labels = Readonly<Record<string, string>>;
/** Metrics that have no labels are given none. */
type LabelsArgument<Name extends MetricName> =
  LabelsOf<Name> extends undefined ? [] : [labels: LabelsOf<Name>];

export class Exposition {
  /** By name: the lines of its series. */
  readonly #lines = new Map<MetricName, string[]>();

  add<Name extends NameOf<"counter" | "gauge">>(
    name: Name,
    value: number | boolean,
    ...[labels]: LabelsArgument<Name>
  ): void {
    this.#line(name, `${name}${shown(labels)} ${numberOf(Number(value))}`);
  }

  /** One series for each value of its label. */
  addEach<Name extends NameOf<"counter" | "gauge">, Label extends keyof LabelsOf<Name> & string>(
    name: Name,
    label: Label,
    values: Readonly<Record<LabelsOf<Name>[Label] & string, number>>,
  ): void {
    for (const [value, count] of Object.entries<number>(values))
      this.#line(name, `${name}${shown({ [label]: value })} ${numberOf(count)}`);
  }

  /** 1 for the one state that something is in, 0 for the others that the table has. */
  addState<Name extends NameOf<"gauge">, Label extends keyof LabelsOf<Name> & string>(
    name: Name,
    label: Label,
    current: LabelsOf<Name>[Label] & string,
  ): void {
    for (const state of metricOf(name).labels?.[label] ?? [])
      this.#line(name, `${name}${shown({ [label]: state })} ${state === current ? 1 : 0}`);
  }

  addHistogram<Name extends NameOf<"histogram">>(
    name: Name,
    histogram: Histogram,
    ...[labels]: LabelsArgument<Name>
  ): void {
    const { cumulative, sum } = histogram;
    for (const [bound, count] of cumulative)
      this.#line(name, `${name}_bucket${shown({ ...labels, le: numberOf(bound) })} ${count}`);
    this.#line(name, `${name}_sum${shown(labels)} ${numberOf(sum)}`);
    this.#line(name, `${name}_count${shown(labels)} ${cumulative.at(-1)?.[1] ?? 0}`);
  }

  /** In the order of the table. */
  get text(): string {
    const parts = (Object.keys(METRICS) as MetricName[]).flatMap((name) => {
      const lines = this.#lines.get(name);
      if (lines === undefined) return [];
      const { help, type } = metricOf(name);
      return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines];
    });
    return `${parts.join("\n")}\n`;
  }

  #line(name: MetricName, line: string): void {
    const lines = this.#lines.get(name);
    if (lines === undefined) this.#lines.set(name, [line]);
    else lines.push(line);
  }
}

/** Labels and their values are words of the table: nothing in them needs a backslash. */
function shown(labels: Labels | undefined): string {
  if (labels === undefined) return "";
  return `{${Object.entries(labels)
    .map(([name, value]) => `${name}="${value}"`)
    .join(",")}}`;
}

function numberOf(value: number): string {
  if (value === Infinity) return "+Inf";
  return value === -Infinity ? "-Inf" : String(value);
}
