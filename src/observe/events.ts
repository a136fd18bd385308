// The events of the cluster: what each topic says, how loud it is, and what its fields mean. docs/EVENTS.md is made
// from this table. An event is something that happened to the cluster; nothing is emitted per item.
//
// Keys of payloads are snake_case, ids are text, times in milliseconds end in `_ms`.

import { number, of, perhaps, perhapsText, text } from "./event-row.ts";
import type { EventRow, ValueOf } from "./event-row.ts";
import { FLEET_EVENTS } from "./fleet-events.ts";
import { RELEASE_EVENTS } from "./release-events.ts";

/** Where events go. Total: `emit` never throws and never waits. */
export interface EventEmitter {
  emit<T extends Topic>(topic: T, payload: EventPayloads[T]): void;
}

/** An emitter that can also say one last thing before the process is ended. */
export interface UrgentEventEmitter extends EventEmitter {
  /** Returns when the event has left the process, or when that has taken too long. Nothing is emitted after it. */
  emitNow<T extends Topic>(topic: T, payload: EventPayloads[T]): void;
}

const WORKER = text("the worker");
const INCARNATION = text("the start of the worker's process that this is about");
const DUE_AT = number(
  "when the next heartbeat was due: wall time of the coordinator's host, in milliseconds since 1970",
);
const LATE = number("how long ago that was, in milliseconds by the coordinator's monotonic clock");

