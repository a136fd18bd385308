// The one table of what a release's file may say: an entry makes the key. docs/releases.md shows a whole file; rules between values stand
// in release-rules.ts.
import type { FieldRule } from "./field.ts";

type Documented = FieldRule & { readonly doc: string };

const maxWorseRate = {
  kind: "percent",
  orNumber: true,
  default: "1%",
  doc: "How much worse the candidate's share may be: a difference, so that `1%` allows 3 % where stable has 2 %.",
} as const;

export const RELEASE_FIELDS = {
  plugin: {
    kind: "path",
    doc: "The candidate's manifest, relative to this file. `--plugin` may say it instead.",
  },
  alpha: {
    kind: "number",
    default: 0.05,
    doc: "The chance of a wrong verdict that is accepted for the whole release: 0.001 to 0.2.",
  },
  on_breach: {
    kind: "choice",
    choices: ["rollback", "hold"],
    default: "rollback",
    doc: "A candidate that is measurably worse is rolled back, or held for a person.",
  },
} as const satisfies Record<string, Documented>;

export const STAGE_FIELDS = {
  items: { kind: "percent", doc: "The share of the items that goes to the candidate: more in each stage." },
  workers: {
    kind: "integer",
    min: 1,
    max: 10_000,
    doc: "In place of `items`: so many workers get the candidate alone, for machines that hold one version at a time.",
  },
  min_items: {
    kind: "integer",
    default: 100,
    min: 1,
    max: 1_000_000_000,
    doc: "Judged attempts of the candidate before the stage can be promoted.",
  },
  min_time: {
    kind: "duration",
    default: "10s",
    min: "0ms",
    max: "30d",
    doc: "How long the stage lasts at least.",
  },
  max_items: {
    kind: "integer",
    min: 1,
    max: 1_000_000_000,
    doc: "Judged attempts of the candidate after which a stage without a verdict is held for a person.",
  },
} as const satisfies Record<string, Documented>;

export const METRIC_FIELDS = {
  errors: { max_worse: maxWorseRate },
  slower: {
    than: {
      kind: "duration",
      required: true,
      min: "1ms",
      max: "30d",
      doc: "Attempts that take longer are slow; the share of them is compared.",
    },
    max_worse: maxWorseRate,
  },
  number: {
    pointer: {
      kind: "text",
      required: true,
      maxBytes: 1_024,
      doc: "Where in the output the number is, as a JSON pointer such as `/score`. A worker reads it.",
    },
    name: {
      kind: "text",
      maxBytes: 64,
      doc: "Its name in `release status`. Without it, the last part of `pointer`.",
    },
    range: {
      kind: "range",
      default: [0, 1],
      doc: "Its lowest and its highest value. A number beyond counts as the nearest of them.",
    },
    better: {
      kind: "choice",
      choices: ["higher", "lower"],
      default: "higher",
      doc: "Which way it is better.",
    },
    max_worse: {
      kind: "number",
      doc: "How much worse the candidate's mean may be, in the unit of the number. Without it, a hundredth of `range`.",
    },
  },
} as const satisfies Record<string, Record<string, Documented>>;

export type MetricKind = keyof typeof METRIC_FIELDS;

export const METRIC_KINDS = Object.freeze(Object.keys(METRIC_FIELDS)) as readonly MetricKind[];
