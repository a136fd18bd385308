// Records read from a store, and verified as they are read. Damage is thrown as store_corrupt, a record of a newer program as
// store_newer; both name the key.
import { failure } from "../base/errors.ts";
import type { RecordType } from "./codec.ts";
import { decodeRecord, okOrFailure } from "./codec.ts";
import { nextKey, prefixRange } from "./store.ts";
import type { Entry, Store } from "./store.ts";

/** For what is damaged beside the records themselves: one is missing, or does not fit the others. */
export function corrupt({ location }: Store, key: string, reason: string): never {
  throw failure("store_corrupt", { path: location, key, reason });
}

export function recordOf<T>({ location }: Store, { key, value }: Entry, type: RecordType<T>): T {
  return okOrFailure(location, decodeRecord(type, key, value));
}

/** The record under a key; undefined when there is none. */
export async function readRecord<T>(store: Store, key: string, type: RecordType<T>): Promise<T | undefined> {
  const value = await store.get(key);
  return value === undefined ? undefined : recordOf(store, { key, value }, type);
}

/** All records under a prefix, in ascending order of key. `page` of them are in memory at once, and about `bytesMax`. */
export async function* recordsUnder<T>(
  store: Store,
  prefix: string,
  type: RecordType<T>,
  page: number,
  bytesMax?: number,
): AsyncGenerator<{ readonly key: string; readonly record: T }, void, undefined> {
  for await (const entries of pagesUnder(store, prefix, page, bytesMax))
    for (const entry of entries) yield { key: entry.key, record: recordOf(store, entry, type) };
}

// A walk over everything under one prefix, a page in memory at a time. Each page is one consistent view, the walk as a whole is
// not: whoever needs that walks where nobody writes.

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
