// The one table of settings. An entry makes the key in the file, the environment variable, the flag, the line in
// docs/CONFIGURATION.md and the refusal of anything else; there is no second place to add a setting to.
import { LIMITS } from "./limits.ts";
import type { ValueRule } from "./value-rule.ts";

/** Who reads the configuration. What is required differs; what is allowed does not. */
export type ConfigRole = "coordinator" | "worker" | "operator";

interface SettingBase {
  /** One sentence. */
  readonly doc: string;
  /** The flag without its dashes. */
  readonly flag: string;
  /** Whose commands take the flag. */
  readonly roles: readonly ConfigRole[];
  /** Who cannot start without it. */
  readonly requiredFor?: readonly ConfigRole[];
  /** How a default that is no constant is found, in words. */
  readonly derived?: string;
}

export type Setting = SettingBase & ValueRule;

const everybody = ["coordinator", "worker", "operator"] as const satisfies readonly ConfigRole[];
const members = ["coordinator", "worker"] as const satisfies readonly ConfigRole[];
const coordinator = ["coordinator"] as const satisfies readonly ConfigRole[];
const worker = ["worker"] as const satisfies readonly ConfigRole[];
const submitters = ["coordinator", "operator"] as const satisfies readonly ConfigRole[];
const clients = ["worker", "operator"] as const satisfies readonly ConfigRole[];

