// Every row of a coordinator's store that nobody writes to, looked at: which record stands under which key, which rows cannot be
// read, and whether the others are counted. Constant memory, but for the damages, of which the first ones are enough.
import type { Damage, RecordType } from "../../storage/codec.ts";
import { decodeRecord } from "../../storage/codec.ts";
import {
  ALLOCATIONS_PREFIX,
  ASSIGNMENT_KEY,
  ATTEMPT_LOGS_PREFIX,
  ATTEMPTS_PREFIX,
  AUTHORITY_KEY,
  CHECKPOINTS_PREFIX,
  COMPLETIONS_PREFIX,
  CONFLICTS_PREFIX,
  DUE_PREFIX,
  ENROLLED_PREFIX,
  EPOCH_STARTS_KEY,
  FLEETS_PREFIX,
  HEARTBEATS_PREFIX,
  ITEM_INDEX_PREFIX,
  KEY_NUMBERS_KEY,
  LEDGER_KEY,
  PARTITIONS_PREFIX,
  QUARANTINE_PREFIX,
  RELEASES_KEY,
  RELEASES_PREFIX,
  REVOCATIONS_KEY,
  RUN_KEY,
  SUBMISSIONS_PREFIX,
  WORKERS_PREFIX,
} from "../../storage/keys.ts";
import { pagesUnder } from "../../storage/records.ts";
import { verifySegment } from "../../storage/segment-count.ts";
import type { Store } from "../../storage/store.ts";
import { authorityRecord } from "../lead/authority-record.ts";
import { assignmentRecord } from "../keys/assignment.ts";
import { allocationRecord, fleetRecord } from "../fleet/records.ts";
import { KEY_SEGMENT_ROWS, KEY_SEGMENTS, keyNumbersRecord } from "../keys/key-records.ts";
import { partitionRecord } from "../keys/partition-record.ts";
import { verifyLedger } from "../read/verify-ledger.ts";
import { recordOfReleaseRow, releasesRecord } from "../release/records.ts";
import { enrolledRecord, revocationsRecord } from "../workers/enrolment.ts";
import { attemptLogRecord, attemptRecord, checkpointRecord } from "../ledger/attempt-records.ts";
import { completionsRecord } from "../ledger/completions.ts";
import { epochStartsRecord } from "../ledger/epoch-starts.ts";
import { conflictRecord, dueRecord, itemIndexRecord } from "../ledger/records.ts";
import { ledgerRecord, SEGMENT_ROWS, SEGMENTS } from "../ledger/tally.ts";
import type { SegmentName } from "../ledger/tally.ts";
import { runRecord } from "../run/run.ts";
import { submissionRecord } from "../run/submission.ts";
import { beatRecord, workerRecord, workersSegment } from "../workers/worker-record.ts";
import { quarantineRecord } from "../ledger/quarantine-record.ts";

const PAGE = 1_000;
const PAGE_BYTES = 4 * 2 ** 20;
/** More say nothing new, and each is set aside by a command of its own. */
const DAMAGES_MAX = 1_000;

/** Rows under prefixes, in the order in which they are looked at. */
const ROWS_UNDER: readonly { readonly prefix: string; readonly record: RecordType<unknown> }[] = [
  ...SEGMENTS.map((segment) => SEGMENT_ROWS[segment]),
  ...KEY_SEGMENTS.map((segment) => KEY_SEGMENT_ROWS[segment]),
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
  { prefix: PARTITIONS_PREFIX, record: partitionRecord },
  { prefix: ENROLLED_PREFIX, record: enrolledRecord },
  { prefix: FLEETS_PREFIX, record: fleetRecord },
  { prefix: ALLOCATIONS_PREFIX, record: allocationRecord },
  { prefix: QUARANTINE_PREFIX, record: quarantineRecord },
];

const SINGLE_ROWS: readonly { readonly key: string; readonly record: RecordType<unknown> }[] = [
  { key: LEDGER_KEY, record: ledgerRecord },
  { key: KEY_NUMBERS_KEY, record: keyNumbersRecord },
  { key: ASSIGNMENT_KEY, record: assignmentRecord },
  { key: RUN_KEY, record: runRecord },
  { key: EPOCH_STARTS_KEY, record: epochStartsRecord },
  { key: REVOCATIONS_KEY, record: revocationsRecord },
  { key: AUTHORITY_KEY, record: authorityRecord },
  { key: RELEASES_KEY, record: releasesRecord },
];

/** The kind of record that belongs under the key; undefined for any other key. */
export function recordUnder(key: string): RecordType<unknown> | undefined {
  if (key.startsWith(RELEASES_PREFIX)) return recordOfReleaseRow(key);
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

/** In order of prefix; when every row is whole, what is wrong with their numbers. Empty: nothing is. */
export async function findDamages(store: Store): Promise<readonly Damage[]> {
  const damages: Damage[] = [];
  for (const { key, record } of SINGLE_ROWS) {
    const bytes = await store.get(key);
    const damage = bytes && damageOf(record, key, bytes);
    if (damage !== undefined) damages.push(damage);
  }
  for (const { prefix, record } of ROWS_UNDER)
    for await (const page of pagesUnder(store, prefix, PAGE, PAGE_BYTES))
      for (const { key, value } of page) {
        const damage = damageOf(record, key, value);
        if (damage !== undefined) damages.push(damage);
        if (damages.length >= DAMAGES_MAX) return damages;
      }
  for await (const page of pagesUnder(store, RELEASES_PREFIX, PAGE))
    for (const { key, value } of page) {
      const damage = damageOf(recordOfReleaseRow(key), key, value);
      if (damage !== undefined) damages.push(damage);
    }
  return damages.length > 0 ? damages : findMiscounts(store);
}

async function findMiscounts(store: Store): Promise<readonly Damage[]> {
  const workers = await verifySegment(store, workersSegment);
  if (workers.kind !== "ok") return [workers];
  const bytes = await store.get(LEDGER_KEY);
  const numbers = bytes && decodeRecord(ledgerRecord, LEDGER_KEY, bytes);
  const keyBytes = await store.get(KEY_NUMBERS_KEY);
  const keyNumbers = keyBytes && decodeRecord(keyNumbersRecord, KEY_NUMBERS_KEY, keyBytes);
  const ofKeys = keyNumbers?.kind === "ok" ? keyNumbers.value : undefined;
  const damage = numbers?.kind === "ok" ? await verifyLedger(store, numbers.value, ofKeys) : undefined;
  return damage === undefined ? [] : [damage];
}
