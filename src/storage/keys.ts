// The layout of every store, in one place: which key holds what, and which kind of record stands there. Keys are
// printable ASCII without spaces.
//
// Nothing here may change its meaning: a store that was written years ago is read by these functions.
import type { IncarnationId, WorkerId } from "../base/ids.ts";

/** The first byte of each record. A number is never given again, not even when its record is gone. */
export const RECORD_KIND = {
  storeIdentity: 1,
  segmentCount: 2,
  lease: 3,
  epoch: 4,
  worker: 5,
  heartbeat: 6,
  actor: 7,
  ledgerCharts: 8,
  workerIncarnation: 9,
  workerEpochs: 10,
  workerCredentials: 11,
  item: 12,
  itemIndex: 13,
  returnedItem: 14,
  runningItem: 15,
  doneItem: 16,
  failedItem: 17,
  ledger: 18,
  completions: 19,
  delayedItem: 20,
  run: 21,
  submission: 22,
  conflict: 23,
  attempt: 24,
  attemptLog: 25,
  checkpoint: 26,
  dueItem: 27,
  epochStarts: 28,
  quarantine: 29,
  authority: 30,
  coordinatorSnapshot: 31,
  presence: 32,
  workerRevoked: 33,
  keyNumbers: 34,
  key: 35,
  keyState: 36,
  keyMail: 37,
  partition: 38,
  assignment: 39,
  resultBatch: 40,
  partitionCheckpoint: 41,
  timer: 42,
  releases: 46,
  release: 47,
  releaseStage: 48,
  releaseCounts: 49,
  enrolled: 50,
  revocations: 51,
  fleet: 52,
  allocation: 53,
  workerRequest: 54,
} as const;

/** The run to which the store belongs; see store-identity.ts. */
export const STORE_IDENTITY_KEY = "meta/store";

/** The CA under which the coordinators of a shared store let workers in. */
export const AUTHORITY_KEY = "meta/authority";

/** Which versions of the charts wrote the ledger's rows. */
export const LEDGER_CHARTS_KEY = "meta/charts";

/** Rows here are written beside everything else: a store may give them a way of their own. */
export const LEASE_PREFIX = "lease/";

/** The one row that leadership is decided on. Never deleted. */
export const COORDINATOR_LEASE_KEY = `${LEASE_PREFIX}coordinator_lease`;

/** The ledger's own copy of the epoch, stamped together with the lease; every leader write expects it. */
export const EPOCH_KEY = "epoch";

/** Coordinators that are there, each by the row that it writes itself; behind them what the leader publishes to the others. */
export const COORDINATORS_PREFIX = "coordinators/";
export const COORDINATOR_SNAPSHOT_KEY = `${COORDINATORS_PREFIX}snapshot`;

export function coordinatorKey(incarnation: IncarnationId): string {
  return `${COORDINATORS_PREFIX}${incarnation}`;
}

/** Prefixes of the segments, for `prefixRange`. */
export const WORKERS_PREFIX = "workers/";
export const HEARTBEATS_PREFIX = "heartbeats/";
export const ACTORS_PREFIX = "actors/";

export function workerKey(id: WorkerId): string {
  return `${WORKERS_PREFIX}${id}`;
}

/** The latest beat of a worker, overwritten by the next one. */
export function heartbeatKey(id: WorkerId): string {
  return `${HEARTBEATS_PREFIX}${id}`;
}

/** The snapshot of the actor at `address` (`worker/01J…`, `coordinator`). */
export function actorKey(address: string): string {
  return `${ACTORS_PREFIX}${address}`;
}

/** How many records a segment holds; see segment-count.ts. */
export function countKey(segment: string): string {
  return `counts/${segment}`;
}

/** Workers that a bundle has let in: by the bundle's id and the worker's. */
export const ENROLLED_PREFIX = "enrolled/";
/** Bearers of certificates that are good for nothing any more. */
export const REVOCATIONS_KEY = "meta/revocations";

