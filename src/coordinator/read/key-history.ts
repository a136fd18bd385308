// The items of one key that have succeeded, the last one first: each result names the one before it, so that so many are read as are
// asked for, however many the run has.
import type { Store } from "../../storage/store.ts";
import { corrupt } from "../../storage/records.ts";
import { DONE_PREFIX } from "../../storage/keys.ts";
import { isKeyed } from "../ledger/place.ts";
import type { Place } from "../ledger/place.ts";
import type { FinalItem } from "./stored-items.ts";
import { seeItemAt } from "./stored-items.ts";

export interface HistoryPage {
  readonly items: readonly FinalItem[];
  /** The place at which another reading goes on; undefined when nothing follows. */
  readonly next: Place | undefined;
}

/** Ends behind the item with which the page has so many bytes. Nothing of a place that is none of the key's. Throws store_corrupt. */
export async function readHistory(
  store: Store,
  key: string,
  page: { readonly from: Place | undefined; readonly limit: number; readonly bytes: number },
): Promise<HistoryPage> {
  const items: FinalItem[] = [];
  let bytes = 0;
  let next = page.from;
  while (next !== undefined && items.length < page.limit && bytes < page.bytes) {
    const seen: Awaited<ReturnType<typeof seeItemAt>> = isKeyed(next)
      ? await seeItemAt(store, next)
      : undefined;
    const { item, final } = seen ?? {};
    if (seen === undefined || item?.key !== key || final?.kind !== "done") {
      if (items.length === 0) return { items, next: undefined };
      return corrupt(store, `${DONE_PREFIX}${next}`, "the item before another one of its key is missing");
    }
    items.push({ ...seen, final });
    bytes += item.payload.length + final.record.output.length;
    next = final.record.previous;
  }
  return { items, next };
}
