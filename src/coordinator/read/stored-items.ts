// Items that are final, read from the store for those who ask for results. Every record is verified as it is read, and the rows
// of one item are held against each other; damage is thrown as store_corrupt, naming the key.
//
// The readers' room. For operators: `stored-items`, `locate-item`, `item-detail`, and pages of results (`result-page`,
// `results-by-input`, `results-by-completion`). For the reactor: `examine-items` looks up what it has forgotten, `load-window`
// fills its windows, `verify-ledger` compares rows with numbers.
import { failure } from "../../base/errors.ts";
import type { RecordType } from "../../storage/codec.ts";
import { DONE_PREFIX, FAILED_PREFIX, ITEMS_PREFIX } from "../../storage/keys.ts";
import { readRecord, recordOf } from "../../storage/records.ts";
import { placeOfKey } from "../ledger/place.ts";
import type { Store } from "../../storage/store.ts";
import { nextKey } from "../../storage/store.ts";
import { doneRecord, failedRecord, itemRecord } from "../ledger/records.ts";
import type { DoneRecord, FailedRecord, ItemRecord } from "../ledger/records.ts";
import type { Place } from "../ledger/place.ts";

export type Final =
  | { readonly kind: "done"; readonly record: DoneRecord }
  | { readonly kind: "failed"; readonly record: FailedRecord };

export interface SeenItem {
  readonly place: Place;
  readonly item: ItemRecord;
  /** Undefined while it is not final. */
  readonly final: Final | undefined;
}

export interface FinalItem extends SeenItem {
  readonly final: Final;
}

/** The item of a place, as it stands; undefined when there is none. */
export async function seeItemAt(store: Store, place: Place): Promise<SeenItem | undefined> {
  const [item, final] = await Promise.all([
    readRecord(store, `${ITEMS_PREFIX}${place}`, itemRecord),
    readFinal(store, place),
  ]);
  return item === undefined ? undefined : checked(store, { place, item, final });
}

async function readFinal(store: Store, place: Place): Promise<Final | undefined> {
  // An operator's retry takes an item from `failed` and lets it become `done`: in this order it is not missed on the way.
  const failed = await readRecord(store, `${FAILED_PREFIX}${place}`, failedRecord);
  if (failed !== undefined) return { kind: "failed", record: failed };
  const done = await readRecord(store, `${DONE_PREFIX}${place}`, doneRecord);
  return done && { kind: "done", record: done };
}

/** Items of one priority from `from` on, `limit` at most and none at `to` or behind it, as they stand. */
export async function seeItems(
  store: Store,
  { from, to, limit }: { readonly from: string; readonly to: string; readonly limit: number },
): Promise<SeenItem[]> {
  const rows = await store.scan({ from: `${ITEMS_PREFIX}${from}`, to: `${ITEMS_PREFIX}${to}`, limit });
  const places = rows.map(({ key }) => placeOfKey(store, ITEMS_PREFIX, key));
  const [first, last] = [places.at(0), places.at(-1)];
  if (first === undefined || last === undefined) return [];
  const range = { from: first, to: nextKey(last), limit };
  const failed = await readRange(store, FAILED_PREFIX, range, failedRecord);
  const done = await readRange(store, DONE_PREFIX, range, doneRecord);
  return rows.map((row, at) => {
    const place = places[at] as Place;
    const item = recordOf(store, row, itemRecord);
    return checked(store, { place, item, final: finalOf(failed.get(place), done.get(place)) });
  });
}

function finalOf(failed: FailedRecord | undefined, done: DoneRecord | undefined): Final | undefined {
  // It was retried and has succeeded between the two scans.
  if (done !== undefined) return { kind: "done", record: done };
  return failed && { kind: "failed", record: failed };
}

async function readRange<T>(
  store: Store,
  prefix: string,
  { from, to, limit }: { readonly from: string; readonly to: string; readonly limit: number },
  type: RecordType<T>,
): Promise<Map<Place, T>> {
  const rows = await store.scan({ from: `${prefix}${from}`, to: `${prefix}${to}`, limit });
  return new Map(rows.map((row) => [placeOfKey(store, prefix, row.key), recordOf(store, row, type)]));
}

export function corrupt(store: Store, key: string, reason: string): never {
  throw failure("store_corrupt", { path: store.location, key, reason });
}

function checked(store: Store, seen: SeenItem): SeenItem {
  const { place, item, final } = seen;
  if (final === undefined || Buffer.compare(final.record.id, item.id) === 0) return seen;
  const prefix = final.kind === "done" ? DONE_PREFIX : FAILED_PREFIX;
  return corrupt(store, `${prefix}${place}`, "it names another item than the one of its place");
}
