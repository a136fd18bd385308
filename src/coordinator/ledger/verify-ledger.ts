// The ledger's numbers, compared with its rows: at completion, and before an export says that it is whole. Walks over every
// item, so it is done where a walk is worth it and not on each start.
import type { Damage } from "../../storage/codec.ts";
import { findDamage, recordChecksum } from "../../storage/codec.ts";
import type { RecordType } from "../../storage/codec.ts";
import {
  DELAYED_PREFIX,
  DONE_PREFIX,
  FAILED_PREFIX,
  ITEMS_PREFIX,
  LEDGER_KEY,
  RETURNED_PREFIX,
  RUNNING_PREFIX,
} from "../../storage/keys.ts";
import { pagesUnder } from "../../storage/pages.ts";
import type { Store } from "../../storage/store.ts";
import {
  delayedRecord,
  doneRecord,
  failedRecord,
  itemRecord,
  returnedRecord,
  runningRecord,
} from "./ledger-records.ts";
import type { LedgerNumbers, SegmentName } from "./tally.ts";
import { addToSum, SEGMENTS, Tally } from "./tally.ts";

const PAGE = 1_000;

const ROWS: Readonly<Record<SegmentName, { readonly prefix: string; readonly record: RecordType<unknown> }>> =
  {
    items: { prefix: ITEMS_PREFIX, record: itemRecord },
    returned: { prefix: RETURNED_PREFIX, record: returnedRecord },
    delayed: { prefix: DELAYED_PREFIX, record: delayedRecord },
    running: { prefix: RUNNING_PREFIX, record: runningRecord },
    done: { prefix: DONE_PREFIX, record: doneRecord },
    failed: { prefix: FAILED_PREFIX, record: failedRecord },
  };

/** The first thing that is wrong; undefined when every row is whole and all are there. The rows must not change meanwhile. */
export async function verifyLedger(store: Store, numbers: LedgerNumbers): Promise<Damage | undefined> {
  const tally = new Tally(numbers);
  for (const segment of SEGMENTS) {
    const { prefix, record } = ROWS[segment];
    let [count, sum] = [0, 0];
    for await (const page of pagesUnder(store, prefix, PAGE)) {
      for (const { key, value } of page) {
        const damage = findDamage(record, key, value);
        if (damage !== undefined) return damage;
        sum = addToSum(sum, recordChecksum(value));
      }
      count += page.length;
    }
    if (tally.matches(segment, count, sum)) continue;
    const reason = `${tally.count(segment)} rows were counted under ${prefix}, and other ones are there (${count})`;
    return { kind: "corrupt", key: LEDGER_KEY, reason };
  }
  return undefined;
}
