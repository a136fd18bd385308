// Where an item stands that nobody has, read from the store: the reactor remembers only what is in flight.
import { decodeRecord, okOrFailure, recordChecksum } from "../../storage/codec.ts";
import type { RecordType } from "../../storage/codec.ts";
import {
  DELAYED_PREFIX,
  DONE_PREFIX,
  DUE_PREFIX,
  FAILED_PREFIX,
  ITEM_INDEX_PREFIX,
  ITEMS_PREFIX,
  RETURNED_ALONE_PREFIX,
  RETURNED_PREFIX,
} from "../../storage/keys.ts";
import type { Store } from "../../storage/store.ts";
import { itemIdText } from "../ledger/item-id.ts";
import type { LateReport } from "../ledger/ledger.ts";
import { attemptRecord, attemptsOf, slotOf } from "../ledger/attempt-records.ts";
import type { DoneRecord, ReturnedRecord } from "../ledger/records.ts";
import {
  delayedRecord,
  doneRecord,
  dueRecord,
  itemIndexRecord,
  itemRecord,
  returnedRecord,
} from "../ledger/records.ts";
import { conflictKey } from "../ledger/place.ts";
import type { Place } from "../ledger/place.ts";

interface Waiting {
  readonly place: Place;
  readonly budgets: ReturnedRecord;
  /** Of the row that says so. */
  readonly checksum: number;
}

export type Finding =
  | ({ readonly kind: "returned" } & Waiting)
  | ({ readonly kind: "delayed"; readonly delayed: string } & Waiting)
  /** No row says where it is: it was never given out, or somebody has it. */
  | { readonly kind: "fresh"; readonly place: Place }
  | ({ readonly kind: "done"; readonly place: Place } & Pick<DoneRecord, "digest" | "attempt" | "worker">)
  /** The same, and what was reported contradicts it. */
  | { readonly kind: "contradicted"; readonly place: Place; readonly isEvidence: boolean }
  /** Unknown or failed, or it cannot be used out of turn. */
  | { readonly kind: "other" };

/** Where the item was found. */
export function placeIn(finding: Finding | undefined): Place | undefined {
  return finding === undefined || finding.kind === "other" ? undefined : finding.place;
}

/** What a late result may be used for. Throws store_corrupt, naming the key. */
export async function findReported(store: Store, late: LateReport): Promise<Finding> {
  const finding = await findItem(store, late.id);
  if (finding.kind === "done" && Buffer.compare(finding.digest, late.success.digest) !== 0) {
    const { place } = finding;
    const isEvidence = !(await hasEvidence(store, place)) && (await hasBeen(store, late, finding));
    return { kind: "contradicted", place, isEvidence };
  }
  if (finding.kind !== "returned" && finding.kind !== "delayed") return finding;
  const item = await read(store, `${ITEMS_PREFIX}${finding.place}`, itemRecord);
  // Items of one key run in order, with a state that is committed with each result: one out of turn would not fit.
  return item?.value.key === "" ? finding : { kind: "other" };
}

/** One contradiction of an item is kept, whichever came first. */
async function hasEvidence(store: Store, place: Place): Promise<boolean> {
  // Before there was one to an item, they stood under their attempts.
  const range = { from: conflictKey(place), to: `${conflictKey(place)}0`, limit: 1 };
  return (await store.scan(range)).length > 0;
}

/** Whether the worker is known to have had the item under this attempt: as the one that it is done by, or by its trail. */
async function hasBeen(
  store: Store,
  { attempt, worker }: LateReport,
  done: Pick<DoneRecord, "attempt" | "worker"> & { readonly place: Place },
): Promise<boolean> {
  if (attempt === done.attempt) return worker === done.worker;
  const ended = await read(store, `${attemptsOf(done.place)}${slotOf(attempt)}`, attemptRecord);
  return ended?.value.attempt === attempt && ended.value.worker === worker;
}

/** Throws store_corrupt, naming the key. */
export async function findItem(store: Store, id: Uint8Array): Promise<Finding> {
  const index = await read(store, `${ITEM_INDEX_PREFIX}${itemIdText(id)}`, itemIndexRecord);
  if (index === undefined) return { kind: "other" };
  const { place } = index.value;
  const done = await read(store, `${DONE_PREFIX}${place}`, doneRecord);
  if (done !== undefined) {
    const { digest, attempt, worker } = done.value;
    return { kind: "done", place, digest, attempt, worker };
  }
  const returned = await findReturned(store, place);
  if (returned !== undefined)
    return { kind: "returned", place, budgets: returned.value, checksum: returned.checksum };
  const delayed = await findDelayed(store, place);
  if (delayed !== undefined) return delayed;
  const failed = await store.get(`${FAILED_PREFIX}${place}`);
  return failed === undefined ? { kind: "fresh", place } : { kind: "other" };
}

/** The row of an item that may be given out again. */
export async function findReturned(
  store: Store,
  place: Place,
): Promise<{ readonly value: ReturnedRecord; readonly checksum: number } | undefined> {
  return (
    (await read(store, `${RETURNED_PREFIX}${place}`, returnedRecord)) ??
    (await read(store, `${RETURNED_ALONE_PREFIX}${place}`, returnedRecord))
  );
}

/** Where that row stands. */
export async function findReturnedKey(store: Store, place: Place): Promise<string | undefined> {
  for (const prefix of [RETURNED_PREFIX, RETURNED_ALONE_PREFIX])
    if ((await store.get(`${prefix}${place}`)) !== undefined) return `${prefix}${place}`;
  return undefined;
}

/** The row of an item that waits, which stands under its time. */
export async function findDelayed(
  store: Store,
  place: Place,
): Promise<Extract<Finding, { kind: "delayed" }> | undefined> {
  const due = await read(store, `${DUE_PREFIX}${place}`, dueRecord);
  const row = due && (await read(store, `${DELAYED_PREFIX}${due.value}`, delayedRecord));
  return row && { kind: "delayed", place, delayed: due.value, budgets: row.value, checksum: row.checksum };
}

async function read<T>(
  store: Store,
  key: string,
  type: RecordType<T>,
): Promise<{ readonly value: T; readonly checksum: number } | undefined> {
  const bytes = await store.get(key);
  if (bytes === undefined) return undefined;
  const value = okOrFailure(store.location, decodeRecord(type, key, bytes));
  return { value, checksum: recordChecksum(bytes) };
}
