// Rows of keys on their way into a turn's batch: each that changes is written once, at the end of the turn, with the numbers of all.
import { encodeRecord, recordChecksum } from "../../storage/codec.ts";
import type { Damage, RecordType } from "../../storage/codec.ts";
import { KEY_NUMBERS_KEY, KEYS_PREFIX, STATES_PREFIX } from "../../storage/keys.ts";
import type { Entry } from "../../storage/store.ts";
import type { Place } from "../ledger/place.ts";
import type { Scrub } from "../ledger/scrub.ts";
import { addToSum, removeFromSum, NO_ROW } from "../ledger/tally.ts";
import { AwaitedKeys } from "./awaited-keys.ts";
import { keyChart, storedState } from "./key.ts";
import type { Key } from "./key.ts";
import {
  KEY_SEGMENT_ROWS,
  KEY_SEGMENTS,
  keyRecord,
  keyStateRecord,
  mailKey,
  mailRecord,
  numbersRecordFor,
  pathOf,
} from "./key-records.ts";
import type { KeyNumbers, KeyRecord, KeySegment } from "./key-records.ts";
import { InsideCounts, NO_INSIDE } from "./inside-counts.ts";
import { timerKey, timerRecord } from "./timer-record.ts";
import type { Timer } from "./timers.ts";

/** The part of a turn that takes writes. */
interface Batch {
  put(entry: Entry): void;
  delete(key: string): void;
}

interface Mail {
  readonly place: Place;
  readonly isPut: boolean;
}

export class KeyRows {
  /** Looks at what each flush writes. */
  readonly awaited = new AwaitedKeys();
  readonly #segments: Record<KeySegment, { count: number; sum: number }>;
  readonly #totalPartitions: number;
  readonly #priorities: Set<number>;
  readonly #touched = new Set<Key>();
  /** Keys whose states have changed. */
  readonly #states = new Set<Key>();
  readonly #retired = new Set<Key>();
  /** By the key of the row. */
  readonly #mail = new Map<string, Mail>();
  /** By the key of the row. */
  readonly #timers = new Map<string, { readonly timer: Timer; readonly isPut: boolean }>();
  readonly #paths = new Map<Key, string>();
  readonly inside: InsideCounts;
  /** There is, or was, an actor that has asked for something. */
  #hasActors: boolean;
  #isTouched = false;

