// The one table of what `[[fleet]]` in rollout.toml may say. An entry makes the key and its line in docs/CONFIGURATION.md; rules between values stand in
// fleet-file.ts.
import type { FieldRule } from "./field.ts";

/** The list of tables. */
export const FLEET_LIST = "fleet";

type Documented = FieldRule & { readonly doc: string };

export const FLEET_FIELDS = {
  name: {
    kind: "text",
    required: true,
    maxBytes: 32,
    doc: "Its name: a label of small letters, digits and dashes.",
  },
  provider: {
    kind: "choice",
    required: true,
    choices: ["exec"],
    doc: "The system that has the machines; `exec` is a program of yours.",
  },
  slots: {
    kind: "integer",
    default: 1,
    min: 1,
    max: 1_024,
    doc: "How many items one worker executes at once.",
  },
  min: {
    kind: "integer",
    default: 0,
    min: 0,
    max: 10_000,
    doc: "Workers that are there while the run is not over, also without work.",
  },
  max: {
    kind: "integer",
    required: true,
    min: 1,
    max: 10_000,
    doc: "Workers at most, those that end included.",
  },
  finish_within: {
    kind: "duration",
    default: "10m",
    min: "0s",
    max: "30d",
    doc: "The time in which the work is to be done, from when items last came in: it says how many workers are wanted. `0s` wants a slot for each item.",
  },
  idle_timeout: {
    kind: "duration",
    default: "1m",
    min: "0s",
    max: "1d",
    doc: "How long a worker that is not needed may have nothing to do before it ends.",
  },
  poll_interval: {
    kind: "duration",
    default: "10s",
    min: "100ms",
    max: "10m",
    doc: "How often the provider is asked about workers that are not heard.",
  },
  start_timeout: {
    kind: "duration",
    default: "5m",
    min: "1s",
    max: "1d",
    doc: "How long a machine may take until its worker joins, and how long a worker may be silent, before it is given back.",
  },
  queue_timeout: {
    kind: "duration",
    min: "1s",
    max: "30d",
    doc: "How long a machine may wait in its provider's queue; without it, as long as it likes.",
  },
  max_pending: {
    kind: "integer",
    default: 8,
    min: 1,
    max: 1_000,
    doc: "Workers at most that have been asked for and have not joined.",
  },
  max_lifetime: {
    kind: "duration",
    min: "1m",
    max: "365d",
    doc: "A worker ends after so long, and another takes its place.",
  },
  price_per_hour: {
    kind: "number",
    above: 0,
    doc: "What one machine costs in an hour, in whatever you count.",
  },
  max_machine_hours: {
    kind: "number",
    above: 0,
    doc: "Hours of machines that the fleet may use in this run.",
  },
  max_cost: { kind: "number", above: 0, doc: "What the fleet may cost in this run; needs `price_per_hour`." },
  max_cost_per_hour: { kind: "number", above: 0, doc: "What it may cost at once; needs `price_per_hour`." },
  stop_at: {
    kind: "text",
    maxBytes: 40,
    doc: 'When it ends, whatever is left to do: a time with its zone, such as `"2027-01-31T18:00:00Z"`.',
  },
  command: {
    kind: "command",
    required: true,
    doc: "The program and its first words. It runs in the directory of rollout.toml.",
  },
  timeout: {
    kind: "duration",
    default: "1m",
    min: "100ms",
    max: "1h",
    doc: "After so long the program is killed, and nobody knows what it has done.",
  },
} as const satisfies Record<string, Documented>;

export type FleetField = keyof typeof FLEET_FIELDS;

/** Whether it is about a fleet. */
export function isFleetSetting({ key }: { readonly key: string }): boolean {
  return key === FLEET_LIST || key.startsWith(`${FLEET_LIST}[`);
}