export const SETTINGS = {
  run_id: {
    kind: "ulid",
    flag: "run-id",
    roles: everybody,
    requiredFor: everybody,
    doc: "The run that coordinator, workers and commands belong to; certificates and the database are bound to it.",
  },

  "storage.path": {
    kind: "path",
    flag: "storage-path",
    roles: coordinator,
    requiredFor: coordinator,
    doc: "The coordinator's database: a directory of its own on a local disk.",
  },

  "transport.listen_addr": {
    kind: "address",
    portZero: true,
    flag: "listen-addr",
    roles: coordinator,
    requiredFor: coordinator,
    doc: "Where the coordinator listens; port 0 takes any free one.",
  },
  "transport.tls_dir": {
    kind: "path",
    default: "./data/tls",
    flag: "tls-dir",
    roles: everybody,
    doc: "Certificates and keys; the first start makes a development CA in it.",
  },
  "transport.ca_file": {
    kind: "path",
    flag: "ca-file",
    roles: everybody,
    doc: "The certificate of a CA of your own, in place of the development CA.",
  },
  "transport.cert_file": {
    kind: "path",
    flag: "cert-file",
    roles: everybody,
    doc: "This process's certificate from that CA.",
  },
  "transport.key_file": {
    kind: "path",
    flag: "key-file",
    roles: everybody,
    doc: "The key of that certificate, readable by its owner only.",
  },
  "transport.advertised_names": {
    kind: "list",
    of: "host",
    default: [],
    flag: "advertised-names",
    roles: coordinator,
    doc: "More DNS names and IP addresses for the coordinator's certificate, for clients that check them.",
  },

  "liveness.heartbeat_interval": {
    kind: "duration",
    default: "500ms",
    min: "50ms",
    max: "1m",
    flag: "heartbeat-interval",
    roles: members,
    doc: "How often a worker says that it is alive.",
  },
  "liveness.worker_self_fence_timeout": {
    kind: "duration",
    default: "4s",
    min: "100ms",
    max: "1h",
    flag: "worker-self-fence-timeout",
    roles: members,
    doc: "How long after its last acknowledged heartbeat a worker starts nothing more.",
  },
  "liveness.coordinator_failure_timeout": {
    kind: "duration",
    default: "5s",
    min: "100ms",
    max: "1h",
    flag: "coordinator-failure-timeout",
    roles: members,
    doc: "How late a heartbeat may be before the worker counts as failed.",
  },
  "liveness.clock_skew_budget": {
    kind: "duration",
    default: "250ms",
    min: "0ms",
    max: "1m",
    flag: "clock-skew-budget",
    roles: members,
    doc: "How late a heartbeat may be before the worker is suspected.",
  },
  "liveness.remove_after": {
    kind: "duration",
    default: "1h",
    min: "1s",
    max: "30d",
    flag: "remove-after",
    roles: coordinator,
    doc: "How long a failed worker is remembered.",
  },

  "coordinator.lease_renewal": {
    kind: "duration",
    derived: "a fifth of `liveness.coordinator_failure_timeout`",
    min: "10ms",
    max: "1h",
    flag: "lease-renewal",
    roles: coordinator,
    doc: "How often a leader renews its lease, where several coordinators share a database.",
  },
  "coordinator.lease_deadline": {
    kind: "duration",
    derived: "four fifths of `liveness.coordinator_failure_timeout`",
    min: "20ms",
    max: "1h",
    flag: "lease-deadline",
    roles: coordinator,
    doc: "How long after it sent its last successful renewal a leader stops leading; another one waits for the whole `liveness.coordinator_failure_timeout`.",
  },

  "run.max_attempts": {
    kind: "integer",
    default: 3,
    min: 1,
    max: 1_000,
    flag: "max-attempts",
    roles: coordinator,
    doc: "How many attempts of an item may fail by its own doing (error, timeout, crash) before the item fails.",
  },
  "run.max_lost": {
    kind: "integer",
    default: 5,
    min: 1,
    max: 1_000,
    flag: "max-lost",
    roles: coordinator,
    doc: "How many workers may fall silent while they run an item before the item fails as poison. After two of them it runs with nothing beside it; with 1 or 2 here it fails before that, perhaps for what ran beside it.",
  },
  "run.item_timeout": {
    kind: "duration",
    min: "10ms",
    max: "30d",
    flag: "item-timeout",
    roles: coordinator,
    doc: "How long one attempt of an item may take; without it, as long as its plugin lets it.",
  },
  "run.max_fails": {
    kind: "failures",
    flag: "max-fails",
    roles: coordinator,
    doc: "How many items may fail before the run is paused, counted from its start or from when it was last resumed; a percentage is of the items that are final, and is judged when 20 of them are. What runs by then is finished and recorded, so a few more may fail.",
  },
  "run.time_limit": {
    kind: "duration",
    min: "1s",
    max: "365d",
    flag: "time-limit",
    roles: coordinator,
    doc: "How long the run may go on before it is paused, counted from its first submission or from when it was last resumed.",
  },

  "limits.payload": {
    kind: "size",
    default: "1MiB",
    min: "1KiB",
    max: "16MiB",
    flag: "payload-limit",
    roles: submitters,
    doc: "The largest payload of an item. The coordinator refuses a larger one, and so does `rollout submit` before it sends it; set it for both.",
  },
  "limits.output": {
    kind: "size",
    default: "1MiB",
    min: "1KiB",
    max: "16MiB",
    flag: "output-limit",
    roles: members,
    doc: "The largest output of an item. An item with a larger one fails as too_large; of worker and coordinator the stricter wins.",
  },

  "worker.coordinator_addr": {
    kind: "address",
    portZero: false,
    derived: "`transport.listen_addr`, on this machine",
    flag: "coordinator-addr",
    roles: clients,
    requiredFor: clients,
    doc: "Where workers and commands reach the coordinator.",
  },
  "worker.state_dir": {
    kind: "path",
    default: "./data/state",
    flag: "state-dir",
    roles: worker,
    doc: "What workers of this machine keep, each in a directory of its own below it.",
  },
  "worker.enrolment": {
    kind: "path",
    derived: "`enrolment.pem` in `transport.tls_dir`",
    flag: "enrolment",
    roles: worker,
    doc: "The bundle with which a worker asks for its certificate; `rollout ca issue` makes one for another machine.",
  },
  "worker.slots": {
    kind: "integer",
    default: 1,
    min: 1,
    max: LIMITS.slotsPerWorker,
    flag: "slots",
    roles: worker,
    doc: "How many items a worker executes at once.",
  },
  "worker.plugins": {
    kind: "list",
    of: "path",
    default: [],
    flag: "plugin",
    roles: worker,
    doc: "Manifests of the plugins that a worker has; without one it has `mock`. The flag may be given several times.",
  },
  "worker.hot_reload": {
    kind: "boolean",
    default: false,
    flag: "hot-reload",
    roles: worker,
    doc: "Whether a worker takes up a plugin whose files change, between items.",
  },
  "worker.checkpoint_interval": {
    kind: "duration",
    default: "5s",
    min: "100ms",
    max: "1h",
    flag: "checkpoint-interval",
    roles: worker,
    doc: "How often a worker sends the checkpoint of an attempt that runs to the coordinator, at most: what an attempt loses when its worker is gone without a word.",
  },
  "worker.on_fence": {
    kind: "choice",
    choices: ["finish", "abort"],
    default: "finish",
    flag: "on-fence",
    roles: worker,
    doc: "What becomes of running items when a worker has not been answered for `liveness.worker_self_fence_timeout`: they are finished, or killed before the coordinator can have given them to others.",
  },
  "worker.preemption": {
    kind: "choice",
    choices: ["auto", "aws", "gcp", "none"],
    default: "none",
    flag: "preemption",
    roles: worker,
    doc: "Whose notices that the machine will be taken away are watched for; `auto` is the cloud that answers.",
  },
  "worker.metadata_addr": {
    kind: "address",
    default: "169.254.169.254:80",
    portZero: false,
    flag: "metadata-addr",
    roles: worker,
    doc: "Where the cloud's metadata server answers; an address of this machine or its link only.",
  },

  "mock.sleep": {
    kind: "duration",
    default: "0ms",
    min: "0ms",
    max: "1h",
    flag: "mock-sleep",
    roles: worker,
    doc: "How long the mock backend pretends to work on an item.",
  },
  "mock.distribution": {
    kind: "choice",
    choices: ["constant", "uniform", "exponential"],
    default: "constant",
    flag: "mock-distribution",
    roles: worker,
    doc: "How that time varies: not at all, between nothing and twice of it, or exponentially around it.",
  },
  "mock.failure_percent": {
    kind: "integer",
    default: 0,
    min: 0,
    max: 100,
    flag: "mock-failure-percent",
    roles: worker,
    doc: "How many of a hundred attempts the mock backend lets fail.",
  },
  "mock.journal": {
    kind: "path",
    flag: "mock-journal",
    roles: worker,
    doc: "A file to which the mock backend appends a line for each execution.",
  },

  "events.hide": {
    kind: "list",
    of: "topic",
    default: [],
    flag: "hide-events",
    roles: members,
    doc: "Topics that are left out of the event stream.",
  },
  "events.buffer": {
    kind: "size",
    default: "8MiB",
    min: "64KiB",
    max: "1GiB",
    flag: "events-buffer",
    roles: members,
    doc: "How much of the event stream waits in memory for a slow reader; what does not fit is counted and left out.",
  },

  "log.level": {
    kind: "choice",
    choices: ["debug", "info", "warn", "error"],
    default: "info",
    flag: "log-level",
    roles: everybody,
    doc: "The least level that is logged.",
  },
  "log.format": {
    kind: "choice",
    choices: ["auto", "human", "json"],
    default: "auto",
    flag: "log-format",
    roles: everybody,
    doc: "How log lines look; `auto` is `human` on a terminal and `json` elsewhere.",
  },
} as const satisfies Record<string, Setting>;

