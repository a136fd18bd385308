// Where an item stands, by its id: what tells a line that was submitted before from a new one. Written with the item, and never
// taken away, so an item without it would be executed again by the next submission of its line.
import { decodeRecord } from "../../storage/codec.ts";
import type { Damage } from "../../storage/codec.ts";
import { ITEM_INDEX_PREFIX, ITEMS_PREFIX } from "../../storage/keys.ts";
import type { Entry, Store } from "../../storage/store.ts";
import { itemIdText } from "../ledger/item-id.ts";
import { itemIndexRecord, itemRecord } from "../ledger/records.ts";
import type { SegmentName } from "../ledger/tally.ts";

/** The first of these items whose place by its id is missing, damaged or another one. Nothing of other segments. */
export async function findUnindexed(
  store: Store,
  segment: SegmentName,
  entries: readonly Entry[],
): Promise<Damage | undefined> {
  if (segment !== "items") return undefined;
  const keys: string[] = [];
  for (const { key, value } of entries) {
    const item = decodeRecord(itemRecord, key, value);
    if (item.kind !== "ok") return item;
    keys.push(`${ITEM_INDEX_PREFIX}${itemIdText(item.value.id)}`);
  }
  const values = await store.getMany(keys);
  for (const [at, key] of keys.entries()) {
    const damage = damageOf(key, values[at], entries[at]?.key.slice(ITEMS_PREFIX.length));
    if (damage !== undefined) return damage;
  }
  return undefined;
}

function damageOf(key: string, value: Uint8Array | undefined, place: string | undefined): Damage | undefined {
  if (value === undefined)
    return { kind: "corrupt", key, reason: `the item at ${place} is not found by its id` };
  const index = decodeRecord(itemIndexRecord, key, value);
  if (index.kind !== "ok") return index;
  if (index.value.place === place) return undefined;
  return { kind: "corrupt", key, reason: `it names ${index.value.place}, and the item is at ${place}` };
}
