// Records read from a store, and verified as they are read. Damage is thrown as store_corrupt, a record of a newer program as
// store_newer; both name the key.
import type { RecordType } from "./codec.ts";
import { decodeRecord, okOrFailure } from "./codec.ts";
import { pagesUnder } from "./pages.ts";
import type { Entry, Store } from "./store.ts";

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
