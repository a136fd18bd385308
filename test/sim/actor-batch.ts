// A batch of a coordinator as the shadow of actors reads it: what has come, ended and been written in one turn.
import { keyRecord, keyStateRecord } from "../../src/coordinator/keys/key-records.ts";
import type { KeyRecord, KeyStateRecord } from "../../src/coordinator/keys/key-records.ts";
import { timerRecord } from "../../src/coordinator/keys/timer-record.ts";
import { completionsRecord } from "../../src/coordinator/ledger/completions.ts";
import type { Origin } from "../../src/coordinator/ledger/origin.ts";
import { isKeyed, isPlace, itemIdText, sequenceOf } from "../../src/coordinator/ledger/place.ts";
import { doneRecord, failedRecord, itemRecord } from "../../src/coordinator/ledger/records.ts";
import type { DoneRecord, FailedRecord } from "../../src/coordinator/ledger/records.ts";
import type { RecordType } from "../../src/storage/codec.ts";
import { decodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import {
  COMPLETIONS_PREFIX,
  DONE_PREFIX,
  FAILED_PREFIX,
  ITEMS_PREFIX,
  KEYS_PREFIX,
  RUNNING_PREFIX,
  STATES_PREFIX,
  TIMERS_PREFIX,
} from "../../src/storage/keys.ts";
import type { Batch, Entry } from "../../src/storage/store.ts";
import type { ArmedTimer } from "./shadow-actor.ts";

/** An item of a key. */
export interface ActorItem {
  readonly place: string;
  readonly idText: string;
  readonly key: string;
  readonly payload: Uint8Array;
  /** Undefined for one that was submitted. */
  readonly origin: Origin | undefined;
  readonly sequence: number;
  failed: FailedRecord | undefined;
}

type Rows = Pick<Batch, "puts" | "deletes">;

export class ActorBatch {
  /** Items that were submitted. */
  readonly submitted: readonly ActorItem[];
  /** Items from inside, in order, that nothing is known to have asked for. */
  readonly unexplained: ActorItem[];
  /** Places of what became final, in order. */
  readonly completed: readonly string[];
  readonly done: ReadonlyMap<string, DoneRecord>;
  readonly failed: ReadonlyMap<string, FailedRecord>;
  readonly begun: readonly string[];
  readonly keys: readonly KeyRecord[];
  readonly timers: readonly ArmedTimer[];
  /** By the path of their keys. */
  readonly states: ReadonlyMap<string, KeyStateRecord>;
  readonly #deletes: readonly string[];

  constructor({ puts, deletes }: Rows) {
    const items = under(puts, ITEMS_PREFIX).flatMap((entry) => itemOf(entry) ?? []);
    items.sort((one, other) => one.sequence - other.sequence);
    this.submitted = items.filter(({ origin }) => origin === undefined);
    this.unexplained = items.filter(({ origin }) => origin !== undefined);
    this.completed = under(puts, COMPLETIONS_PREFIX).flatMap((entry) => read(completionsRecord, entry));
    this.done = byPath(puts, DONE_PREFIX, doneRecord);
    this.failed = byPath(puts, FAILED_PREFIX, failedRecord);
    this.begun = under(puts, RUNNING_PREFIX).map(({ key }) => key.slice(RUNNING_PREFIX.length));
    this.keys = under(puts, KEYS_PREFIX).map((entry) => read(keyRecord, entry));
    this.states = byPath(puts, STATES_PREFIX, keyStateRecord);
    this.timers = under(puts, TIMERS_PREFIX).map((entry) => ({
      row: entry.key,
      timer: read(timerRecord, entry),
    }));
    this.#deletes = deletes;
  }

  /** Keys of rows that are gone, without the prefix that they have in common. */
  gone(prefix: string): readonly string[] {
    return this.#deletes.filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length));
  }

  /** The number under which an actor knows its child; undefined when it was stopped again in the same turn. */
  numberOf(parent: string, child: string): number | undefined {
    return this.keys.find(({ text }) => text === parent)?.actor?.live.get(child)?.number;
  }
}

export function itemOf(entry: Entry): ActorItem | undefined {
  const place = entry.key.slice(ITEMS_PREFIX.length);
  if (!isPlace(place) || !isKeyed(place)) return undefined;
  const { id, key, payload, origin } = read(itemRecord, entry);
  const sequence = sequenceOf(place);
  return { place, idText: itemIdText(id), key, payload, origin, sequence, failed: undefined };
}

export function under(entries: readonly Entry[], prefix: string): readonly Entry[] {
  return entries.filter(({ key }) => key.startsWith(prefix));
}

export function read<T>(type: RecordType<T>, { key, value }: Entry): T {
  return okOrFailure("shadow", decodeRecord(type, key, value));
}

function byPath<T>(puts: readonly Entry[], prefix: string, type: RecordType<T>): ReadonlyMap<string, T> {
  return new Map(under(puts, prefix).map((entry) => [entry.key.slice(prefix.length), read(type, entry)]));
}
