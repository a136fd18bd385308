// Items that nobody has, looked up in the store for the reactor, which remembers only those in flight: where they stand, and what
// a claim of a worker or a late result may change of them.
import { recordChecksum } from "../../storage/codec.ts";
import type { RecordType } from "../../storage/codec.ts";
import {
  DELAYED_PREFIX,
  DONE_PREFIX,
  DUE_PREFIX,
  FAILED_PREFIX,
  ITEM_INDEX_PREFIX,
  ITEMS_PREFIX,
  RETURNED_ALONE_PREFIX,
  RETURNED_KEYED_PREFIX,
  RETURNED_PREFIX,
} from "../../storage/keys.ts";
import { recordOf } from "../../storage/records.ts";
import type { Store } from "../../storage/store.ts";
import { nextKey } from "../../storage/store.ts";
import type { Finding, FoundClaims, FoundReport } from "../ledger/lookups.ts";
import type { Claim } from "../turn/session-frame.ts";
import {
  isKeyed,
  itemIdText,
  conflictKey,
  isPlace,
  placeOf,
  priorityOf,
  sequenceOf,
} from "../ledger/place.ts";
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
import type { Place } from "../ledger/place.ts";

/**
 * So many items of one priority are looked through at most. A loss of power takes the last moments of a leader, so more cannot
 * be missing; an item that is claimed from behind them is executed again.
 */
const LANE_MAX = 16_384;
/** Rows that are read at once: few, because their payloads come with them and may have 16 MiB each. */
const STEP = 16;

/** Throws store_corrupt, naming the key. */
export async function examineClaims(
  store: Store,
  claims: readonly Claim[],
  cursors: ReadonlyMap<number, number>,
): Promise<FoundClaims> {
  const findings: Finding[] = [];
  const last = new Map<number, Place>();
  for (const { id } of claims) {
    const finding = await findItem(store, id);
    findings.push(finding);
    if (finding.kind !== "fresh") continue;
    const priority = priorityOf(finding.place);
    if (
      sequenceOf(finding.place) >= (cursors.get(priority) ?? 0) &&
      finding.place > (last.get(priority) ?? "")
    )
      last.set(priority, finding.place);
  }
  const lanes = new Map<number, readonly Place[]>();
  for (const [priority, place] of last)
    lanes.set(priority, await readLane(store, placeOf(priority, cursors.get(priority) ?? 0), place));
  return { findings, lanes };
}

/** The same of one result. `cursors`: of the priorities of which a leader may have forgotten what it gave out. */
export async function examineReport(
  store: Store,
  late: LateReport,
  cursors: ReadonlyMap<number, number>,
): Promise<FoundReport> {
  const finding = await findReported(store, late);
  if (finding.kind !== "fresh") return { finding, lane: [] };
  const priority = priorityOf(finding.place);
  const cursor = cursors.get(priority);
  if (cursor === undefined || sequenceOf(finding.place) < cursor) return { finding, lane: [] };
  return { finding, lane: await readLane(store, placeOf(priority, cursor), finding.place) };
}

/** Both ends included. */
async function readLane(store: Store, from: Place, last: Place): Promise<Place[]> {
  const places: Place[] = [];
  const to = nextKey(`${ITEMS_PREFIX}${last}`);
  for (let next = `${ITEMS_PREFIX}${from}`; places.length < LANE_MAX;) {
    const page = await store.scan({ from: next, to, limit: STEP });
    places.push(...page.map(({ key }) => key.slice(ITEMS_PREFIX.length)).filter(isPlace));
    const end = page.at(-1);
    if (end === undefined || page.length < STEP) break;
    next = nextKey(end.key);
  }
  return places;
}

/** The item that a late result is about, as far as the result may be used for it. Throws store_corrupt, naming the key. */
async function findReported(store: Store, late: LateReport): Promise<Finding> {
  const finding = await findItem(store, late.id);
  if (finding.kind === "done" && contradicts(late, finding)) {
    const { place } = finding;
    const isEvidence = !(await hasEvidence(store, place)) && (await hasBeen(store, late, finding));
    return { kind: "contradicted", place, isEvidence };
  }
  if (finding.kind !== "returned" && finding.kind !== "delayed") return finding;
  const item = await read(store, `${ITEMS_PREFIX}${finding.place}`, itemRecord);
  // Items of one key run in order, with a state that is committed with each result: one out of turn would not fit.
  return item?.value.key === "" ? finding : { kind: "other" };
}

/** Another version may say something else: its result comes too late, and contradicts nothing. */
function contradicts(
  { end: { result, execution } }: LateReport,
  done: Pick<DoneRecord, "digest" | "pluginVersion">,
): boolean {
  return execution.pluginVersion === done.pluginVersion && Buffer.compare(done.digest, result.digest) !== 0;
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
async function findItem(store: Store, id: Uint8Array): Promise<Finding> {
  const index = await read(store, `${ITEM_INDEX_PREFIX}${itemIdText(id)}`, itemIndexRecord);
  if (index === undefined) return { kind: "other" };
  const { place } = index.value;
  const done = await read(store, `${DONE_PREFIX}${place}`, doneRecord);
  if (done !== undefined) {
    const { digest, attempt, worker, pluginVersion } = done.value;
    return { kind: "done", place, digest, attempt, worker, pluginVersion };
  }
  // Assignments of keys are never forgotten: an attempt that is not current was given up, and its state would not fit.
  if (isKeyed(place)) return { kind: "other" };
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
  if (isKeyed(place)) return read(store, `${RETURNED_KEYED_PREFIX}${place}`, returnedRecord);
  return (
    (await read(store, `${RETURNED_PREFIX}${place}`, returnedRecord)) ??
    (await read(store, `${RETURNED_ALONE_PREFIX}${place}`, returnedRecord))
  );
}

/** Where that row stands. */
export async function findReturnedKey(store: Store, place: Place): Promise<string | undefined> {
  for (const prefix of [RETURNED_PREFIX, RETURNED_ALONE_PREFIX, RETURNED_KEYED_PREFIX])
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
  return { value: recordOf(store, { key, value: bytes }, type), checksum: recordChecksum(bytes) };
}
