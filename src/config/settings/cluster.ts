// Settings of the cluster: the run, where it is stored, how its members reach each other and when one counts as failed.
import { LIMITS } from "../limits.ts";
import { coordinator, everybody, members, nobody } from "./setting.ts";
import type { Setting } from "./setting.ts";

export const CLUSTER_SETTINGS = {
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

  "enrolment.quota": {
    kind: "integer",
    default: LIMITS.enrolledPerBundle,
    min: 1,
    max: LIMITS.enrolledPerBundleMax,
    flag: "enrolment-quota",
    roles: coordinator,
    doc: "How many workers may join by one enrolment bundle, each counted once and for good; there is a warning when a fifth of it is left.",
  },
  "enrolment.lifetime": {
    kind: "duration",
    default: "30d",
    min: "10m",
    max: "365d",
    flag: "enrolment-lifetime",
    roles: coordinator,
    doc: "How long workers can join by an enrolment bundle from when it is made; there is a warning when a fifth of it is left. Workers that have joined stay, and the coordinator renews the bundle of its own machine.",
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
    roles: nobody,
    doc: "How often a leader renews its lease, where several coordinators share a database.",
  },
  "coordinator.lease_deadline": {
    kind: "duration",
    derived: "four fifths of `liveness.coordinator_failure_timeout`",
    min: "20ms",
    max: "1h",
    flag: "lease-deadline",
    roles: nobody,
    doc: "How long after it sent its last successful renewal a leader stops leading; another one waits for the whole `liveness.coordinator_failure_timeout`.",
  },
} as const satisfies Record<string, Setting>;
