// Items that are final, read from the store for those who ask for results. Every record is verified as it is read, and the rows
// of one item are held against each other; damage is thrown as store_corrupt, naming the key.
//
// The readers' room. For operators: `stored-items`, `item-detail` and `result-pages`; of keys `key-history` and `waiting-items`. For the reactor:
// `examine-items` looks up what it has forgotten, `load-window` and `load-keys` fill its memory, `read-states` reads what workers are to keep.
// `verify-ledger` compares rows with numbers, `verify-keys` and `verify-releases` rows with each other.
import type { RecordType } from "../../storage/codec.ts";
import { DONE_PREFIX, FAILED_PREFIX, ITEMS_PREFIX } from "../../storage/keys.ts";
import { corrupt, recordOf } from "../../storage/records.ts";
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
  const [seen] = await seeItemsAt(store, [place]);
  return seen;
}

/** The items of these places, in their order, each as it stands; undefined where there is none. */
export async function seeItemsAt(
  store: Store,
  places: readonly Place[],
): Promise<readonly (SeenItem | undefined)[]> {
  if (places.length === 0) return [];
  // An operator's retry takes an item from `failed` and lets it become `done`: in this order it is not missed on the way.
  const keys = [ITEMS_PREFIX, FAILED_PREFIX, DONE_PREFIX].flatMap((prefix) =>
    places.map((place) => `${prefix}${place}`),
  );
  const rows = await store.getMany(keys);
  const rowAt = <T>(at: number, type: RecordType<T>): T | undefined => {
    const [key = "", value] = [keys[at], rows[at]];
    return value && recordOf(store, { key, value }, type);
  };
  const count = places.length;
  return places.map((place, at) => {
    const item = rowAt(at, itemRecord);
    if (item === undefined) return undefined;
    const [failed, done] = [rowAt(count + at, failedRecord), rowAt(2 * count + at, doneRecord)];
    return checked(store, { place, item, final: finalOf(failed, done) });
  });
}

/** Where rows are read from: `from` on, none at `to` or behind it, `limit` at most and about so many bytes of each kind. */
interface ItemRange {
  readonly from: string;
  readonly to: string;
  readonly limit: number;
  readonly bytesMax: number;
}

/** Items of one priority, as they stand, without a gap from the first one in the range on; one of them at least where there is one. */
export async function seeItems(store: Store, range: ItemRange): Promise<SeenItem[]> {
  const [from, to] = [`${ITEMS_PREFIX}${range.from}`, `${ITEMS_PREFIX}${range.to}`];
  const rows = await store.scan({ ...range, from, to });
  const places = rows.map(({ key }) => placeOfKey(store, ITEMS_PREFIX, key));
  const [first, last] = [places.at(0), places.at(-1)];
  if (first === undefined || last === undefined) return [];
  const beside = { ...range, from: first, to: nextKey(last) };
  const failed = await readRange(store, FAILED_PREFIX, beside, failedRecord);
  const done = await readRange(store, DONE_PREFIX, beside, doneRecord);
  // Nothing is known of items behind a reading that ended for its bytes.
  const end = failed.end < done.end ? failed.end : done.end;
  const seen: SeenItem[] = [];
  for (const [at, row] of rows.entries()) {
    const place = places[at] as Place;
    if (place >= end) break;
    const item = recordOf(store, row, itemRecord);
    const final = finalOf(failed.records.get(place), done.records.get(place));
    seen.push(checked(store, { place, item, final }));
  }
  return seen;
}

function finalOf(failed: FailedRecord | undefined, done: DoneRecord | undefined): Final | undefined {
  // It was retried and has succeeded between the two scans.
  if (done !== undefined) return { kind: "done", record: done };
  return failed && { kind: "failed", record: failed };
}

/** The records that there are, up to `end`. */
async function readRange<T>(
  store: Store,
  prefix: string,
  { from, to, limit, bytesMax }: ItemRange,
  type: RecordType<T>,
): Promise<{ readonly records: ReadonlyMap<Place, T>; readonly end: string }> {
  const rows = await store.scan({ from: `${prefix}${from}`, to: `${prefix}${to}`, limit, bytesMax });
  const records = new Map<Place, T>();
  let [bytes, end] = [0, to];
  for (const row of rows) {
    const place = placeOfKey(store, prefix, row.key);
    records.set(place, recordOf(store, row, type));
    bytes += row.key.length + row.value.length;
    if (bytes > bytesMax) end = nextKey(place);
  }
  return { records, end };
}

function checked(store: Store, seen: SeenItem): SeenItem {
  const { place, item, final } = seen;
  if (final === undefined || Buffer.compare(final.record.id, item.id) === 0) return seen;
  const prefix = final.kind === "done" ? DONE_PREFIX : FAILED_PREFIX;
  return corrupt(store, `${prefix}${place}`, "it names another item than the one of its place");
}