/** The ledger: counters, cursors and the run's own chart. */
export const LEDGER_KEY = "meta/ledger";
export const RUN_KEY = "meta/run";
/** Where in the order of submission each leadership began. */
export const EPOCH_STARTS_KEY = "meta/epochs";

/** Items by place; see src/coordinator/ledger. */
export const ITEMS_PREFIX = "items/";
export const ITEM_INDEX_PREFIX = "ids/";
export const RETURNED_PREFIX = "returned/";
/** In the same segment, behind all places: items that run with nothing beside them. */
export const RETURNED_ALONE_PREFIX = `${RETURNED_PREFIX}solo/`;
/** In the same segment too: items of keys, which no window has. */
export const RETURNED_KEYED_PREFIX = `${RETURNED_PREFIX}keyed/`;
export const DELAYED_PREFIX = "delayed/";
/** When an item that waits is due, by place: it finds the row under `DELAYED_PREFIX`. */
export const DUE_PREFIX = "due/";
export const RUNNING_PREFIX = "running/";
export const DONE_PREFIX = "done/";
export const FAILED_PREFIX = "failed/";
/** The places of the items that became final in one turn, in the order of turns. */
export const COMPLETIONS_PREFIX = "completions/";

/** The ends of an item's attempts, and what they wrote to their standard error: by place and slot, the last 16 of them. */
export const ATTEMPTS_PREFIX = "attempts/";
export const ATTEMPT_LOGS_PREFIX = "logs/";
/** The last checkpoint that an item's attempts have left, by place; gone when the item is done. */
export const CHECKPOINTS_PREFIX = "checkpoints/";

/** A result that contradicts the one that was recorded, by place: evidence, the first of an item only, never read by the ledger. */
export const CONFLICTS_PREFIX = "conflicts/";

/** Keys, by partition and the hash of their text; see src/coordinator/keys. Their numbers, states and waiting items beside them. */
export const KEY_NUMBERS_KEY = "meta/keys";
/** Which workers are on the ring of partitions. */
export const ASSIGNMENT_KEY = "meta/assignment";
export const KEYS_PREFIX = "keys/";
export const STATES_PREFIX = "states/";
export const MAIL_PREFIX = "mail/";
/** Events that are sent when they are due, by actor and number. */
export const TIMERS_PREFIX = "timers/";
/** The last checkpoints of partitions, by partition. */
export const PARTITIONS_PREFIX = "partitions/";

/** Releases: which is the latest, and each with its stages and their counts behind it; see src/coordinator/release. */
export const RELEASES_KEY = "meta/releases";
export const RELEASES_PREFIX = "releases/";

/** Fleets by name, and their allocations by id; see src/coordinator/fleet. */
export const FLEETS_PREFIX = "fleets/";
export const ALLOCATIONS_PREFIX = "allocations/";

/** Rows that could not be read, each under its own key behind this. */
export const QUARANTINE_PREFIX = "quarantine/";

/** The answer to each batch of each submission, so that one that comes twice is answered as it was. */
export const SUBMISSIONS_PREFIX = "submissions/";

/** In a worker's own store: its last start, the epochs it has seen, its certificate. */
export const WORKER_INCARNATION_KEY = "own/incarnation";
export const WORKER_EPOCHS_KEY = "own/epochs";
export const WORKER_CREDENTIALS_KEY = "own/credentials";
/** The request with which it asks by its bundle. */
export const WORKER_REQUEST_KEY = "own/request";
/** There once the coordinator has said that this worker was revoked. */
export const WORKER_REVOKED_KEY = "own/revoked";

/** In a worker's own store: batches of results that no coordinator has acknowledged, in the order in which they ended. */
export const OUTBOX_PREFIX = "outbox/";

/** `number` counts the batches of an incarnation. */
export function outboxKey(incarnation: IncarnationId, number: number): string {
  return `${OUTBOX_PREFIX}${incarnation}/${String(number).padStart(16, "0")}`;
}
