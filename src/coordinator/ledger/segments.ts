// Where the rows of each of the ledger's segments stand, and of which kind they are.
import type { RecordType } from "../../storage/codec.ts";
import {
  DELAYED_PREFIX,
  DONE_PREFIX,
  FAILED_PREFIX,
  ITEMS_PREFIX,
  RETURNED_PREFIX,
  RUNNING_PREFIX,
} from "../../storage/keys.ts";
import {
  delayedRecord,
  doneRecord,
  failedRecord,
  itemRecord,
  returnedRecord,
  runningRecord,
} from "./records.ts";
import type { SegmentName } from "./tally.ts";

/** `returned` has those that run alone under the same prefix. */
export const SEGMENT_ROWS: Readonly<
  Record<SegmentName, { readonly prefix: string; readonly record: RecordType<unknown> }>
> = {
  items: { prefix: ITEMS_PREFIX, record: itemRecord },
  returned: { prefix: RETURNED_PREFIX, record: returnedRecord },
  delayed: { prefix: DELAYED_PREFIX, record: delayedRecord },
  running: { prefix: RUNNING_PREFIX, record: runningRecord },
  done: { prefix: DONE_PREFIX, record: doneRecord },
  failed: { prefix: FAILED_PREFIX, record: failedRecord },
};
