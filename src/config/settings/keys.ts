// Settings of items with keys: how many keys there may be, on which workers their states are kept warm, and what a failed item means for
// those behind it.
import { coordinator, members, worker } from "./setting.ts";
import type { Setting } from "./setting.ts";

export const KEY_SETTINGS = {
  "keys.total_partitions": {
    kind: "integer",
    default: 128,
    min: 1,
    max: 4_096,
    roles: coordinator,
    doc: "How many partitions keys fall into; one worker keeps the states of a partition warm. Have at least 8 for each worker. The first submission with keys fixes the number for the run.",
  },
  "keys.virtual_nodes": {
    kind: "integer",
    default: 128,
    min: 1,
    max: 1_024,
    roles: coordinator,
    doc: "How many points each worker has on the ring that assigns partitions: more points make the workers' shares more equal.",
  },
  "keys.max_keys_per_partition": {
    kind: "integer",
    default: 2_000,
    min: 1,
    max: 1_048_576,
    roles: coordinator,
    doc: "How many keys one partition may have; a submission that would bring one more is refused as a whole.",
  },
  "keys.checkpoint_interval": {
    kind: "duration",
    default: "10s",
    min: "100ms",
    max: "1h",
    flag: "partition-checkpoint-interval",
    roles: coordinator,
    doc: "How often the coordinator asks workers to write checkpoints of their partitions of keys, if `keys.checkpoint_store` is set.",
  },
  "keys.checkpoint_store": {
    kind: "place",
    flag: "checkpoint-store",
    roles: members,
    doc: "Where workers keep checkpoints of their partitions of keys: a directory that all workers reach, or a bucket by an S3 or HTTPS URL. Without it there are no checkpoints, and each item of a key comes with its state.",
  },
  "keys.checkpoint_credentials": {
    kind: "path",
    flag: "checkpoint-credentials",
    roles: worker,
    doc: "A file in the format of `~/.aws/credentials`; its profile `default` is used for the bucket in `keys.checkpoint_store`. Without it the variables `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN` are used. The file is read for each request.",
  },
  "keys.spill_after": {
    kind: "duration",
    default: "250ms",
    min: "0ms",
    max: "1h",
    roles: coordinator,
    doc: "How long an item that could start waits for a free slot of the worker that owns its key's partition; after that the next worker on the ring with a free slot takes it.",
  },
  "keys.on_failed": {
    kind: "choice",
    choices: ["park", "skip"],
    default: "park",
    roles: coordinator,
    doc: "What happens when an item of a key fails for good: `park` keeps the items behind it until it is retried or skipped, `skip` goes on with them.",
  },
} as const satisfies Record<string, Setting>;
