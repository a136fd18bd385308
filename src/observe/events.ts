// The events of the cluster: what each topic says, how loud it is, and what its fields mean. docs/EVENTS.md is made
// from this table. An event is something that happened to the cluster; nothing is emitted per item.
//
// Keys of payloads are snake_case, ids are text, times in milliseconds end in `_ms`.

export type EventLevel = "debug" | "info" | "warn" | "error";

export interface EventPayloads {
  worker_registered: {
    readonly worker_id: string;
    readonly incarnation: string;
    readonly slots: number;
    readonly plugins: readonly { readonly name: string; readonly version: string }[];
  };
  worker_heartbeat: {
    readonly worker_id: string;
    readonly incarnation: string;
    readonly sequence: number;
    readonly state: string;
    readonly load: number;
  };
  worker_suspected: { readonly worker_id: string; readonly due_at_ms: number; readonly late_ms: number };
  worker_failed: { readonly worker_id: string; readonly due_at_ms: number; readonly late_ms: number };
  worker_recovered: { readonly worker_id: string; readonly incarnation: string };
  worker_removed: { readonly worker_id: string };
  worker_deregistered: { readonly worker_id: string; readonly incarnation: string };
  worker_superseded: {
    readonly worker_id: string;
    readonly incarnation: string;
    readonly superseded_by: string;
  };
  coordinator_leading: { readonly epoch: number; readonly store_id: string; readonly address: string };
  coordinator_fenced: {
    readonly epoch: number;
    readonly seen_epoch: number | null;
    readonly reason: string;
    readonly refused_writes: number | null;
    readonly refused_replies: number | null;
  };
  coordinator_stopped: { readonly epoch: number };
  coordinator_unreachable: {
    readonly worker_id: string;
    readonly address: string;
    readonly for_ms: number;
  };
  drain_started: {
    readonly worker_id: string;
    readonly incarnation: string;
    readonly cause: string;
    readonly deadline_ms: number;
  };
  drain_completed: {
    readonly worker_id: string;
    readonly incarnation: string;
    readonly took_ms: number;
  };
  plugin_loaded: { readonly plugin: string; readonly version: string };
  plugin_reloaded: { readonly plugin: string; readonly version: string; readonly previous_version: string };
  worker_cordoned: { readonly worker_id: string; readonly incarnation: string; readonly failures: number };
  worker_uncordoned: { readonly worker_id: string; readonly incarnation: string };
  work_stolen: { readonly victim_id: string; readonly items: number };
  run_completed: { readonly done: number; readonly failed: number };
  run_paused: { readonly reason: string };
  run_resumed: { readonly pending: number };
  run_cancelled: { readonly done: number; readonly failed: number; readonly pending: number };
  run_reopened: { readonly pending: number };
  enrolment_ending: {
    readonly bundle_id: string;
    readonly enrolled: number;
    readonly quota: number;
    readonly expires_in_ms: number;
  };
  certificate_revoked: { readonly bearer_id: string; readonly workers: number };
  events_dropped: { readonly count: number };
}

export type Topic = keyof EventPayloads;

/** Where events go. Total: `emit` never throws and never waits. */
export interface EventEmitter {
  emit<T extends Topic>(topic: T, payload: EventPayloads[T]): void;
}

/** An emitter that can also say one last thing before the process is ended. */
export interface UrgentEventEmitter extends EventEmitter {
  /** Returns when the event has left the process, or when that has taken too long. Nothing is emitted after it. */
  emitNow<T extends Topic>(topic: T, payload: EventPayloads[T]): void;
}

interface EventRow<Payload> {
  readonly level: EventLevel;
  readonly doc: string;
  readonly fields: { readonly [Field in keyof Payload]: string };
}

const WORKER = "the worker";
const INCARNATION = "the start of the worker's process that this is about";
const DUE_AT =
  "when the next heartbeat was due, on the coordinator's monotonic clock: only differences of it mean something";
const LATE = "how long ago that was";

