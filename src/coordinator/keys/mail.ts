// The items behind the head of a key, as far as they are known in memory: the first of its mail, in order of submission.
import { sequenceOf } from "../ledger/place.ts";
import type { Place } from "../ledger/place.ts";
import type { Key, Letter } from "./key.ts";
import { NEXT_MAX } from "./key-memory.ts";

/** It came last. True when it is known from here on: a key without a head draws it from what is read, and so does a long one. */
export function appendMail(key: Key, letter: Letter, wasKnown: boolean): boolean {
  if (!wasKnown || key.head === undefined || key.next.length >= NEXT_MAX) return false;
  key.next = [...key.next, letter];
  return true;
}

/** In its place among those that are known, or behind them if these are all. A reading under way may miss one that is not, and is done again. */
export function insertMail(key: Key, letter: Letter, wasKnown: boolean): void {
  const sequence = sequenceOf(letter.place);
  const at = key.next.findIndex(({ place }) => sequenceOf(place) > sequence);
  if (at !== -1) key.next = key.next.toSpliced(at, 0, letter);
  else if (!appendMail(key, letter, wasKnown)) key.isStale = key.isLoading;
}

/** Places that were read behind those that are known. */
export function addReadMail(key: Key, places: readonly Place[]): void {
  const last = key.next.at(-1);
  const after = last === undefined ? -1 : sequenceOf(last.place);
  const news = places.filter((place) => sequenceOf(place) > after && place !== key.head?.place);
  if (news.length > 0) key.next = [...key.next, ...news.map((place) => ({ place, item: undefined }))];
}