export type SettingKey = keyof typeof SETTINGS;

type ValueOf<Row extends Setting> = Row extends { readonly kind: "duration" | "size" | "integer" }
  ? number
  : Row extends { readonly kind: "boolean" }
    ? boolean
    : Row extends { readonly kind: "list" }
      ? readonly string[]
      : Row extends { readonly choices: readonly (infer Choice)[] }
        ? Choice
        : string;

type HasDefault<Key extends SettingKey> = (typeof SETTINGS)[Key] extends { readonly default: unknown }
  ? true
  : false;

/** What a setting is when it is resolved: milliseconds, bytes, absolute path, …; undefined when it may be missing. */
export type SettingValue<Key extends SettingKey> =
  ValueOf<(typeof SETTINGS)[Key]> | (HasDefault<Key> extends true ? never : undefined);

export const SETTING_KEYS = Object.freeze(Object.keys(SETTINGS)) as readonly SettingKey[];

/** The entry, without what the compiler knows of this one alone. */
export function settingOf(key: SettingKey): Setting {
  return SETTINGS[key];
}

/** The tables of the file. */
export const SECTIONS: readonly string[] = Object.freeze([
  ...new Set(SETTING_KEYS.filter((key) => key.includes(".")).map((key) => key.split(".", 1).join())),
]);

export function isSettingKey(text: string): text is SettingKey {
  return Object.hasOwn(SETTINGS, text);
}
