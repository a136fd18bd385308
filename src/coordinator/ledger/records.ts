// The rows of the ledger. An item has one immutable row under its place; beside it stands at most one row that says where it
// is: returned, delayed, running, done or failed. None of them means that it was never given out and lies behind the cursor
// of its priority.
import { ulidFromBytes, ulidToBytes } from "../../base/ids.ts";
import type { IncarnationId, WorkerId } from "../../base/ids.ts";
import { ULID_BYTES } from "../../base/ids.ts";
import type { RecordType } from "../../storage/codec.ts";
import type { Fields, Tuple } from "../../storage/fields.ts";
import { RECORD_KIND } from "../../storage/keys.ts";
import { originFrom, originTuple } from "./origin.ts";
import type { Origin } from "./origin.ts";
import { isPlace } from "./place.ts";
import type { Place } from "./place.ts";

/** Written at submission, never changed. */
export interface ItemRecord {
  readonly id: Uint8Array;
  readonly payload: Uint8Array;
  /** Empty when there is none. */
  readonly key: string;
  /** How the input itself names it; empty when it does not. */
  readonly label: string;
  /** Undefined for an item that was submitted. */
  readonly origin?: Origin | undefined;
}

export const itemRecord: RecordType<ItemRecord> = {
  kind: RECORD_KIND.item,
  name: "item",
  encode: ({ id, payload, key, label, origin }) => {
    if (origin !== undefined) return [id, payload, key, label, originTuple(origin)];
    if (label !== "") return [id, payload, key, label];
    return key === "" ? [id, payload] : [id, payload, key];
  },
  decode: (fields) => ({
    id: fields.bytes(0),
    payload: fields.bytes(1),
    key: fields.length > 2 ? fields.text(2) : "",
    label: fields.length > 3 ? fields.text(3) : "",
    ...(fields.length > 4 && { origin: originFrom(fields.tuple(4)) }),
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
  /** The worker of the last charged outcome; empty when there was none. */
  readonly failedBy: string;
  /** Whom the first of them speaks against; empty when it is nobody. */
  readonly blamed: string;
  /** It runs with nothing beside it. */
  readonly isApart: boolean;
  /** When it was returned uncharged of late, by the wall clock. */
  readonly returnedAtMs: readonly number[];
  /** The release that leaves it alone: its candidate has failed it, or it was retried meanwhile; empty: none does. */
  readonly tried: string;
}

export const returnedRecord: RecordType<ReturnedRecord> = {
  kind: RECORD_KIND.returnedItem,
  name: "returned item",
  encode: (row) => [row.attempt, row.charged, row.lost, ...historyTuple(row)],
  decode: (fields) => ({
    attempt: fields.integer(0),
    charged: fields.integer(1),
    lost: fields.integer(2),
    ...historyFrom(fields, 3),
  }),
};

/** The same of an item that waits. */
export const delayedRecord: RecordType<ReturnedRecord> = {
  ...returnedRecord,
  kind: RECORD_KIND.delayedItem,
  name: "delayed item",
};

/** By the place of an item that waits: the key of its row. */
export const dueRecord: RecordType<string> = {
  kind: RECORD_KIND.dueItem,
  name: "due item",
  encode: (delayed) => [delayed],
  decode: (fields) => fields.text(0),
};

/** An item that somebody has. */
export interface RunningRecord extends ReturnedRecord {
  readonly id: Uint8Array;
  readonly worker: WorkerId;
  readonly incarnation: IncarnationId;
  readonly epoch: number;
  /** Number of the assignment, within the worker's incarnation. */
  readonly number: number;
  /** The version of the plugin that the assignment named; empty: the worker's own. */
  readonly version: string;
  /** The release whose candidate that is; empty: it is no trial. */
  readonly trial: string;
}

export const runningRecord: RecordType<RunningRecord> = {
  kind: RECORD_KIND.runningItem,
  name: "running item",
  encode: (row) => [
    row.id,
    ulidToBytes(row.worker),
    ulidToBytes(row.incarnation),
    row.epoch,
    row.number,
    row.attempt,
    row.charged,
    row.lost,
    ...historyTuple(row, row),
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
    ...historyFrom(fields, 8),
    version: fields.length > 13 ? fields.text(13) : "",
    trial: fields.length > 13 ? fields.text(14) : "",
  }),
};

/** A worker's word on an execution: for people, nothing is decided by it. */
export interface Execution {
  readonly pluginVersion: string;
  /** By the worker's clock; 0 when no worker said so. */
  readonly startedAtWallMs: number;
  readonly durationMs: number;
}

export const UNTOLD: Execution = { pluginVersion: "", startedAtWallMs: 0, durationMs: 0 };

/** The fields that the rows of all final items have. */
interface FinalRecord extends Execution {
  readonly id: Uint8Array;
  readonly attempt: number;
  readonly worker: WorkerId;
  readonly finishedAtWallMs: number;
  /** Number of the record of completions that it stands in: an item that was retried stands in an older one too. */
  readonly completion: number;
}

/** The one result of an item. */
export interface DoneRecord extends FinalRecord {
  readonly digest: Uint8Array;
  readonly output: Uint8Array;
  /** The place of the item of its key that had succeeded last before it; undefined where there is none. */
  readonly previous?: Place | undefined;
}

export const doneRecord: RecordType<DoneRecord> = {
  kind: RECORD_KIND.doneItem,
  name: "done item",
  encode: (row) => {
    const tuple = [...finalTuple(row), row.digest, row.output];
    return row.previous === undefined ? tuple : [...tuple, row.previous];
  },
  decode: (fields) => ({
    ...finalFrom(fields),
    digest: fields.bytes(FINAL_FIELDS),
    output: fields.bytes(FINAL_FIELDS + 1),
    ...(fields.length > FINAL_FIELDS + 2 && { previous: placeFrom(fields, FINAL_FIELDS + 2) }),
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

export interface FailedRecord extends FinalRecord {
  readonly class: FailureClass;
  readonly message: string;
  /** The answer that a server gave in place of a result; empty when none did. */
  readonly response: Uint8Array;
  /** How much of its budgets was used. */
  readonly charged: number;
  readonly lost: number;
  /** It runs with nothing beside it, also when it is retried. */
  readonly isApart: boolean;
}

export const FAILURE_CLASSES: readonly FailureClass[] = [
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
  encode: (row) => {
    const tuple = [...finalTuple(row), row.class, row.message, row.charged, row.lost, row.isApart];
    return row.response.length === 0 ? tuple : [...tuple, row.response];
  },
  decode: (fields) => ({
    ...finalFrom(fields),
    class: failureClassOf(fields.text(FINAL_FIELDS)) ?? fields.refuse(FINAL_FIELDS, "is no class of failure"),
    message: fields.text(FINAL_FIELDS + 1),
    charged: fields.integer(FINAL_FIELDS + 2),
    lost: fields.integer(FINAL_FIELDS + 3),
    isApart: fields.boolean(FINAL_FIELDS + 4),
    response: fields.length > FINAL_FIELDS + 5 ? fields.bytes(FINAL_FIELDS + 5) : new Uint8Array(),
  }),
};

/** The word itself when it names a class. */
export function failureClassOf(text: string): FailureClass | undefined {
  return FAILURE_CLASSES.find((known) => known === text);
}

const FINAL_FIELDS = 8;

function finalTuple(row: FinalRecord): Tuple {
  const { id, attempt, worker, finishedAtWallMs, pluginVersion, startedAtWallMs, durationMs, completion } =
    row;
  const execution = [pluginVersion, startedAtWallMs, durationMs];
  return [id, attempt, ulidToBytes(worker), finishedAtWallMs, ...execution, completion];
}

function finalFrom(fields: Fields): FinalRecord {
  return {
    id: fields.bytes(0),
    attempt: fields.integer(1),
    worker: ulidFrom<WorkerId>(fields, 2),
    finishedAtWallMs: fields.number(3),
    pluginVersion: fields.text(4),
    startedAtWallMs: fields.number(5),
    durationMs: fields.number(6),
    completion: fields.integer(7),
  };
}

export function workerFrom(fields: Fields, at: number): WorkerId {
  return ulidFrom<WorkerId>(fields, at);
}

type History = Pick<ReturnedRecord, "failedBy" | "blamed" | "isApart" | "returnedAtMs" | "tried">;
type Stamped = Pick<RunningRecord, "version" | "trial">;

/**
 * Nothing for an item that nothing has happened to, which is nearly all of them; and no more than before there were releases for one
 * that none concerns. `stamped`: of an item that somebody has.
 */
function historyTuple(
  { failedBy, blamed, isApart, returnedAtMs, tried }: History,
  { version, trial }: Stamped = UNSTAMPED,
): Tuple {
  const history = [failedBy, isApart, returnedAtMs, blamed];
  if (version !== "" || trial !== "") return [...history, tried, version, trial];
  if (tried !== "") return [...history, tried];
  return failedBy === "" && !isApart && returnedAtMs.length === 0 ? [] : history;
}

const UNSTAMPED: Stamped = { version: "", trial: "" };

function historyFrom(fields: Fields, at: number): History {
  if (fields.length <= at) return { failedBy: "", blamed: "", isApart: false, returnedAtMs: [], tried: "" };
  const times = fields.tuple(at + 2);
  return {
    failedBy: fields.text(at),
    isApart: fields.boolean(at + 1),
    returnedAtMs: Array.from({ length: times.length }, (_, index) => times.integer(index)),
    blamed: fields.text(at + 3),
    tried: fields.length > at + 4 ? fields.text(at + 4) : "",
  };
}

function placeFrom(fields: Fields, at: number): Place {
  const text = fields.text(at);
  return isPlace(text) ? text : fields.refuse(at, "is no place");
}

function ulidFrom<Kind extends WorkerId | IncarnationId>(fields: Fields, at: number): Kind {
  const bytes = fields.bytes(at);
  return bytes.length === ULID_BYTES ? ulidFromBytes<Kind>(bytes) : fields.refuse(at, "is no ULID");
}
