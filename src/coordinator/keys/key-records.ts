// The rows of keys: one that says how a key stands, its state, and the places of the items behind its head, each under the partition
// and the hash of the key. Beside them one record with their counts and sums.
//
// Keeps true: in every committed state the numbers are those of the rows.
import { hash } from "node:crypto";
import { partitionDigits } from "../../base/partition.ts";
import type { RecordType } from "../../storage/codec.ts";
import type { Fields, Tuple } from "../../storage/fields.ts";
import { KEYS_PREFIX, MAIL_PREFIX, RECORD_KIND, STATES_PREFIX, TIMERS_PREFIX } from "../../storage/keys.ts";
import { isPlace, sequenceOf } from "../ledger/place.ts";
import type { Place } from "../ledger/place.ts";
import { FAILURE_CLASSES } from "../ledger/records.ts";
import { byClass } from "../ledger/tally.ts";
import { actorFrom, actorTuple } from "./actor.ts";
import type { Actor } from "./actor.ts";
import { NO_INSIDE } from "./inside-counts.ts";
import type { InsideNumbers } from "./inside-counts.ts";
import { timerRecord } from "./timer-record.ts";

export interface KeyRecord {
  readonly text: string;
  /** Name of the state in the compiled chart. One that runs is Waiting here: the row of its head says that it runs. */
  readonly state: string;
  /** Empty when nothing is to run, or when the first of the mail is. */
  readonly head: Place | "";
  /** As the chart counts: the head included, unless it has failed. */
  readonly mail: number;
  readonly isPaused: boolean;
  readonly hasFailed: boolean;
  readonly isDelayed: boolean;
  /** One more than the number of the record of completions with which its state was committed last; 0 when it never had one. */
  readonly commit: number;
  /** Checksum of the row of its state; null when it has none. */
  readonly stateChecksum: number | null;
  readonly stateVersion: number;
  /** Why it is parked, in words for a person. */
  readonly why: string;
  /** The place of its last item that has succeeded; empty before the first, and where a program wrote the row that did not keep it. */
  readonly last: Place | "";
  readonly actor?: Actor | undefined;
  /** Names what has taken it from another run; absent when it began in this one. */
  readonly mark?: string;
}

export const keyRecord: RecordType<KeyRecord> = {
  kind: RECORD_KIND.key,
  name: "key",
  encode: ({ text, state, head, mail, commit, stateChecksum, stateVersion, why, ...more }) => [
    text,
    state,
    head,
    mail,
    Number(more.isPaused) + 2 * Number(more.hasFailed) + 4 * Number(more.isDelayed),
    commit,
    stateChecksum,
    stateVersion,
    why,
    ...lateFields(more),
  ],
  decode: (fields) => {
    const flags = fields.integer(4);
    return {
      text: fields.text(0),
      state: fields.text(1),
      head: fields.text(2) === "" ? "" : placeFrom(fields, 2),
      mail: fields.integer(3),
      isPaused: (flags & 1) !== 0,
      hasFailed: (flags & 2) !== 0,
      isDelayed: (flags & 4) !== 0,
      commit: fields.integer(5),
      stateChecksum: fields.isNull(6) ? null : fields.integer(6),
      stateVersion: fields.integer(7),
      why: fields.text(8),
      last: fields.length > 9 && fields.text(9) !== "" ? placeFrom(fields, 9) : "",
      ...(fields.length > 10 && !fields.isNull(10) && { actor: actorFrom(fields.tuple(10)) }),
      ...(fields.length > 11 && { mark: fields.text(11) }),
    };
  },
};

/** The fields behind those that every row has: as many as there is something in. */
function lateFields({ last, actor, mark = "" }: Pick<KeyRecord, "last" | "actor" | "mark">): Tuple {
  if (mark !== "") return [last, actor === undefined ? null : actorTuple(actor), mark];
  if (actor !== undefined) return [last, actorTuple(actor)];
  return last === "" ? [] : [last];
}

export interface KeyStateRecord {
  readonly commit: number;
  readonly stateVersion: number;
  readonly state: Uint8Array;
}

export const keyStateRecord: RecordType<KeyStateRecord> = {
  kind: RECORD_KIND.keyState,
  name: "key state",
  encode: ({ commit, stateVersion, state }) => [commit, stateVersion, state],
  decode: (fields) => ({
    commit: fields.integer(0),
    stateVersion: fields.integer(1),
    state: fields.bytes(2),
  }),
};

