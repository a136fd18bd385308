// Windows filled from the store: what each is to be given next, read outside the reactor and handed back to it as an input.
import { failure } from "../../base/errors.ts";
import { decodeRecord, okOrFailure, recordChecksum } from "../../storage/codec.ts";
import { DELAYED_PREFIX, ITEMS_PREFIX, RETURNED_PREFIX } from "../../storage/keys.ts";
import type { Entry, Store } from "../../storage/store.ts";
import { nextKey, prefixRange } from "../../storage/store.ts";
import { delayedRecord, itemRecord, returnedRecord } from "./ledger-records.ts";
import type { DelayedItem, Ledger, PendingItem } from "./item.ts";
import { isPlace, laneEnd, sequenceOf } from "./place.ts";
import type { LoadedWindow, WindowLoad, WindowName } from "./window-load.ts";
import type { LoadRequest } from "./window.ts";

/** Memory of an item in a window beside its payload. */
const ITEM_WEIGHT = 200;
/** Rows that are read at once. */
const STEP = 128;

/** What to read now. Each window asks once until it is answered. */
export function wantedLoads(ledger: Ledger): WindowLoad[] {
  const loads: WindowLoad[] = [];
  const ask = (window: WindowName, request: LoadRequest | undefined): void => {
    if (request !== undefined) loads.push({ window, ...request });
  };
  ask("returned", ledger.returned.wants());
  ask("delayed", ledger.delayed.wants());
  for (const [priority, window] of ledger.fresh) ask({ priority }, window.wants());
  return loads;
}

/** Puts what was read into its window. */
export function applyLoad({ delayed, returned, fresh, tally }: Ledger, loaded: LoadedWindow): void {
  switch (loaded.window) {
    case "delayed":
      return delayed.load(loaded.entries, loaded.hasMore);
    case "returned":
      return returned.load(loaded.entries, loaded.hasMore);
    default: {
      const { priority } = loaded.window;
      // The row of an item stays when it is given out, so a scan finds it again: the cursor is what says that it is gone.
      const cursor = tally.cursors.get(priority) ?? 0;
      const waiting = loaded.entries.filter(({ key }) => sequenceOf(key) >= cursor);
      fresh.get(priority)?.load(waiting, loaded.hasMore);
    }
  }
}

/** Throws store_corrupt, naming the key: the coordinator does not go on over damage. */
export async function loadWindow(store: Store, load: WindowLoad): Promise<LoadedWindow> {
  const { window } = load;
  switch (window) {
    case "delayed": {
      const range = { prefix: DELAYED_PREFIX, to: prefixRange(DELAYED_PREFIX).to };
      const read = async (entry: Entry): Promise<DelayedItem> => readDelayed(store, entry);
      return { window, ...(await readPage(store, range, load, read)) };
    }
    case "returned": {
      const range = { prefix: RETURNED_PREFIX, to: prefixRange(RETURNED_PREFIX).to };
      const read = (entry: Entry): Promise<PendingItem> => readReturned(store, entry);
      return { window, ...(await readPage(store, range, load, read)) };
    }
    default: {
      const range = { prefix: ITEMS_PREFIX, to: `${ITEMS_PREFIX}${laneEnd(window.priority)}` };
      const read = async (entry: Entry): Promise<PendingItem> => pendingFrom(store, entry, null);
      return { window, ...(await readPage(store, range, load, read)) };
    }
  }
}

/** In steps, so that items of a megabyte do not come by the thousand. */
async function readPage<Item extends { readonly weight: number }>(
  store: Store,
  { prefix, to }: { readonly prefix: string; readonly to: string },
  { from, limit, weightMax }: LoadRequest,
  read: (entry: Entry) => Promise<Item>,
): Promise<{ entries: Item[]; hasMore: string | null }> {
  const entries: Item[] = [];
  let weight = 0;
  for (let next = `${prefix}${from}`; ;) {
    const step = Math.min(STEP, limit - entries.length);
    const page = await store.scan({ from: next, to, limit: step });
    const items = await Promise.all(page.map(read));
    entries.push(...items);
    for (const item of items) weight += item.weight;
    const last = page.at(-1);
    if (last === undefined || page.length < step) return { entries, hasMore: null };
    next = nextKey(last.key);
    if (entries.length >= limit || weight >= weightMax)
      return { entries, hasMore: next.slice(prefix.length) };
  }
}

function readDelayed(store: Store, { key, value }: Entry): DelayedItem {
  return {
    key: key.slice(DELAYED_PREFIX.length),
    weight: ITEM_WEIGHT,
    budgets: okOrFailure(store.location, decodeRecord(delayedRecord, key, value)),
    checksum: recordChecksum(value),
  };
}

async function readReturned(store: Store, { key, value }: Entry): Promise<PendingItem> {
  const budgets = okOrFailure(store.location, decodeRecord(returnedRecord, key, value));
  const itemKey = `${ITEMS_PREFIX}${key.slice(RETURNED_PREFIX.length)}`;
  const item = await store.get(itemKey);
  if (item === undefined)
    throw failure("store_corrupt", {
      path: store.location,
      key: itemKey,
      reason: "a returned item is missing",
    });
  return pendingFrom(store, { key: itemKey, value: item }, { budgets, checksum: recordChecksum(value) });
}

function pendingFrom(store: Store, { key, value }: Entry, returned: PendingItem["returned"]): PendingItem {
  const { id, payload } = okOrFailure(store.location, decodeRecord(itemRecord, key, value));
  const place = key.slice(ITEMS_PREFIX.length);
  if (!isPlace(place))
    throw failure("store_corrupt", { path: store.location, key, reason: "its key names no place" });
  return { key: place, weight: ITEM_WEIGHT + payload.length, id, payload, returned };
}
