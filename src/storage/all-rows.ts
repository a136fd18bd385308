// Every row of a store, page by page: for whoever takes it as a whole elsewhere.
import { nextKey } from "./store.ts";
import type { Entry, ScanRange, Store } from "./store.ts";

/** All that the port allows as keys. */
export const ALL_KEYS = { from: "!", to: "\u007f" } as const;

/** In order of key; no page is empty. */
export async function* allRows(
  store: Store,
  page: Pick<ScanRange, "limit" | "bytesMax">,
): AsyncGenerator<readonly Entry[], undefined, undefined> {
  for (let { from }: { from: string } = ALL_KEYS; ;) {
    const rows = await store.scan({ from, to: ALL_KEYS.to, ...page });
    const last = rows.at(-1);
    if (last === undefined) return undefined;
    yield rows;
    from = nextKey(last.key);
  }
}