/** An item that waits behind the head of its key. */
export const mailRecord: RecordType<Place> = {
  kind: RECORD_KIND.keyMail,
  name: "key mail",
  encode: (place) => [place],
  decode: (fields) => placeFrom(fields, 0),
};

export const KEY_SEGMENTS = ["keys", "states", "mail", "timers"] as const;
export type KeySegment = (typeof KEY_SEGMENTS)[number];

export const KEY_SEGMENT_ROWS: Readonly<
  Record<KeySegment, { readonly prefix: string; readonly record: RecordType<unknown> }>
> = {
  keys: { prefix: KEYS_PREFIX, record: keyRecord },
  states: { prefix: STATES_PREFIX, record: keyStateRecord },
  mail: { prefix: MAIL_PREFIX, record: mailRecord },
  timers: { prefix: TIMERS_PREFIX, record: timerRecord },
};

export interface KeyNumbers {
  readonly segments: Readonly<Record<KeySegment, { readonly count: number; readonly sum: number }>>;
  /** Fixed by the first key. */
  readonly totalPartitions: number;
  /** Priorities that items of keys have. */
  readonly priorities: readonly number[];
  /** Undefined while there is nothing that only an actor has: programs that know of none lead the store on until then. */
  readonly inside: InsideNumbers | undefined;
}

/** The segments of a ledger of keys without actors. */
const PLAIN_SEGMENTS = 3;

const plainNumbersRecord: RecordType<KeyNumbers> = {
  kind: RECORD_KIND.keyNumbers,
  name: "numbers of keys",
  encode: ({ segments, totalPartitions, priorities }) => [
    KEY_SEGMENTS.slice(0, PLAIN_SEGMENTS).map((name) => [segments[name].count, segments[name].sum]),
    totalPartitions,
    priorities,
  ],
  decode: (fields) => numbersFrom(fields),
};

export const keyNumbersRecord: RecordType<KeyNumbers> = {
  ...plainNumbersRecord,
  version: 2,
  migrations: { 1: (older) => [older.plain(0), older.plain(1), older.plain(2)] as Tuple },
  encode: ({ segments, totalPartitions, priorities, inside = NO_INSIDE }) => [
    KEY_SEGMENTS.map((name) => [segments[name].count, segments[name].sum]),
    totalPartitions,
    priorities,
    [inside.items, inside.done, FAILURE_CLASSES.map((name) => inside.failedByClass[name])],
  ],
};

/** The record as it has to be written: of the first version as long as no actor is there. */
export function numbersRecordFor({ inside }: KeyNumbers): RecordType<KeyNumbers> {
  return inside === undefined ? plainNumbersRecord : keyNumbersRecord;
}

function numbersFrom(fields: Fields): KeyNumbers {
  const tallies = fields.tuples(0).map((tally) => ({ count: tally.integer(0), sum: tally.integer(1) }));
  const priorities = fields.tuple(2);
  const segment = (at: number): { readonly count: number; readonly sum: number } =>
    tallies[at] ?? fields.refuse(0, "misses a segment");
  const timers = tallies.length > PLAIN_SEGMENTS ? segment(PLAIN_SEGMENTS) : { count: 0, sum: 0 };
  return {
    segments: { keys: segment(0), states: segment(1), mail: segment(2), timers },
    totalPartitions: fields.integer(1),
    priorities: Array.from({ length: priorities.length }, (_, at) => priorities.integer(at)),
    inside: fields.length > 3 ? insideFrom(fields.tuple(3)) : undefined,
  };
}

function insideFrom(fields: Fields): InsideNumbers {
  const classes = fields.tuple(2);
  const failedByClass = byClass((_, at) => classes.integer(at));
  return { items: fields.integer(0), done: fields.integer(1), failedByClass };
}

const HASH_DIGITS = 32;
const SEQUENCE_DIGITS = 12;

/** The part that the keys of all rows of one key have in common: its partition and 32 digits of the SHA-256 of its text. */
export function pathOf(text: string, partition: number): string {
  const digits = hash("sha256", text, "hex").slice(0, HASH_DIGITS);
  return `${partitionDigits(partition)}/${digits}`;
}

/** By sequence: places of one key may lie in several lanes. */
export function mailKey(path: string, place: Place): string {
  return mailKeyOf(path, sequenceOf(place));
}

export function mailKeyOf(path: string, sequence: number): string {
  return `${MAIL_PREFIX}${path}/${sequence.toString(16).padStart(SEQUENCE_DIGITS, "0")}`;
}

function placeFrom(fields: Fields, at: number): Place {
  const text = fields.text(at);
  return isPlace(text) ? text : fields.refuse(at, "is no place");
}