const TABLE = {
  worker_registered: {
    level: "info",
    doc: "A worker that the coordinator did not know, or a new start of one that it knew, has sent its first heartbeat.",
    fields: {
      worker_id: WORKER,
      incarnation: INCARNATION,
      slots: number("how many items it executes at once"),
      plugins: of<readonly { readonly name: string; readonly version: string }[]>(
        "what it can execute: name and version of each plugin",
      ),
    },
  },
  worker_heartbeat: {
    level: "debug",
    doc: "A heartbeat was accepted. The most frequent event: `events.hide` can leave it out.",
    fields: {
      worker_id: WORKER,
      incarnation: INCARNATION,
      sequence: number("number of the heartbeat within its incarnation"),
      state: text("the worker's own state: `Init`, `Ready`, `Draining` or `Gone`"),
      load: number("how busy it is, 0.0 to 1.0"),
    },
  },
  worker_suspected: {
    level: "warn",
    doc: "A heartbeat is late by more than `liveness.clock_skew_budget`.",
    fields: { worker_id: WORKER, due_at_ms: DUE_AT, late_ms: LATE },
  },
  worker_failed: {
    level: "warn",
    doc: "No heartbeat for longer than `liveness.coordinator_failure_timeout`. Once for each worker and coordinator lifetime.",
    fields: { worker_id: WORKER, due_at_ms: DUE_AT, late_ms: LATE },
  },
  worker_recovered: {
    level: "info",
    doc: "A suspected or failed worker has sent a heartbeat again.",
    fields: { worker_id: WORKER, incarnation: INCARNATION },
  },
  worker_removed: {
    level: "info",
    doc: "The coordinator has forgotten a worker that had failed or left: `liveness.remove_after` has passed since then, or the registry was full and another worker joined.",
    fields: { worker_id: WORKER },
  },
  worker_deregistered: {
    level: "info",
    doc: "A worker has drained and left; it is not a failure.",
    fields: { worker_id: WORKER, incarnation: INCARNATION },
  },
  worker_superseded: {
    level: "warn",
    doc: "A newer start of the same worker has registered; the older process ends.",
    fields: {
      worker_id: WORKER,
      incarnation: text("the older start, which ends"),
      superseded_by: text("the newer start"),
    },
  },
  coordinator_leading: {
    level: "info",
    doc: "The coordinator leads and is ready for workers.",
    fields: {
      epoch: number("number of this leadership; it only grows"),
      store_id: text("the store that epochs are counted in"),
      address: text("host and port it listens on"),
      quiet_ms: perhaps(
        "how long the leader before had not renewed its lease when it was taken; null when the lease was free",
      ),
      replay_ms: number("how long it took to read the ledger"),
    },
  },
  coordinator_following: {
    level: "info",
    doc: "This coordinator does not lead: another one leads over the same store, or none does, and this one is ready to take over. Emitted when it begins to follow, and whenever the leader changes.",
    fields: {
      address: text("host and port at which this coordinator is reached"),
      leader_address: perhapsText("the leader's; null while none is known"),
      epoch: perhaps("number of the leadership; null when the lease is free"),
    },
  },
  coordinator_rehearsed: {
    level: "debug",
    doc: "A coordinator that follows has read the ledger, as it would do to lead. Once a minute, where the store can be read as it is at one moment.",
    fields: {
      epoch: perhaps("number of the leadership that it follows; null while it knows of none"),
      snapshot_number: number("the last snapshot that the leader had published"),
      replay_ms: number("how long it took"),
    },
  },
  coordinator_fenced: {
    level: "error",
    doc: "This coordinator may not lead any more. The last event of its process, written before it is aborted.",
    fields: {
      epoch: number("number of the leadership that has ended"),
      seen_epoch: perhaps(
        "the higher number that was found; null when there was none, or it could not be read at once",
      ),
      reason: text("how it was found"),
      refused_writes: perhaps(
        "batches that were tried too late and not written; null when the main thread is stuck",
      ),
      refused_replies: perhaps(
        "answers, events and the like that were held back; null when the main thread is stuck",
      ),
    },
  },
  coordinator_stopped: {
    level: "info",
    doc: "The coordinator was asked to stop, and has let go of its store.",
    fields: { epoch: perhaps("number of the leadership that has ended; null for one that followed") },
  },
  store_generation_changed: {
    level: "warn",
    doc: "The database is on another branch of its history than in the last leadership: a standby was promoted, or a backup was restored. The new leadership skips all numbers that the other branch may have given.",
    fields: {
      epoch: number("number of the new leadership"),
      from: text("the branch of the last leadership, as the database names it"),
      to: text("the branch that it is on now"),
    },
  },
  store_rolled_back: {
    level: "error",
    doc: "The database is in an older state than this coordinator or a worker has seen. The coordinator ends with exit code 6, unless `storage.on_rollback` is `accept`.",
    fields: {
      epoch: number("number of the last leadership that the database knows; -1 when it knows none"),
      seen_epoch: number("number of the last one that was seen"),
      missing_results: number("results that are missing in it, as far as this host has seen them"),
      missing_items: number("submitted items that are missing in it, as far as this host has seen them"),
      accepted: number(
        "how often this host has gone on with an older state of it, this time included; 0 when it does not",
      ),
    },
  },
  store_stalled: {
    level: "warn",
    doc: "A write that must be on stable storage has waited 2 s for the database: a disk hangs, or a standby is away. Emitted again whenever the wait has doubled. Nothing is acknowledged meanwhile; the leader goes on leading.",
    fields: { for_ms: number("how long the write has waited") },
  },
  store_answering: {
    level: "info",
    doc: "The database answers such writes again.",
    fields: { for_ms: number("how long the write that was answered had taken") },
  },
  coordinator_unreachable: {
    level: "warn",
    doc: "For four times `liveness.coordinator_failure_timeout` a worker has reached no leading coordinator at its addresses. Emitted again whenever that time has doubled. The worker goes on trying. If the coordinator has moved, set `worker.coordinator_addr` and start the worker again.",
    fields: {
      worker_id: WORKER,
      address: text("the addresses that it tries, separated by commas"),
      for_ms: number("how long it has reached none"),
    },
  },
  drain_started: {
    level: "info",
    doc: "A worker takes nothing new and hands back what it has not started.",
    fields: {
      worker_id: WORKER,
      incarnation: INCARNATION,
      cause: text(
        "what asked for it: `aws`, `gcp`, `sigterm`, `operator` (also a fleet), `backend` (it does not start), or the worker itself: `orphan`, `lifetime` or `idle`",
      ),
      deadline_ms: number("time from now until what still runs is abandoned"),
    },
  },
  drain_completed: {
    level: "info",
    doc: "A worker's drain has ended: it executes nothing and its process ends. The coordinator has recorded all of its results if `unacknowledged_results` is 0.",
    fields: {
      worker_id: WORKER,
      incarnation: INCARNATION,
      took_ms: number("time since the drain started"),
      unacknowledged_results: number(
        "results that the coordinator has not acknowledged within 5 s: they stay on the worker's disk, and its next start sends them",
      ),
    },
  },
  plugin_loaded: {
    level: "info",
    doc: "A worker can execute a plugin, as far as it can tell before the first item.",
    fields: { plugin: text("its name"), version: text("its version") },
  },
  plugin_reloaded: {
    level: "info",
    doc: "A worker has taken up a plugin whose files have changed; items that it starts from now on are executed by it.",
    fields: {
      plugin: text("its name"),
      version: text("the version from now on"),
      previous_version: text("the version before; what runs ends with it"),
    },
  },
  worker_cordoned: {
    level: "warn",
    doc: "A worker failed several items in a row while others succeeded. As long as there are others, it gets one item every 3 minutes.",
    fields: {
      worker_id: WORKER,
      incarnation: INCARNATION,
      failures: number("items that it failed in a row, and no other worker before it"),
    },
  },
  worker_uncordoned: {
    level: "info",
    doc: "A cordoned worker is given work again: its process is a new one, it has succeeded, or others fail the same items.",
    fields: { worker_id: WORKER, incarnation: INCARNATION },
  },
  work_stolen: {
    level: "info",
    doc: "A worker handed back items that it had not started, because another had nothing to do.",
    fields: { victim_id: text("the worker that handed back"), items: number("how many") },
  },
  partitions_moved: {
    level: "info",
    doc: "Workers have joined or left the ring, so partitions of keys belong to other workers from now on. No key waits for that.",
    fields: {
      epoch: number("the assignment epoch, raised by one"),
      joined: of<readonly string[]>("the workers that have joined"),
      left: of<readonly string[]>("the workers that have left"),
      partitions: number("how many have moved"),
      moves: of<
        readonly {
          readonly from: string | null;
          readonly to: string | null;
          readonly partitions: number;
        }[]
      >("how many from whom to whom; null: nobody"),
    },
  },
  partition_loaded: {
    level: "info",
    doc: "A worker has all states of one of its partitions: items of these keys come without their states from now on.",
    fields: {
      worker_id: WORKER,
      partition: number("its number"),
      offset: number("the commit up to which it has all states"),
      loaded: number("states that came from the last checkpoint"),
      replayed: number(
        "states that came from the coordinator, because they are newer or the checkpoint could not be read",
      ),
      ms: number("how long it took, in milliseconds"),
    },
  },
  run_completed: {
    level: "info",
    doc: "The run is sealed, every item is final, and the counters agree with the rows.",
    fields: { done: number("items with a result"), failed: number("items without one") },
  },
  run_paused: {
    level: "warn",
    doc: "An operator or a limit has paused the run: it gives out no items. Items that execute go on.",
    fields: { reason: text("why, in words") },
  },
  run_resumed: {
    level: "info",
    doc: "Items are given out again, and the run's limits are counted from here.",
    fields: { pending: number("items that wait") },
  },
  ...RELEASE_EVENTS,
  ...FLEET_EVENTS,
  run_cancelled: {
    level: "warn",
    doc: "An operator has ended the run for good before it was complete: items that execute are killed, items that wait never start.",
    fields: {
      done: number("items with a result"),
      failed: number("items without one, those that were executing among them"),
      pending: number("items that were not executing, and stay as they are"),
    },
  },
  run_reopened: {
    level: "info",
    doc: "A run that was complete continues: failed items run again, or new items were submitted.",
    fields: { pending: number("items that wait again") },
  },
  enrolment_ending: {
    level: "warn",
    doc: "An enrolment bundle will soon admit no new worker: a fifth of its quota or of its lifetime is left. Once for each of the two, per bundle and coordinator lifetime. Workers that have joined by it stay.",
    fields: {
      bundle_id: text("the bundle, as `rollout ca revoke` takes it"),
      enrolled: number("workers that have joined by it"),
      quota: number("how many may, by `enrolment.quota`"),
      expires_in_ms: number("how long it is valid"),
    },
  },
  certificate_revoked: {
    level: "warn",
    doc: "An operator has revoked the certificate of a worker, of an enrolment bundle or of another operator.",
    fields: {
      bearer_id: text("whose certificate it was"),
      workers: number("workers that were revoked with a bundle that they have joined by"),
    },
  },
  events_dropped: {
    level: "warn",
    doc: "The reader of standard output was too slow. This event stands where the missing ones would have stood.",
    fields: { count: number("how many events are missing here") },
  },
} satisfies Record<string, EventRow>;

export type Topic = keyof typeof TABLE;

/** The fields of each event. */
export type EventPayloads = {
  readonly [T in Topic]: {
    readonly [Name in keyof (typeof TABLE)[T]["fields"]]: ValueOf<(typeof TABLE)[T]["fields"][Name]>;
  };
};

export const EVENTS: Readonly<Record<Topic, EventRow>> = TABLE;

export const TOPICS = Object.freeze(Object.keys(EVENTS)) as readonly Topic[];

/**
 * Emits nothing. For tests of what does not speak.
 * @internal
 */
export class NoopEmitter implements UrgentEventEmitter {
  emit(): void {
    // nothing to do
  }
  emitNow(): void {
    // nothing to do
  }
}
