// Pending items, read from the store for a window of the ledger that runs low.
import { recordChecksum } from "../../storage/codec.ts";
import { DELAYED_PREFIX, ITEMS_PREFIX, RETURNED_ALONE_PREFIX, RETURNED_PREFIX } from "../../storage/keys.ts";
import { corrupt, readRecord, recordOf } from "../../storage/records.ts";
import { laneEnd, placeOfKey, PLACES_END } from "../ledger/place.ts";
import type { Entry, Store } from "../../storage/store.ts";
import { ITEM_WEIGHT, pendingItem } from "../ledger/queue.ts";
import { nextKey, prefixRange } from "../../storage/store.ts";
import { delayedRecord, itemRecord, returnedRecord } from "../ledger/records.ts";
import type { DelayedItem, PendingItem } from "../ledger/ledger.ts";
import { checkpointKey, checkpointRecord } from "../ledger/attempt-records.ts";
import type { LoadedWindow, WindowLoad } from "../ledger/window-loads.ts";
import type { LoadRequest } from "../ledger/window.ts";

/** Rows that are read at once: first, and at most. */
const FIRST_STEP = 4;
const STEP_MAX = 128;

/** Throws store_corrupt, naming the key: the coordinator does not go on over damage. */
export async function loadWindow(store: Store, load: WindowLoad): Promise<LoadedWindow> {
  const { window } = load;
  const page = <Item extends Weighty>(
    prefix: string,
    read: Read<Item>,
    to = prefixRange(prefix).to,
  ): Promise<Page<Item>> => readPage(store, { prefix, to }, load, read);
  switch (window) {
    case "delayed":
      return { window, ...(await page(DELAYED_PREFIX, readDelayed)) };
    case "returned":
      return { window, ...(await page(RETURNED_PREFIX, readReturned, `${RETURNED_PREFIX}${PLACES_END}`)) };
    case "alone":
      return { window, ...(await page(RETURNED_ALONE_PREFIX, readReturned)) };
    default: {
      const to = `${ITEMS_PREFIX}${laneEnd(window.priority)}`;
      return { window, ...(await page(ITEMS_PREFIX, (_, entry) => pendingFrom(store, entry, null), to)) };
    }
  }
}

interface Weighty {
  readonly weight: number;
}

/** Reads what stands in a row under `prefix`. */
type Read<Item> = (store: Store, entry: Entry, prefix: string) => Item | Promise<Item>;

interface Page<Item> {
  readonly entries: readonly Item[];
  readonly hasMore: string | null;
}

/** In steps that grow while items are light, so that a few are in memory of those that have 16 MiB each. */
async function readPage<Item extends Weighty>(
  store: Store,
  { prefix, to }: { readonly prefix: string; readonly to: string },
  { from, limit, weightMax }: LoadRequest,
  read: Read<Item>,
): Promise<Page<Item>> {
  const entries: Item[] = [];
  let [weight, heaviest, fitting] = [0, 1, FIRST_STEP];
  for (let next = `${prefix}${from}`; ;) {
    const step = Math.min(STEP_MAX, fitting, limit - entries.length);
    const page = await store.scan({ from: next, to, limit: step });
    const items = await Promise.all(page.map(async (entry) => read(store, entry, prefix)));
    entries.push(...items);
    for (const item of items) {
      weight += item.weight;
      heaviest = Math.max(heaviest, item.weight);
    }
    fitting = Math.max(1, Math.min(4 * step, Math.floor((weightMax - weight) / heaviest)));
    const last = page.at(-1);
    if (last === undefined || page.length < step) return { entries, hasMore: null };
    next = nextKey(last.key);
    if (entries.length >= limit || weight >= weightMax)
      return { entries, hasMore: next.slice(prefix.length) };
  }
}

function readDelayed(store: Store, entry: Entry): DelayedItem {
  return {
    key: entry.key.slice(DELAYED_PREFIX.length),
    weight: ITEM_WEIGHT,
    budgets: recordOf(store, entry, delayedRecord),
    checksum: recordChecksum(entry.value),
  };
}

async function readReturned(store: Store, { key, value }: Entry, prefix: string): Promise<PendingItem> {
  const budgets = recordOf(store, { key, value }, returnedRecord);
  const itemKey = `${ITEMS_PREFIX}${key.slice(prefix.length)}`;
  const item = (await store.get(itemKey)) ?? corrupt(store, itemKey, "a returned item is missing");
  const returned = { budgets, checksum: recordChecksum(value) };
  const pending = pendingFrom(store, { key: itemKey, value: item }, returned);
  const checkpoint = await readRecord(store, checkpointKey(pending.key), checkpointRecord);
  if (checkpoint === undefined) return pending;
  return { ...pending, checkpoint, weight: pending.weight + checkpoint.content.length };
}

function pendingFrom(store: Store, entry: Entry, returned: PendingItem["returned"]): PendingItem {
  const { id, payload } = recordOf(store, entry, itemRecord);
  const place = placeOfKey(store, ITEMS_PREFIX, entry.key);
  return pendingItem(place, { id, payload }, returned);
}
