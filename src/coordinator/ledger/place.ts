// Where an item stands: its priority, then the order of submission. A place never changes and is the item's name in the
// store, so that what is pending lies in the order in which it is given out, and what is next is one short scan.
import { assert } from "../../base/assert.ts";
import { failure } from "../../base/errors.ts";
import { CONFLICTS_PREFIX } from "../../storage/keys.ts";
import type { Store } from "../../storage/store.ts";

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

/** The part that all places of one priority begin with. */
function lane(priority: number): string {
  return (PRIORITY_MAX - priority).toString(16).padStart(PRIORITY_DIGITS, "0");
}

/** Comes after all places: `g` comes after every hexadecimal digit. */
export const PLACES_END = "g";

/** The end of the range of all places of one priority. */
export function laneEnd(priority: number): string {
  return `${lane(priority)}${PLACES_END}`;
}

export function priorityOf(place: Place): number {
  return PRIORITY_MAX - Number.parseInt(place.slice(0, PRIORITY_DIGITS), 16);
}

export function sequenceOf(place: Place): number {
  return Number.parseInt(place.slice(PRIORITY_DIGITS), 16);
}

export function isPlace(text: string): text is Place {
  return text.length === PRIORITY_DIGITS + SEQUENCE_DIGITS && /^[0-9a-f]+$/.test(text);
}

/** The place in the key of a row. Throws store_corrupt. */
export function placeOfKey({ location }: Store, prefix: string, key: string): Place {
  const place = key.slice(prefix.length);
  if (isPlace(place)) return place;
  throw failure("store_corrupt", { path: location, key, reason: "its key names no place" });
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
