// Settings of a worker.
import { LIMITS } from "../limits.ts";
import { worker, clients } from "./setting.ts";
import type { Setting } from "./setting.ts";

export const WORKER_SETTINGS = {
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
    doc: "Whose notices that the machine will be taken away are watched for; `auto` is the cloud that answers, which is asked for as long as none does.",
  },
  "worker.metadata_addr": {
    kind: "address",
    default: "169.254.169.254:80",
    portZero: false,
    flag: "metadata-addr",
    roles: worker,
    doc: "Where the cloud's metadata server answers; an address of this machine or its link only.",
  },
} as const satisfies Record<string, Setting>;
