// Ways to the rows of the table of errors that submissions with keys lead to.
import type { Provocation } from "./scene.ts";

type KeyCode = "event_id_reused" | "partition_full" | "partitions_fixed";

export const KEY_PROVOCATIONS: { readonly [Code in KeyCode]: Provocation<Code> } = {
  event_id_reused: {
    by: "an event that comes again with another payload (a coordinator of ours, made to say so)",
    says: { event: "e1", key: "c17" },
  },
  partition_full: {
    by: "a key too many (a coordinator of ours, made to say so)",
    says: { key: "c17", partition: 3, limit: 2_000 },
  },
  partitions_fixed: {
    by: "another number of partitions (a coordinator of ours, made to say so)",
    says: { found: 128, configured: 64 },
  },
};
