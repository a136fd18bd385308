// Settings of items with keys: how many keys there may be, on which workers their states are kept warm, and what a failed item means for
// those behind it.
import { coordinator } from "./setting.ts";
import type { Setting } from "./setting.ts";

export const KEY_SETTINGS = {
  "keys.total_partitions": {
    kind: "integer",
    default: 128,
    min: 1,
    max: 4_096,
    roles: coordinator,
    doc: "How many partitions keys fall into; a partition's states are kept warm on one worker. At least 8 for each worker are advisable. The first submission with keys fixes it for the run.",
  },
  "keys.virtual_nodes": {
    kind: "integer",
    default: 128,
    min: 1,
    max: 1_024,
    roles: coordinator,
    doc: "How many points each worker has on the ring that says which partitions are its own: more of them make shares more equal.",
  },
  "keys.max_keys_per_partition": {
    kind: "integer",
    default: 2_000,
    min: 1,
    max: 1_048_576,
    roles: coordinator,
    doc: "How many keys one partition may have; a submission that would bring one more is refused whole.",
  },
  "keys.spill_after": {
    kind: "duration",
    default: "250ms",
    min: "0ms",
    max: "1h",
    roles: coordinator,
    doc: "How long an item that could start waits for the worker that has its key's partition; then the next one on the ring with a free slot takes it.",
  },
  "keys.on_failed": {
    kind: "choice",
    choices: ["park", "skip"],
    default: "park",
    roles: coordinator,
    doc: "When an item of a key fails for good: `park` keeps the items behind it until it is retried or skipped, `skip` goes on with them.",
  },
} as const satisfies Record<string, Setting>;
