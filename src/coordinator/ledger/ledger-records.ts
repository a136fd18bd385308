// The rows of the ledger. An item has one immutable row under its place; beside it stands at most one row that says where it
// is: returned, delayed, running, done or failed. None of them means that it was never given out and lies behind the cursor
// of its priority.
import { ulidFromBytes, ulidToBytes } from "../../base/ids.ts";
import type { IncarnationId, WorkerId } from "../../base/ids.ts";
import { ULID_BYTES } from "../../base/ids.ts";
import type { RecordType } from "../../storage/codec.ts";
import type { Fields } from "../../storage/fields.ts";
import { RECORD_KIND } from "../../storage/keys.ts";
import { isPlace } from "./place.ts";
import type { Place } from "./place.ts";

/** Written at submission, never changed. */
export interface ItemRecord {
  readonly id: Uint8Array;
  readonly payload: Uint8Array;
  /** Empty when there is none. */
  readonly key: string;
}

export const itemRecord: RecordType<ItemRecord> = {
  kind: RECORD_KIND.item,
  name: "item",
  version: 1,
  migrations: {},
  encode: ({ id, payload, key }) => (key === "" ? [id, payload] : [id, payload, key]),
  decode: (fields) => ({
    id: fields.bytes(0),
    payload: fields.bytes(1),
    key: fields.length > 2 ? fields.text(2) : "",
  }),
};

/** How often a line has come in one submission. */
export interface LineCount {
  readonly submission: string;
  readonly count: number;
}

/** Under an item's id: where it stands, and how often its line came in the submissions that named it last, latest first. */
export interface ItemIndexRecord {
  readonly place: Place;
  readonly counts: readonly LineCount[];
}

export const itemIndexRecord: RecordType<ItemIndexRecord> = {
  kind: RECORD_KIND.itemIndex,
  name: "item index",
  version: 1,
  migrations: {},
  encode: ({ place, counts }) => [place, counts.map(({ submission, count }) => [submission, count])],
  decode: (fields) => ({
    place: placeFrom(fields, 0),
    counts: fields.tuples(1).map((counted) => ({ submission: counted.text(0), count: counted.integer(1) })),
  }),
};

/** The budgets of an item that is pending again. */
export interface ReturnedRecord {
  readonly attempt: number;
  readonly charged: number;
  readonly lost: number;
}

export const returnedRecord: RecordType<ReturnedRecord> = {
  kind: RECORD_KIND.returnedItem,
  name: "returned item",
  version: 1,
  migrations: {},
  encode: ({ attempt, charged, lost }) => [attempt, charged, lost],
  decode: (fields) => ({ attempt: fields.integer(0), charged: fields.integer(1), lost: fields.integer(2) }),
};

/** The same of an item that waits. */
export const delayedRecord: RecordType<ReturnedRecord> = {
  ...returnedRecord,
  kind: RECORD_KIND.delayedItem,
  name: "delayed item",
};

/** An item that somebody has. */
export interface RunningRecord extends ReturnedRecord {
  readonly id: Uint8Array;
  readonly worker: WorkerId;
  readonly incarnation: IncarnationId;
  readonly epoch: number;
  /** Of the assignment, within the worker's incarnation. */
  readonly number: number;
}

export const runningRecord: RecordType<RunningRecord> = {
  kind: RECORD_KIND.runningItem,
  name: "running item",
  version: 1,
  migrations: {},
  encode: (row) => [
    row.id,
    ulidToBytes(row.worker),
    ulidToBytes(row.incarnation),
    row.epoch,
    row.number,
    row.attempt,
    row.charged,
    row.lost,
  ],
  decode: (fields) => ({
    id: fields.bytes(0),
    worker: ulidFrom<WorkerId>(fields, 1),
    incarnation: ulidFrom<IncarnationId>(fields, 2),
    epoch: fields.integer(3),
    number: fields.integer(4),
    attempt: fields.integer(5),
    charged: fields.integer(6),
    lost: fields.integer(7),
  }),
};

/** The one result of an item. */
export interface DoneRecord {
  readonly id: Uint8Array;
  readonly attempt: number;
  readonly worker: WorkerId;
  readonly digest: Uint8Array;
  readonly output: Uint8Array;
  readonly finishedAtWallMs: number;
}

export const doneRecord: RecordType<DoneRecord> = {
  kind: RECORD_KIND.doneItem,
  name: "done item",
  version: 1,
  migrations: {},
  encode: ({ id, attempt, worker, digest, output, finishedAtWallMs }) => [
    id,
    attempt,
    ulidToBytes(worker),
    digest,
    output,
    finishedAtWallMs,
  ],
  decode: (fields) => ({
    id: fields.bytes(0),
    attempt: fields.integer(1),
    worker: ulidFrom<WorkerId>(fields, 2),
    digest: fields.bytes(3),
    output: fields.bytes(4),
    finishedAtWallMs: fields.number(5),
  }),
};

/** A result that came for an item that is done, and differs from its own. */
export interface ConflictRecord {
  readonly id: Uint8Array;
  readonly attempt: number;
  readonly worker: WorkerId;
  readonly digest: Uint8Array;
  readonly output: Uint8Array;
  readonly arrivedAtWallMs: number;
}

export const conflictRecord: RecordType<ConflictRecord> = {
  kind: RECORD_KIND.conflict,
  name: "conflict",
  version: 1,
  migrations: {},
  encode: ({ id, attempt, worker, digest, output, arrivedAtWallMs }) => [
    id,
    attempt,
    ulidToBytes(worker),
    digest,
    output,
    arrivedAtWallMs,
  ],
  decode: (fields) => ({
    id: fields.bytes(0),
    attempt: fields.integer(1),
    worker: ulidFrom<WorkerId>(fields, 2),
    digest: fields.bytes(3),
    output: fields.bytes(4),
    arrivedAtWallMs: fields.number(5),
  }),
};

export type FailureClass = "error" | "timeout" | "crash" | "too_large" | "poison" | "cancelled";

export interface FailedRecord {
  readonly id: Uint8Array;
  readonly attempt: number;
  readonly class: FailureClass;
  readonly message: string;
  readonly finishedAtWallMs: number;
}

const FAILURE_CLASSES: readonly FailureClass[] = [
  "error",
  "timeout",
  "crash",
  "too_large",
  "poison",
  "cancelled",
];

export const failedRecord: RecordType<FailedRecord> = {
  kind: RECORD_KIND.failedItem,
  name: "failed item",
  version: 1,
  migrations: {},
  encode: (row) => [row.id, row.attempt, row.class, row.message, row.finishedAtWallMs],
  decode: (fields) => ({
    id: fields.bytes(0),
    attempt: fields.integer(1),
    class:
      FAILURE_CLASSES.find((known) => known === fields.text(2)) ?? fields.refuse(2, "is no class of failure"),
    message: fields.text(3),
    finishedAtWallMs: fields.number(4),
  }),
};

function placeFrom(fields: Fields, at: number): Place {
  const text = fields.text(at);
  return isPlace(text) ? text : fields.refuse(at, "is no place");
}

function ulidFrom<Kind extends WorkerId | IncarnationId>(fields: Fields, at: number): Kind {
  const bytes = fields.bytes(at);
  return bytes.length === ULID_BYTES ? ulidFromBytes<Kind>(bytes) : fields.refuse(at, "is no ULID");
}
