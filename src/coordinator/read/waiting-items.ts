// The items that wait for a key, from the store alone: its head, also one that has failed and keeps it, and those behind it in order.
import { ITEMS_PREFIX, MAIL_PREFIX } from "../../storage/keys.ts";
import { recordOf } from "../../storage/records.ts";
import type { Store } from "../../storage/store.ts";
import { prefixRange } from "../../storage/store.ts";
import { mailRecord, pathOf } from "../keys/key-records.ts";
import { itemRecord } from "../ledger/records.ts";
import type { ItemRecord } from "../ledger/records.ts";
import type { Place } from "../ledger/place.ts";

export interface WaitingFor {
  readonly text: string;
  readonly partition: number;
  /** Undefined where the first of the mail is the head, or there is none. */
  readonly head: Place | undefined;
}

export interface WaitingItems {
  readonly items: readonly ItemRecord[];
  /** There are more than were asked for, or than there is room for. */
  readonly hasMore: boolean;
}

/** At most so many, and no more than so many bytes of payloads unless the first alone is more. Throws store_corrupt. */
export async function readWaiting(
  store: Store,
  { text, partition, head }: WaitingFor,
  { count, bytes }: { readonly count: number; readonly bytes: number },
): Promise<WaitingItems> {
  const range = prefixRange(`${MAIL_PREFIX}${pathOf(text, partition)}/`);
  const mail = (await store.scan({ ...range, limit: count })).map((row) => recordOf(store, row, mailRecord));
  const places = [...(head === undefined ? [] : [head]), ...mail];
  const keys = places.slice(0, count).map((place) => `${ITEMS_PREFIX}${place}`);
  const values = keys.length === 0 ? [] : await store.getMany(keys);
  const items: ItemRecord[] = [];
  let left = bytes;
  for (const [at, key] of keys.entries()) {
    const value = values[at];
    // It has moved on since the mail was read.
    if (value === undefined) continue;
    const item = recordOf(store, { key, value }, itemRecord);
    left -= item.payload.length;
    if (left < 0 && items.length > 0) return { items, hasMore: true };
    items.push(item);
  }
  return { items, hasMore: places.length > count };
}
