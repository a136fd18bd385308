// The memory of keys beyond their rows: payloads of heads and of a few items behind them, and states. A payload or a state that is
// missing is read when it is needed; states that nobody needs now are let go of when there are too many (C8).
//
// Keeps true: a key is read by one reading at a time; a reading fills only what is missing when it comes back.
import type { PendingItem } from "../ledger/ledger.ts";
import { sequenceOf } from "../ledger/place.ts";
import type { Place } from "../ledger/place.ts";
import type { Key, Letter } from "./key.ts";
import { PARKED, WAITING } from "./key.ts";
import { pathOf } from "./key-records.ts";
import type { KeyStateRecord } from "./key-records.ts";

/** The parts of one key that are to be read. */
export interface KeyReading {
  readonly text: string;
  /** See `pathOf`. */
  readonly path: string;
  /** Items whose payloads are missing. */
  readonly places: readonly Place[];
  /** Mail behind this sequence, so many at most; null when none is asked for. */
  readonly mail: { readonly after: number; readonly limit: number } | null;
  readonly withState: boolean;
}

export interface KeysLoad {
  readonly readings: readonly KeyReading[];
  /** Bytes in memory after which the reading ends before the last of them. */
  readonly weightMax: number;
}

export interface LoadedKey {
  readonly text: string;
  /** Undefined when its turn did not come: the rest is undefined then too. */
  readonly items: readonly PendingItem[] | undefined;
  readonly mail?: readonly Place[] | undefined;
  readonly state?: KeyStateRecord | undefined;
}

/** Items behind the head that are in memory at most, and when more are read. */
export const NEXT_MAX = 8;
const NEXT_LOW = 4;
const WEIGHT_MAX = 64 * 2 ** 20;
const STATES_WEIGHT_MAX = 64 * 2 ** 20;
/** Memory of a state beside its bytes. */
const STATE_WEIGHT = 100;
/** Keys in one reading. */
const KEYS_MAX = 512;

export class KeyMemory {
  /** Keys of which something may be missing. */
  readonly #hungry = new Set<Key>();
  /** Keys whose states are in memory, those that were used last at the end. */
  readonly #states = new Set<Key>();
  #weight = 0;
  #statesWeight = 0;

  /** Whether some key may be ready as soon as it is read. */
  get isHungry(): boolean {
    return this.#hungry.size > 0;
  }

  hunger(key: Key): void {
    this.#hungry.add(key);
  }

  forget(key: Key): void {
    this.#hungry.delete(key);
    this.dropState(key);
  }

  /** An item that is at hand stays if there is room: for one that is next there nearly always is. */
  keep(letter: Letter, item: PendingItem, isHead: boolean): void {
    if (letter.item !== undefined || this.#weight >= (isHead ? WEIGHT_MAX : WEIGHT_MAX / 2)) return;
    letter.item = item;
    this.#weight += item.weight;
  }

  release(letter: Letter): void {
    if (letter.item === undefined) return;
    this.#weight -= letter.item.weight;
    letter.item = undefined;
  }

  keepState(key: Key, state: Uint8Array): void {
    this.dropState(key);
    key.state = state;
    this.#states.add(key);
    this.#statesWeight += state.length + STATE_WEIGHT;
  }

  dropState(key: Key): void {
    if (!this.#states.delete(key)) return;
    this.#statesWeight -= (key.state?.length ?? 0) + STATE_WEIGHT;
    key.state = undefined;
  }

  /** States that were not used for longest leave memory when there are too many; those of keys that are ready stay. */
  trim(): void {
    if (this.#statesWeight <= STATES_WEIGHT_MAX) return;
    for (const key of this.#states) {
      if (this.#statesWeight <= STATES_WEIGHT_MAX / 2) return;
      if (key.queue === undefined) this.dropState(key);
    }
  }

  /** The keys to read now, if any. The caller answers with `loaded` for each of them. */
  wants(): KeysLoad | undefined {
    if (this.#hungry.size === 0) return undefined;
    const readings: KeyReading[] = [];
    const isFull = this.#weight >= WEIGHT_MAX;
    for (const key of this.#hungry) {
      if (readings.length >= KEYS_MAX) break;
      const reading = key.isLoading ? undefined : readingOf(key, this.#weight < WEIGHT_MAX / 2);
      // Heads that are in memory go out before others come in.
      if (reading !== undefined && isFull && reading.places.length > 0) continue;
      this.#hungry.delete(key);
      if (reading === undefined) continue;
      key.isLoading = true;
      readings.push(reading);
    }
    const weightMax = Math.max(WEIGHT_MAX / 16, WEIGHT_MAX - this.#weight);
    return readings.length === 0 ? undefined : { readings, weightMax };
  }

  /** Puts what was read where it is missing still. Returns the mail that is news, in order. */
  take(key: Key, { items, mail, state }: LoadedKey): readonly Place[] {
    key.isLoading = false;
    if (items === undefined) {
      this.#hungry.add(key);
      return [];
    }
    const { head, next } = key;
    for (const item of items) {
      const letter = head?.place === item.key ? head : next.find(({ place }) => place === item.key);
      if (letter !== undefined) this.keep(letter, item, letter === head);
    }
    if (state !== undefined && key.hasState && key.state === undefined && state.commit === key.commit)
      this.keepState(key, state.state);
    return mail ?? [];
  }
}

/** Undefined when nothing of it is missing. */
function readingOf(key: Key, mayPrefetch: boolean): KeyReading | undefined {
  const isNext = key.row.state === WAITING;
  const isAtWork = key.row.context.mail > 0 && key.row.state !== PARKED;
  if (!isNext && !isAtWork && key.head !== undefined) return undefined;
  const places: Place[] = [];
  if (isNext && key.head !== undefined && key.head.item === undefined) places.push(key.head.place);
  if (mayPrefetch && isAtWork)
    for (const { place, item } of key.next) if (item === undefined) places.push(place);
  const isShort = !key.isKnown && (key.next.length < NEXT_LOW || key.head === undefined);
  // The head is none of the mail, and an item that was taken back may come before it.
  const last = key.next.at(-1);
  const after = last === undefined ? -1 : sequenceOf(last.place);
  const mail = isShort ? { after, limit: NEXT_MAX - key.next.length } : null;
  const withState = isNext && key.hasState && key.state === undefined;
  if (places.length === 0 && mail === null && !withState) return undefined;
  return { text: key.text, path: pathOf(key.text, key.partition), places, mail, withState };
}