export const EVENTS: { readonly [T in Topic]: EventRow<EventPayloads[T]> } = {
  worker_registered: {
    level: "info",
    doc: "A worker that the coordinator did not know, or a new start of one that it knew, has sent its first heartbeat.",
    fields: {
      worker_id: WORKER,
      incarnation: INCARNATION,
      slots: "how many items it executes at once",
      plugins: "what it can execute: name and version of each plugin",
    },
  },
  worker_heartbeat: {
    level: "debug",
    doc: "A heartbeat was accepted. The most frequent event: `events.hide` can leave it out.",
    fields: {
      worker_id: WORKER,
      incarnation: INCARNATION,
      sequence: "number of the heartbeat within its incarnation",
      state: "the worker's own state: `Init`, `Ready`, `Draining` or `Gone`",
      load: "how busy it is, 0.0 to 1.0",
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
    doc: "A failed worker stayed silent for `liveness.remove_after`, or the registry was full and another one joined: it was forgotten.",
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
      incarnation: "the older start, which ends",
      superseded_by: "the newer start",
    },
  },
  coordinator_leading: {
    level: "info",
    doc: "The coordinator leads and is ready for workers.",
    fields: {
      epoch: "number of this leadership; it only grows",
      store_id: "the store that epochs are counted in",
      address: "host and port it listens on",
    },
  },
  coordinator_fenced: {
    level: "error",
    doc: "This coordinator may not lead any more. The last event of its process, written before it is aborted.",
    fields: {
      epoch: "number of the leadership that has ended",
      seen_epoch:
        "the higher number that was found; null when there was none, or it could not be read at once",
      reason: "how it was found",
      refused_writes: "batches that were tried too late and not written; null when the main thread is stuck",
      refused_replies: "answers, events and the like that were held back; null when the main thread is stuck",
    },
  },
  coordinator_stopped: {
    level: "info",
    doc: "The coordinator was asked to stop, and has let go of its store.",
    fields: { epoch: "number of the leadership that has ended" },
  },
  coordinator_unreachable: {
    level: "warn",
    doc: "A worker reaches no coordinator at the address that it has: after four times `liveness.coordinator_failure_timeout`, and each time that it has lasted twice as long. It goes on trying; if the coordinator has another address now, `worker.coordinator_addr` says so.",
    fields: { worker_id: WORKER, address: "what it tries", for_ms: "since when" },
  },
  drain_started: {
    level: "info",
    doc: "A worker takes nothing new and hands back what it has not started.",
    fields: {
      worker_id: WORKER,
      incarnation: INCARNATION,
      cause: "what asked for it: `aws`, `gcp`, `sigterm`, `operator` or `backend` (it does not start)",
      deadline_ms: "time from now until what still runs is abandoned",
    },
  },
  drain_completed: {
    level: "info",
    doc: "A worker has handed back or finished everything.",
    fields: { worker_id: WORKER, incarnation: INCARNATION, took_ms: "time since the drain started" },
  },
  plugin_loaded: {
    level: "info",
    doc: "A worker can execute a plugin, as far as that is known before there is an item for it.",
    fields: { plugin: "its name", version: "its version" },
  },
  plugin_reloaded: {
    level: "info",
    doc: "A worker has taken up a plugin whose files have changed; items that it starts from now on are executed by it.",
    fields: {
      plugin: "its name",
      version: "the version from now on",
      previous_version: "the version before; what runs ends with it",
    },
  },
  worker_cordoned: {
    level: "warn",
    doc: "A worker failed several items in a row while others succeeded: while there are others it is given one item every few minutes.",
    fields: {
      worker_id: WORKER,
      incarnation: INCARNATION,
      failures: "items that it failed in a row, and no other worker before it",
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
    fields: { victim_id: "the worker that handed back", items: "how many" },
  },
  run_completed: {
    level: "info",
    doc: "The run is sealed, every item is final, and the counters agree with the rows.",
    fields: { done: "items with a result", failed: "items without one" },
  },
  run_paused: {
    level: "warn",
    doc: "Nothing more is given out: an operator, or one of the run's limits, has said so. What executes goes on.",
    fields: { reason: "why, in words" },
  },
  run_resumed: {
    level: "info",
    doc: "Items are given out again, and the run's limits are counted from here.",
    fields: { pending: "items that wait" },
  },
  run_cancelled: {
    level: "warn",
    doc: "The run has ended for good before it was complete: what executed is killed, what waits never starts.",
    fields: {
      done: "items with a result",
      failed: "items without one, those that were executing among them",
      pending: "items that were not executing, and stay as they are",
    },
  },
  run_reopened: {
    level: "info",
    doc: "The run was complete, and has something to do again: failed items were taken back, or new ones came in.",
    fields: { pending: "items that wait again" },
  },
  enrolment_ending: {
    level: "warn",
    doc: "An enrolment bundle lets nobody new in before long: a fifth of its quota or of its lifetime is left. Once for each, bundle and coordinator lifetime. Workers that have joined by it stay.",
    fields: {
      bundle_id: "the bundle, as `rollout ca revoke` takes it",
      enrolled: "workers that have joined by it",
      quota: "how many may, by `enrolment.quota`",
      expires_in_ms: "how long it is valid",
    },
  },
  certificate_revoked: {
    level: "warn",
    doc: "An operator has revoked the certificate of a worker, of an enrolment bundle or of another operator.",
    fields: {
      bearer_id: "whose certificate it was",
      workers: "workers that were revoked with a bundle that they have joined by",
    },
  },
  events_dropped: {
    level: "warn",
    doc: "The reader of standard output was too slow. Stands where the missing events would have stood.",
    fields: { count: "how many events are missing here" },
  },
};

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
