// A part of one segment, read for the scrub: which rows are there, and whether each is whole.
import type { Damage } from "../../storage/codec.ts";
import { findDamage, recordChecksum } from "../../storage/codec.ts";
import type { Entry, Store } from "../../storage/store.ts";
import { nextKey, prefixRange } from "../../storage/store.ts";
import { SEGMENT_ROWS } from "../ledger/segments.ts";
import type { SegmentName } from "../ledger/tally.ts";

export interface ScrubRequest {
  readonly segment: SegmentName;
  /** Read from here, this key included. */
  readonly from: string;
  /** Rows, at most. */
  readonly limit: number;
}

export interface ScrubbedPage {
  readonly segment: SegmentName;
  /** In order of key. */
  readonly rows: readonly { readonly key: string; readonly checksum: number }[];
  /** Where to go on; null when this was the end of the segment. */
  readonly next: string | null;
  /** The first row that is not whole; what comes behind it was not looked at. */
  readonly damage: Damage | undefined;
}

/** What is wrong around rows that are whole, if anything is. */
export type FindMore = (
  store: Store,
  segment: SegmentName,
  entries: readonly Entry[],
) => Promise<Damage | undefined>;

/** Rows that are read at once: they may have 16 MiB each, and are in memory together. */
const STEP_MAX = 16;
const FIRST_STEP = 4;
/** Bytes after which a page ends before its limit. */
const BYTES_MAX = 8 * 2 ** 20;

/** In steps that grow while rows are light. */
export async function readScrubPage(
  store: Store,
  { segment, from, limit }: ScrubRequest,
  findMore?: FindMore,
): Promise<ScrubbedPage> {
  const { prefix, record } = SEGMENT_ROWS[segment];
  const { to } = prefixRange(prefix);
  const rows: { key: string; checksum: number }[] = [];
  let [bytes, heaviest, fitting] = [0, 1, FIRST_STEP];
  for (let next = from; ;) {
    const step = Math.min(STEP_MAX, fitting, limit - rows.length);
    const entries = await store.scan({ from: next, to, limit: step });
    for (const { key, value } of entries) {
      const damage = findDamage(record, key, value);
      if (damage !== undefined) return { segment, rows, next: null, damage };
      rows.push({ key, checksum: recordChecksum(value) });
      bytes += value.length;
      heaviest = Math.max(heaviest, value.length);
    }
    const damage = await findMore?.(store, segment, entries);
    if (damage !== undefined) return { segment, rows, next: null, damage };
    const last = entries.at(-1);
    if (last === undefined || entries.length < step) return { segment, rows, next: null, damage: undefined };
    next = nextKey(last.key);
    if (rows.length >= limit || bytes >= BYTES_MAX) return { segment, rows, next, damage: undefined };
    fitting = Math.max(1, Math.min(4 * step, Math.floor((BYTES_MAX - bytes) / heaviest)));
  }
}
