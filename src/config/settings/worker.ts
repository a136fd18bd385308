// Settings of a worker and of the mock backend, and of what a process says of itself.
import { LIMITS } from "../limits.ts";
import { MANIFEST_FIELDS } from "../manifest-fields.ts";
import { worker, clients, everybody, members } from "./setting.ts";
import type { Setting } from "./setting.ts";

export const WORKER_SETTINGS = {
  "worker.coordinator_addr": {
    kind: "addresses",
    max: LIMITS.coordinators,
    derived:
      "as the named bundle says, else `transport.advertised_addr`, else `transport.listen_addr`, on this machine",
    roles: clients,
    requiredFor: clients,
    doc: "Where workers and commands reach the coordinator, or several of which one leads: a list, or with commas.",
  },
  "worker.state_dir": {
    kind: "path",
    default: "./data/state",
    roles: worker,
    doc: "What workers of this machine keep, each in a directory of its own below it.",
  },
  "worker.enrolment": {
    kind: "path",
    derived: "`enrolment.pem` in `transport.tls_dir`",
    roles: worker,
    doc: "The bundle with which a worker asks for its certificate; `rollout ca issue` makes one for another machine. One that is named here also says `run_id` and `worker.coordinator_addr`, where no setting does.",
  },
  "worker.slots": {
    kind: "integer",
    default: 1,
    min: 1,
    max: LIMITS.slotsPerWorker,
    roles: worker,
    doc: "How many items a worker executes at once.",
  },
  "worker.backlog_time": {
    kind: "duration",
    default: "250ms",
    min: "10ms",
    max: "1m",
    roles: worker,
    doc: `How long the items that wait at a worker beside those that it executes are to last, at the rate at which it has lately ended some: from 1 item to ${LIMITS.backlogPerWorker}. More helps where the coordinator is far away.`,
  },
  "worker.plugins": {
    kind: "list",
    of: "path",
    default: [],
    flag: "plugin",
    roles: worker,
    doc: "Manifests of the plugins that a worker has; without one it has `mock`. The flag may be given several times. Several of one name are versions of one plugin: the first is the worker's own, which executes what names no version.",
  },
  "worker.plugin_dir": {
    kind: "path",
    roles: worker,
    doc: "A directory of further versions of these plugins: each manifest in it (`*.toml`), or link to one, is taken up while the worker runs. One that cannot be taken up is a warning.",
  },
  "worker.loaded_versions": {
    kind: "integer",
    default: 2,
    min: 1,
    max: 4,
    roles: worker,
    doc: "How many versions of one plugin are loaded at once. A version is loaded when its first item comes. With 1, for a GPU that holds one model, the worker ends what runs, closes one version and loads the other; no item is charged for that time.",
  },
  "worker.hot_reload": {
    kind: "boolean",
    default: false,
    roles: worker,
    doc: "Whether a worker takes up a plugin whose files change, between items. Another task under another version is taken up beside the old one.",
  },
  "worker.checkpoint_interval": {
    kind: "duration",
    default: "5s",
    min: "100ms",
    max: "1h",
    roles: worker,
    doc: "How often a worker sends the checkpoint of an attempt that runs to the coordinator, at most: what an attempt loses when its worker is gone without a word.",
  },
  "worker.start_timeout": {
    kind: "duration",
    default: "2m",
    min: "1s",
    max: "1d",
    roles: worker,
    doc: "How long a worker waits while its machine has no room for any process or file of an attempt. Then it hands its items back and ends with `backend_broken`.",
  },
  "worker.on_fence": {
    kind: "choice",
    choices: ["finish", "abort"],
    default: "finish",
    roles: worker,
    doc: "What becomes of running items when a worker has not been answered for `liveness.worker_self_fence_timeout`: they are finished, or killed before the coordinator can have given them to others.",
  },
  "worker.preemption": {
    kind: "choice",
    choices: ["auto", "aws", "gcp", "none"],
    default: "none",
    roles: worker,
    doc: "Whose notices that the machine will be taken away are watched for; `auto` is the cloud that answers, which is asked for as long as none does.",
  },
  "worker.metadata_addr": {
    kind: "address",
    default: "169.254.169.254:80",
    portZero: false,
    roles: worker,
    doc: "Where the cloud's metadata server answers; an address of this machine or its link only.",
  },
  "worker.monitor_addr": {
    kind: "address",
    portZero: true,
    ofThisMachine: true,
    roles: worker,
    doc: "Where this worker answers `/healthz`, `/readyz` and `/metrics` over plain HTTP, on this machine alone; without it nowhere. Port 0 takes a free one, which the log names: several workers of one machine need that, or the flag.",
  },

  "mock.sleep": {
    ...MANIFEST_FIELDS.mock.sleep,
    flag: "mock-sleep",
    roles: worker,
    doc: "How long the mock backend pretends to work on an item.",
  },
  "mock.distribution": {
    ...MANIFEST_FIELDS.mock.distribution,
    flag: "mock-distribution",
    roles: worker,
  },
  "mock.failure_percent": {
    ...MANIFEST_FIELDS.mock.failure_percent,
    flag: "mock-failure-percent",
    roles: worker,
    doc: "How many of a hundred attempts the mock backend lets fail.",
  },
  "mock.journal": {
    ...MANIFEST_FIELDS.mock.journal,
    flag: "mock-journal",
    roles: worker,
    doc: "A file to which the mock backend appends a line for each execution.",
  },
  "mock.state": {
    ...MANIFEST_FIELDS.mock.state,
    flag: "mock-state",
    roles: worker,
    doc: "The size of the state that the mock backend keeps for each key; without it it keeps none.",
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

  "inspect.stately": {
    kind: "websocket",
    flag: "inspect-stately",
    roles: members,
    doc: "A WebSocket server that is told of this process's charts as they move, by the protocol of `@statelyai/inspect`: what `rollout inspect --listen` says, or a relay of yours. Without it nothing is told. States, events and ids leave, payloads and outputs never.",
  },
  "inspect.stately_remote": {
    kind: "boolean",
    default: false,
    flag: "inspect-stately-remote",
    roles: members,
    doc: "Whether `inspect.stately` may name another machine than this one.",
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
