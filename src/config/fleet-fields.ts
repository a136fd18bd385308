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
    choices: ["exec", "ssh"],
    doc: "The system that has the machines; `exec` is a program of yours, `ssh` are hosts that are there.",
  },
  slots: {
    kind: "integer",
    default: 1,
    min: 0,
    max: 1_024,
    doc: "How many items one worker executes at once; with `ssh`, 0 is the number of cores of its host.",
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
    min: 1,
    max: 10_000,
    doc: "Workers at most, those that end included. Required, but with `ssh`: there it is the number of hosts, and no more.",
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
  orphan_timeout: {
    kind: "duration",
    default: "30m",
    min: "1s",
    max: "30d",
    doc: "A worker to which no coordinator has answered for so long ends by itself.",
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
    doc: "`exec`: the program and its first words. It runs in the directory of rollout.toml.",
  },
  hosts: {
    kind: "hosts",
    required: true,
    doc: "`ssh`: the hosts, each for one worker; `c=16`: with 16 slots.",
  },
  program: {
    kind: "text",
    default: "rollout",
    maxBytes: 4_096,
    doc: "`ssh`: rollout on the hosts, as words of a shell.",
  },
  args: {
    kind: "command",
    doc: "`ssh`: further words for `rollout worker run` there.",
  },
  plugin: {
    kind: "path",
    doc: "`ssh`: a manifest on the coordinator's machine, by which the workers execute; its paths are those of a host, and no rollout.toml is read there.",
  },
  dir: {
    kind: "text",
    maxBytes: 4_096,
    doc: "`ssh`: where workers start on a host, made if it is not there; from where a login begins, which is also the default.",
  },
  env: {
    kind: "texts",
    default: {},
    doc: "`ssh`: variables for the workers. They stand in no command line.",
  },
  ssh: {
    kind: "command",
    default: ["ssh"],
    doc: 'The client with words of yours, such as `["ssh", "-F", "cluster.conf"]`. It runs in the directory of rollout.toml.',
  },
  tunnel: {
    kind: "boolean",
    default: false,
    doc: "`ssh`: workers reach the coordinator through a tunnel from its machine (`ssh -R`), at a port of the loopback of theirs.",
  },
  advertise: {
    kind: "addresses",
    max: 16,
    doc: "Where workers find coordinators, if it is elsewhere than `worker.coordinator_addr` says.",
  },
  timeout: {
    kind: "duration",
    default: "1m",
    min: "100ms",
    max: "1h",
    doc: "After so long the program, or a login, is killed, and nobody knows what it has done.",
  },
} as const satisfies Record<string, Documented>;

export type FleetField = keyof typeof FLEET_FIELDS;

/** Fields that only some providers have. */
export const FIELDS_OF_PROVIDERS = {
  exec: ["command", "timeout"],
  ssh: ["hosts", "program", "args", "plugin", "dir", "env", "ssh", "tunnel", "timeout"],
} as const satisfies Record<(typeof FLEET_FIELDS)["provider"]["choices"][number], readonly FleetField[]>;

/** Whether it is about a fleet. */
export function isFleetSetting({ key }: { readonly key: string }): boolean {
  return key === FLEET_LIST || key.startsWith(`${FLEET_LIST}[`);
}
