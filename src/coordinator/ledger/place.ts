// Names of items. The id is the SHA-256 of an item's content: the same line for the same task is the same item, however often and in
// whichever file it is submitted; equal lines of one submission are told apart by counting them.
//
// The place is where an item stands: its priority, then the order of submission. It never changes and is the item's name in the
// store, so that what is pending lies in the order in which it is given out, and what is next is one short scan.
import { createHash, hash } from "node:crypto";
import { assert } from "../../base/assert.ts";
import { CONFLICTS_PREFIX } from "../../storage/keys.ts";
import { corrupt } from "../../storage/records.ts";
import type { Store } from "../../storage/store.ts";

/** Changes when the recipe below does: ids of two recipes never meet. */
const FORMAT_TAG = "rollout item 1\0";
export const ITEM_ID_BYTES = 32;
/** The tag, and four numbers. */
const HEAD_BYTES = FORMAT_TAG.length + 16;
/** A hash in one go of bytes that were copied together costs half of one in parts; larger payloads are not copied. */
const COPIED_MAX = 16_384;

export interface ItemContent {
  /** Digest of the task: plugin name, command, parameters. Not its version, nor timeouts or concurrency. */
  readonly taskDigest: Uint8Array;
  /** The line's exact bytes without its ending and outer white space. */
  readonly payload: Uint8Array;
  /** Empty when there is none. */
  readonly key: string;
  /** How many equal items came before in the same submission. */
  readonly sampleIndex: number;
}

/** Every field goes in behind its length, so that no two contents run together into the same bytes. */
export function itemIdOf({ taskDigest, payload, key, sampleIndex }: ItemContent): Uint8Array {
  const keyBytes = Buffer.byteLength(key);
  const isLarge = payload.length > COPIED_MAX;
  const headBytes = HEAD_BYTES + taskDigest.length;
  const content = Buffer.allocUnsafe(isLarge ? headBytes : headBytes + payload.length + keyBytes);
  content.write(FORMAT_TAG, "latin1");
  content.writeUInt32BE(taskDigest.length, HEAD_BYTES - 16);
  content.writeUInt32BE(payload.length, HEAD_BYTES - 12);
  content.writeUInt32BE(keyBytes, HEAD_BYTES - 8);
  content.writeUInt32BE(sampleIndex, HEAD_BYTES - 4);
  content.set(taskDigest, HEAD_BYTES);
  if (isLarge) return createHash("sha256").update(content).update(payload).update(key).digest();
  content.set(payload, headBytes);
  content.write(key, headBytes + payload.length);
  return hash("sha256", content, "buffer");
}

const EVENT_TAG = "rollout event 1\0";

/** The id of an item that its input names within its key: the same name is the same item, whatever its payload. */
export function eventItemIdOf({
  taskDigest,
  key,
  eventId,
}: Pick<ItemContent, "taskDigest" | "key"> & { readonly eventId: string }): Uint8Array {
  const [keyBytes, eventBytes] = [Buffer.from(key), Buffer.from(eventId)];
  const lengths = Buffer.allocUnsafe(12);
  lengths.writeUInt32BE(taskDigest.length, 0);
  lengths.writeUInt32BE(keyBytes.length, 4);
  lengths.writeUInt32BE(eventBytes.length, 8);
  return createHash("sha256")
    .update(EVENT_TAG)
    .update(lengths)
    .update(taskDigest)
    .update(keyBytes)
    .update(eventBytes)
    .digest();
}

const INSIDE_TAG = "rollout mail 1\0";

/** The id of an item that another one's result has asked for: `index` counts all that it asks for. A result that is replayed makes the same. */
export function insideItemIdOf(asker: Uint8Array, index: number): Uint8Array {
  const counted = Buffer.allocUnsafe(4);
  counted.writeUInt32BE(index, 0);
  return createHash("sha256").update(INSIDE_TAG).update(asker).update(counted).digest();
}

/** How people and operator messages name an item: 64 hexadecimal digits. */
export function itemDigits(id: Uint8Array): string {
  return Buffer.from(id.buffer, id.byteOffset, id.byteLength).toString("hex");
}

/** Undefined for what is no such name. */
export function itemIdOfDigits(digits: string): Uint8Array | undefined {
  return /^[0-9a-f]{64}$/.test(digits) ? Buffer.from(digits, "hex") : undefined;
}

/** The id as a key of a Map: one character a byte, the cheapest text there is for it. */
export function itemKeyOf(id: Uint8Array): string {
  return Buffer.from(id.buffer, id.byteOffset, id.byteLength).toString("latin1");
}

/** The id in keys of the store, and for people: 43 characters of base64url. */
export function itemIdText(id: Uint8Array): string {
  return Buffer.from(id.buffer, id.byteOffset, id.byteLength).toString("base64url");
}

