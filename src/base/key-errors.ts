// The rows of the table of errors that are about keys, and about actors, which are keys.
import { EXIT, conflicting, unknown } from "./error-row.ts";
import type { ErrorRow } from "./error-row.ts";

export const KEY_ERRORS = {
  event_id_reused: {
    ...conflicting,
    message: "event {event} of {key} was submitted before with another payload",
    hint: "an event id names one item for ever: give a changed event another id",
  },
  partition_full: {
    ...conflicting,
    message:
      "partition {partition} would have more than {limit} keys with {key} (keys.max_keys_per_partition)",
    hint: "nothing of this batch was submitted; `rollout key retire` makes room, or start the coordinator with a higher limit",
  },
  partitions_fixed: {
    ...conflicting,
    message: "the keys of this run are in {found} partitions, and keys.total_partitions is {configured}",
    hint: "start the coordinator with keys.total_partitions = {found}: the first submission with keys fixed it",
  },
  key_unknown: {
    ...unknown,
    message: "the run has no key {key}",
    hint: "`rollout key list{config}` lists its keys",
  },
  key_refused: {
    ...conflicting,
    message: "{keys}: {reason}",
    hint: "`rollout key get KEY{config}` shows its items and its state",
  },
  run_not_paused: {
    ...conflicting,
    message: "the run is not paused: exported keys would go on in both runs",
    hint: "pause it with `rollout pause{config}`, export when no item executes any more, import there, then `rollout cancel{config}` here",
  },
  actor_unknown: {
    ...unknown,
    message: "the run has no actor {actor}",
    hint: "an actor is named TYPE/ID; `rollout actor list{config}` lists the actors, `rollout actor send{config}` makes one",
  },
  actor_parked: {
    ...conflicting,
    message: "actor {actor} is parked: {reason}",
    hint: "`rollout retry{config}` tries its event again, `rollout actor skip {actor}{config}` goes on without it",
  },
  actor_ended: {
    ...conflicting,
    message: "actor {actor} cannot reach the awaited state: {reason}",
    hint: "`rollout actor history {actor}{config}` shows the events that led to its state",
  },
  actor_not_there_yet: {
    ...conflicting,
    exit: EXIT.itemsFailed,
    message: "actor {actor} has not reached the awaited state within {seconds} s: it is in {value}",
    hint: "wait again; `rollout actor get {actor}{config}` shows what it waits for",
  },
} as const satisfies Record<string, ErrorRow>;