  constructor(totalPartitions: number, numbers: KeyNumbers | undefined) {
    const segment = (name: KeySegment): { count: number; sum: number } => ({
      ...(numbers?.segments[name] ?? { count: 0, sum: 0 }),
    });
    this.#segments = {
      ...{ keys: segment("keys"), states: segment("states") },
      ...{ mail: segment("mail"), timers: segment("timers") },
    };
    this.inside = new InsideCounts(numbers?.inside ?? NO_INSIDE);
    this.#hasActors = numbers?.inside !== undefined;
    this.#totalPartitions = totalPartitions;
    this.#priorities = new Set(numbers?.priorities);
  }

  get numbers(): KeyNumbers {
    const { keys, states, mail, timers } = this.#segments;
    return {
      segments: { keys: { ...keys }, states: { ...states }, mail: { ...mail }, timers: { ...timers } },
      totalPartitions: this.#totalPartitions,
      priorities: [...this.#priorities],
      inside: this.#hasActors ? this.inside.numbers : undefined,
    };
  }

  countInside(change: (inside: InsideCounts) => void): void {
    change(this.inside);
    this.touchInside();
  }

  /** The counts of items from inside have changed, or an actor is there. Programs that know of none refuse the store from here on. */
  touchInside(): void {
    this.#hasActors = true;
    this.#isTouched = true;
  }

  get hasInside(): boolean {
    return this.#hasActors;
  }

  /** Items of keys have this priority from now on. */
  openPriority(priority: number): void {
    if (this.#priorities.has(priority)) return;
    this.#priorities.add(priority);
    this.#isTouched = true;
  }

  touch(key: Key): void {
    this.#touched.add(key);
  }

  touchState(key: Key): void {
    this.#states.add(key);
    this.#touched.add(key);
  }

  putMail(key: Key, place: Place): void {
    this.#changeMail(key, { place, isPut: true });
  }

  dropMail(key: Key, place: Place): void {
    this.#changeMail(key, { place, isPut: false });
  }

  /** One that was written and leaves in the same turn is not written at all. */
  #changeMail(key: Key, mail: Mail): void {
    const rowKey = mailKey(this.#pathOf(key), mail.place);
    const known = this.#mail.get(rowKey);
    if (known !== undefined && known.isPut !== mail.isPut) this.#mail.delete(rowKey);
    else this.#mail.set(rowKey, mail);
  }

  putTimer(key: Key, timer: Timer): void {
    this.#changeTimer(key, timer, true);
  }

  dropTimer(key: Key, timer: Timer): void {
    this.#changeTimer(key, timer, false);
  }

  /** As with mail. */
  #changeTimer(key: Key, timer: Timer, isPut: boolean): void {
    const rowKey = timerKey(this.#pathOf(key), timer.number);
    if (this.#timers.get(rowKey)?.isPut === true && !isPut) this.#timers.delete(rowKey);
    else this.#timers.set(rowKey, { timer, isPut });
  }

  retire(key: Key): void {
    this.#retired.add(key);
    this.#touched.delete(key);
    this.#states.delete(key);
  }

  flush(batch: Batch, scrub: Scrub): void {
    const changed = [this.#touched, this.#retired, this.#mail, this.#timers];
    if (!this.#isTouched && changed.every(({ size }) => size === 0)) return;
    for (const key of this.#retired) {
      const path = this.#pathOf(key);
      this.#drop(batch, scrub, "keys", `${KEYS_PREFIX}${path}`, key.checksum);
      this.#drop(batch, scrub, "states", `${STATES_PREFIX}${path}`, key.stateChecksum);
    }
    for (const key of this.#touched) this.#writeKey(batch, scrub, key);
    for (const [rowKey, { place, isPut }] of this.#mail) {
      const checksum = recordChecksum(encodeRecord(mailRecord, rowKey, place));
      if (isPut) this.#put(batch, scrub, "mail", { key: rowKey, type: mailRecord, value: place }, NO_ROW);
      else this.#drop(batch, scrub, "mail", rowKey, checksum);
    }
    this.awaited.look(this.#touched, this.#retired);
    for (const [rowKey, { timer, isPut }] of this.#timers) {
      if (!isPut) this.#drop(batch, scrub, "timers", rowKey, timer.checksum);
      else
        timer.checksum = this.#put(
          batch,
          scrub,
          "timers",
          { key: rowKey, type: timerRecord, value: timer },
          timer.checksum,
        );
    }
    const { numbers } = this;
    const value = encodeRecord(numbersRecordFor(numbers), KEY_NUMBERS_KEY, numbers);
    batch.put({ key: KEY_NUMBERS_KEY, value });
    for (const pending of [...changed, this.#states, this.#paths]) pending.clear();
    this.#isTouched = false;
  }

  #writeKey(batch: Batch, scrub: Scrub, key: Key): void {
    const path = this.#pathOf(key);
    if (this.#states.has(key)) this.#writeState(batch, scrub, key, path);
    const row = { key: `${KEYS_PREFIX}${path}`, type: keyRecord, value: recordOf(key) };
    key.checksum = this.#put(batch, scrub, "keys", row, key.checksum);
  }

  #writeState(batch: Batch, scrub: Scrub, key: Key, path: string): void {
    const stateKey = `${STATES_PREFIX}${path}`;
    const { commit, stateVersion, state } = key;
    if (!key.hasState || state === undefined) {
      this.#drop(batch, scrub, "states", stateKey, key.stateChecksum);
      key.stateChecksum = NO_ROW;
      return;
    }
    const value = { commit, stateVersion, state };
    const stateRow = { key: stateKey, type: keyStateRecord, value };
    key.stateChecksum = this.#put(batch, scrub, "states", stateRow, key.stateChecksum);
  }

  /** `before` is the checksum of the row that it takes the place of. */
  #put<T>(
    batch: Batch,
    scrub: Scrub,
    segment: KeySegment,
    { key, type, value }: { readonly key: string; readonly type: RecordType<T>; readonly value: T },
    before: number,
  ): number {
    if (before !== NO_ROW) this.#count(scrub, segment, key, before, false);
    const bytes = encodeRecord(type, key, value);
    const checksum = recordChecksum(bytes);
    batch.put({ key, value: bytes });
    this.#count(scrub, segment, key, checksum, true);
    return checksum;
  }

  #drop(batch: Batch, scrub: Scrub, segment: KeySegment, key: string, checksum: number): void {
    if (checksum === NO_ROW) return;
    batch.delete(key);
    this.#count(scrub, segment, key, checksum, false);
  }

  #count(scrub: Scrub, segment: KeySegment, key: string, checksum: number, hasCome: boolean): void {
    const tally = this.#segments[segment];
    tally.count += hasCome ? 1 : -1;
    tally.sum = hasCome ? addToSum(tally.sum, checksum) : removeFromSum(tally.sum, checksum);
    if (hasCome) scrub.came(segment, key, checksum);
    else scrub.went(segment, key, checksum);
  }

  #pathOf(key: Key): string {
    const known = this.#paths.get(key);
    if (known !== undefined) return known;
    const path = pathOf(key.text, key.partition);
    this.#paths.set(key, path);
    return path;
  }
}

/** Whether a walk over the segment found what was counted. */
export function keysMatch(
  { segments }: KeyNumbers,
  segment: KeySegment,
  found: { readonly count: number; readonly sum: number },
): boolean {
  return segments[segment].count === found.count && segments[segment].sum === found.sum;
}

/** The damage, if a walk over a segment has found other rows than were counted. */
export function keyDisagreement(
  numbers: KeyNumbers,
  segment: KeySegment,
  found: { readonly count: number; readonly sum: number },
): Damage | undefined {
  if (keysMatch(numbers, segment, found)) return undefined;
  const { prefix } = KEY_SEGMENT_ROWS[segment];
  const { count } = numbers.segments[segment];
  const reason = `${count} rows were counted under ${prefix}, and other ones are there (${found.count})`;
  return { kind: "corrupt", key: KEY_NUMBERS_KEY, reason };
}

export function isKeySegment(segment: string): segment is KeySegment {
  return KEY_SEGMENTS.some((name) => name === segment);
}

function recordOf(key: Key): KeyRecord {
  const { text, row, head, commit, hasState, stateChecksum, stateVersion, why, last = "", actor } = key;
  const { mail, isPaused, hasFailed, isDelayed } = row.context;
  const state = keyChart.states[storedState(row.state)] ?? "";
  const stands = { text, state, head: head?.place ?? ("" as const), mail, isPaused, hasFailed, isDelayed };
  const checksum = hasState ? stateChecksum : null;
  const marked = key.mark === "" ? {} : { mark: key.mark };
  return { ...stands, commit, stateChecksum: checksum, stateVersion, why, last, actor, ...marked };
}
