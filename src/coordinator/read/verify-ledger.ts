// The ledger's numbers, compared with its rows: at completion, and before an export says that it is whole. Walks over every
// item at once, so it is done where nothing changes any more; while items move, scrub.ts does the same a little at a time.
import type { Damage } from "../../storage/codec.ts";
import { findDamage, recordChecksum } from "../../storage/codec.ts";
import { LEDGER_KEY } from "../../storage/keys.ts";
import { pagesUnder } from "../../storage/pages.ts";
import type { Store } from "../../storage/store.ts";
import { SEGMENT_ROWS } from "../ledger/segments.ts";
import type { LedgerNumbers, SegmentName } from "../ledger/tally.ts";
import { addToSum, SEGMENTS, Tally } from "../ledger/tally.ts";

/** Rows that are read at once, and their bytes: they may have 16 MiB each. */
const PAGE = 1_000;
const PAGE_BYTES = 4 * 2 ** 20;

/** The first thing that is wrong; undefined when every row is whole and all are there. The rows must not change meanwhile. */
export async function verifyLedger(store: Store, numbers: LedgerNumbers): Promise<Damage | undefined> {
  const tally = new Tally(numbers);
  for (const segment of SEGMENTS) {
    const { prefix, record } = SEGMENT_ROWS[segment];
    let [count, sum] = [0, 0];
    for await (const page of pagesUnder(store, prefix, PAGE, PAGE_BYTES)) {
      for (const { key, value } of page) {
        const damage = findDamage(record, key, value);
        if (damage !== undefined) return damage;
        sum = addToSum(sum, recordChecksum(value));
      }
      count += page.length;
    }
    const damage = disagreement(tally, segment, { count, sum });
    if (damage !== undefined) return damage;
  }
  return undefined;
}

/** What a walk over all rows of a segment has found, if it is not what was counted. */
export function disagreement(
  tally: Tally,
  segment: SegmentName,
  { count, sum }: { readonly count: number; readonly sum: number },
): Damage | undefined {
  if (tally.matches(segment, count, sum)) return undefined;
  const { prefix } = SEGMENT_ROWS[segment];
  const reason = `${tally.count(segment)} rows were counted under ${prefix}, and other ones are there (${count})`;
  return { kind: "corrupt", key: LEDGER_KEY, reason };
}