declare const brand: unique symbol;
/** Sorts as text in the order in which items are given out. */
export type Place = string & { readonly [brand]: "Place" };

/** Higher goes first. A range of a few hundred, because each one in use has a cursor of its own. */
export const PRIORITY_MAX = 100;
export const PRIORITY_MIN = -100;

const PRIORITY_DIGITS = 2;
const SEQUENCE_DIGITS = 12;

/** `sequence` counts submitted items from 0. */
export function placeOf(priority: number, sequence: number): Place {
  assert(priority >= PRIORITY_MIN && priority <= PRIORITY_MAX, `no such priority: ${priority}`);
  return `${lane(priority)}${sequence.toString(16).padStart(SEQUENCE_DIGITS, "0")}` as Place;
}

/** Set in the sequence of an item of a key: such items stand behind all others of their lane, where no window looks. */
const KEYED_BIT = 2 ** 47;
const KEYED_DIGIT = "8";
/** The part of the first digit that is the sequence's own. */
const SEQUENCE_MASK = 3;

/** The place of an item of a key: `sequence` is counted together with that of the others. */
export function keyedPlaceOf(priority: number, sequence: number): Place {
  return placeOf(priority, sequence + KEYED_BIT);
}

/** Set beside that one in the sequence of an item that other items' results have asked for: such items lie together too. */
const INSIDE_BIT = 2 ** 46;
const INSIDE_DIGIT = "c";

/** The place of an item from inside: it has a key, and its sequence is counted together with all others. */
export function insidePlaceOf(priority: number, sequence: number): Place {
  return placeOf(priority, sequence + KEYED_BIT + INSIDE_BIT);
}

export function isInside(place: Place): boolean {
  return (place[PRIORITY_DIGITS] ?? "") >= INSIDE_DIGIT;
}

export function isKeyed(place: Place): boolean {
  return (place[PRIORITY_DIGITS] ?? "") >= KEYED_DIGIT;
}

/** Sorts as text in the order of priority and submission, whether items have keys or not: places themselves would put those behind. */
export function orderOf(place: Place): string {
  if (!isKeyed(place)) return place;
  const digit = Number.parseInt(place[PRIORITY_DIGITS] ?? "", 16) & SEQUENCE_MASK;
  return `${place.slice(0, PRIORITY_DIGITS)}${digit.toString(16)}${place.slice(PRIORITY_DIGITS + 1)}`;
}

/** The part that all places of one priority begin with. */
function lane(priority: number): string {
  return (PRIORITY_MAX - priority).toString(16).padStart(PRIORITY_DIGITS, "0");
}

/** Comes after all places: `g` comes after every hexadecimal digit. */
export const PLACES_END = "g";

/** The end of the range of all places of one priority whose items have no key. */
export function laneEnd(priority: number): string {
  return `${lane(priority)}${KEYED_DIGIT}`;
}

export function priorityOf(place: Place): number {
  return PRIORITY_MAX - Number.parseInt(place.slice(0, PRIORITY_DIGITS), 16);
}

/** Whether items of these places lie in one stretch: of one priority, and all of keys, from inside, or neither. */
export function isBeside(place: Place, other: Place): boolean {
  const isSame = priorityOf(place) === priorityOf(other) && isKeyed(place) === isKeyed(other);
  return isSame && isInside(place) === isInside(other);
}

export function sequenceOf(place: Place): number {
  const sequence = Number.parseInt(place.slice(PRIORITY_DIGITS), 16);
  return sequence >= KEYED_BIT ? sequence % INSIDE_BIT : sequence;
}

export function isPlace(text: string): text is Place {
  return text.length === PRIORITY_DIGITS + SEQUENCE_DIGITS && /^[0-9a-f]+$/.test(text);
}

/** The place in the key of a row. Throws store_corrupt. */
export function placeOfKey(store: Store, prefix: string, key: string): Place {
  const place = key.slice(prefix.length);
  return isPlace(place) ? place : corrupt(store, key, "its key names no place");
}

/** Where the result stands that contradicts the recorded one. */
export function conflictKey(place: Place): string {
  return `${CONFLICTS_PREFIX}${place}`;
}

const DUE_DIGITS = 13;

/** The key of an item that waits: when it is due by the wall clock, then its place. */
export function delayedKey(dueAtWallMs: number, place: Place): string {
  return `${String(Math.ceil(dueAtWallMs)).padStart(DUE_DIGITS, "0")}/${place}`;
}

/** By the wall clock. */
export function dueOfDelayed(key: string): number {
  return Number(key.slice(0, DUE_DIGITS));
}

export function placeOfDelayed(key: string): Place {
  const place = key.slice(DUE_DIGITS + 1);
  assert(isPlace(place), `no place in ${key}`);
  return place;
}
