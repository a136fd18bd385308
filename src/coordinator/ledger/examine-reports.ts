// Where an item stands of which a late success was reported, read from the store: the reactor remembers only what is in
// flight.
import { decodeRecord, okOrFailure, recordChecksum } from "../../storage/codec.ts";
import type { RecordType } from "../../storage/codec.ts";
import { DONE_PREFIX, ITEM_INDEX_PREFIX, ITEMS_PREFIX, RETURNED_PREFIX } from "../../storage/keys.ts";
import type { Store } from "../../storage/store.ts";
import { itemIdText } from "./item-id.ts";
import type { LateReport } from "./item.ts";
import type { ReturnedRecord } from "./ledger-records.ts";
import { doneRecord, itemIndexRecord, itemRecord, returnedRecord } from "./ledger-records.ts";
import type { Place } from "./place.ts";

export type Finding =
  | {
      readonly kind: "pending";
      readonly place: Place;
      readonly budgets: ReturnedRecord;
      readonly checksum: number;
    }
  | { readonly kind: "done"; readonly place: Place; readonly digest: Uint8Array }
  /** Unknown, keyed, never given out, with somebody, waiting or failed: a late result is of no use. */
  | { readonly kind: "other" };

/** Throws store_corrupt, naming the key. */
export async function examineReport(store: Store, { id }: LateReport): Promise<Finding> {
  const index = await read(store, `${ITEM_INDEX_PREFIX}${itemIdText(id)}`, itemIndexRecord);
  if (index === undefined) return { kind: "other" };
  const { place } = index.value;
  const done = await read(store, `${DONE_PREFIX}${place}`, doneRecord);
  if (done !== undefined) return { kind: "done", place, digest: done.value.digest };
  const returned = await read(store, `${RETURNED_PREFIX}${place}`, returnedRecord);
  const item = await read(store, `${ITEMS_PREFIX}${place}`, itemRecord);
  // Items of one key run in order, with a state that is committed with each result: one out of turn would not fit.
  if (returned === undefined || item?.value.key !== "") return { kind: "other" };
  return { kind: "pending", place, budgets: returned.value, checksum: returned.checksum };
}

async function read<T>(
  store: Store,
  key: string,
  type: RecordType<T>,
): Promise<{ readonly value: T; readonly checksum: number } | undefined> {
  const bytes = await store.get(key);
  if (bytes === undefined) return undefined;
  const value = okOrFailure(store.location, decodeRecord(type, key, bytes));
  return { value, checksum: recordChecksum(bytes) };
}
