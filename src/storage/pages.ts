// A walk over everything under one prefix, a page in memory at a time. Each page is one consistent view, the walk as a whole is
// not: whoever needs that walks where nobody writes.
import type { Entry, Store } from "./store.ts";
import { nextKey, prefixRange } from "./store.ts";

/**
 * Pages of `limit` entries at most, in ascending order of key; none when there is nothing. `prefix` ends in `/`. With `bytesMax` a page
 * is about as large at most, but for its last entry.
 */
export async function* pagesUnder(
  store: Store,
  prefix: string,
  limit: number,
  bytesMax?: number,
): AsyncGenerator<Entry[], void, undefined> {
  const { from: start, to } = prefixRange(prefix);
  for (let from = start; ;) {
    const page = await store.scan({ from, to, limit, ...(bytesMax !== undefined && { bytesMax }) });
    const last = page.at(-1);
    if (last === undefined) return;
    yield page;
    if (page.length < limit && bytesMax === undefined) return;
    from = nextKey(last.key);
  }
}
