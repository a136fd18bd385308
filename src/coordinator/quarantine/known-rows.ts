// Which record stands under which key of a coordinator's store, for those who look at every row there is.
import type { Damage, RecordType } from "../../storage/codec.ts";
import { decodeRecord } from "../../storage/codec.ts";
import {
  ATTEMPT_LOGS_PREFIX,
  ATTEMPTS_PREFIX,
  CHECKPOINTS_PREFIX,
  COMPLETIONS_PREFIX,
  CONFLICTS_PREFIX,
  DUE_PREFIX,
  ENROLLED_PREFIX,
  EPOCH_STARTS_KEY,
  HEARTBEATS_PREFIX,
  ITEM_INDEX_PREFIX,
  LEDGER_KEY,
  QUARANTINE_PREFIX,
  REVOCATIONS_KEY,
  RUN_KEY,
  SUBMISSIONS_PREFIX,
  WORKERS_PREFIX,
} from "../../storage/keys.ts";
import { enrolledRecord, revocationsRecord } from "../workers/enrolment-record.ts";
import { attemptLogRecord, attemptRecord, checkpointRecord } from "../ledger/attempt-records.ts";
import { completionsRecord } from "../ledger/completions.ts";
import { epochStartsRecord } from "../ledger/epoch-starts.ts";
import { conflictRecord, dueRecord, itemIndexRecord } from "../ledger/records.ts";
import { ledgerRecord, SEGMENT_ROWS, SEGMENTS } from "../ledger/tally.ts";
import type { SegmentName } from "../ledger/tally.ts";
import { runRecord } from "../run/run.ts";
import { submissionRecord } from "../run/submission.ts";
import { beatRecord, workerRecord } from "../workers/worker-record.ts";
import { quarantineRecord } from "../ledger/quarantine-record.ts";

/** Rows under prefixes, in the order in which they are looked at. */
export const ROWS_UNDER: readonly { readonly prefix: string; readonly record: RecordType<unknown> }[] = [
  ...SEGMENTS.map((segment) => SEGMENT_ROWS[segment]),
  { prefix: ITEM_INDEX_PREFIX, record: itemIndexRecord },
  { prefix: DUE_PREFIX, record: dueRecord },
  { prefix: COMPLETIONS_PREFIX, record: completionsRecord },
  { prefix: WORKERS_PREFIX, record: workerRecord },
  { prefix: HEARTBEATS_PREFIX, record: beatRecord },
  { prefix: SUBMISSIONS_PREFIX, record: submissionRecord },
  { prefix: ATTEMPTS_PREFIX, record: attemptRecord },
  { prefix: ATTEMPT_LOGS_PREFIX, record: attemptLogRecord },
  { prefix: CHECKPOINTS_PREFIX, record: checkpointRecord },
  { prefix: CONFLICTS_PREFIX, record: conflictRecord },
  { prefix: ENROLLED_PREFIX, record: enrolledRecord },
  { prefix: QUARANTINE_PREFIX, record: quarantineRecord },
];

export const SINGLE_ROWS: readonly { readonly key: string; readonly record: RecordType<unknown> }[] = [
  { key: LEDGER_KEY, record: ledgerRecord },
  { key: RUN_KEY, record: runRecord },
  { key: EPOCH_STARTS_KEY, record: epochStartsRecord },
  { key: REVOCATIONS_KEY, record: revocationsRecord },
];

/** The kind of record that belongs under the key; undefined for any other key. */
export function recordUnder(key: string): RecordType<unknown> | undefined {
  const single = SINGLE_ROWS.find((row) => row.key === key);
  return (single ?? ROWS_UNDER.find(({ prefix }) => key.startsWith(prefix)))?.record;
}

/** The segment of the ledger that counts the row. */
export function segmentOf(key: string): SegmentName | undefined {
  return SEGMENTS.find((segment) => key.startsWith(SEGMENT_ROWS[segment].prefix));
}

/** The row cannot be read, though its checksum may be right. */
export function damageOf(record: RecordType<unknown>, key: string, bytes: Uint8Array): Damage | undefined {
  const decoded = decodeRecord(record, key, bytes);
  return decoded.kind === "ok" ? undefined : decoded;
}
