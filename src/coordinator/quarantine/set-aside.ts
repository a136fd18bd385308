// One row that cannot be read is set aside, because an operator has said so: kept as it is in quarantine, out of the ledger and of its
// numbers. The item that it was about stands in quarantine with it, unless its result is there all the same.
//
// Keeps true: one synced batch does all of it, so that the numbers agree with the rows in every state; nothing that is whole is
// set aside, and nothing that the rest cannot do without.
//
// The room of damage: `known-rows` tells which record stands where and finds those that cannot be read,
// `substitute` makes some again, `set-aside` moves one to quarantine, `damaged-run` serves the rest.
import { decodeRecord, encodeRecord, recordChecksum } from "../../storage/codec.ts";
import {
  DELAYED_PREFIX,
  DONE_PREFIX,
  FAILED_PREFIX,
  ITEMS_PREFIX,
  LEDGER_KEY,
  WORKERS_PREFIX,
} from "../../storage/keys.ts";
import { readRecord, pagesUnder } from "../../storage/records.ts";
import { SegmentCount } from "../../storage/segment-count.ts";
import type { Entry, Store } from "../../storage/store.ts";
import { findDelayed, findReturnedKey } from "../read/examine-items.ts";
import { failedRecord } from "../ledger/records.ts";
import { isPlace, placeOfDelayed } from "../ledger/place.ts";
import type { Place } from "../ledger/place.ts";
import { addToSum, byClass, ledgerRecord, SEGMENT_ROWS } from "../ledger/tally.ts";
import type { LedgerNumbers, SegmentName } from "../ledger/tally.ts";
import { workersSegment } from "../workers/worker-record.ts";
import { damageOf, recordUnder, segmentOf } from "./known-rows.ts";
import { quarantineKey, quarantineRecord } from "../ledger/quarantine-record.ts";
import { substituteFor } from "./substitute.ts";

export type SetAside =
  /** `place`: of the item that has no result because of it. */
  | { readonly kind: "aside"; readonly reason: string; readonly place: Place | null }
  /** It stands in quarantine already, and nothing was changed. */
  | { readonly kind: "known" }
  /** There is no such row. */
  | { readonly kind: "absent" }
  | { readonly kind: "whole" }
  /** Nothing can take its place. */
  | { readonly kind: "vital"; readonly reason: string };

/** The store is nobody else's. Throws store_corrupt when the ledger's numbers cannot be read, store_write_failed. */
export async function setAside(store: Store, key: string, atWallMs: number): Promise<SetAside> {
  const bytes = await store.get(key);
  if (bytes === undefined)
    return { kind: (await store.get(quarantineKey(key))) === undefined ? "absent" : "known" };
  const record = recordUnder(key);
  const damage = record && damageOf(record, key, bytes);
  if (record !== undefined && damage === undefined) return { kind: "whole" };
  const reason = damage?.kind === "corrupt" ? damage.reason : "a row of a kind that cannot be set aside";
  const substitute =
    damage?.kind === "corrupt" ? await substituteFor(store, key) : ({ kind: "vital" } as const);
  if (substitute.kind === "vital") return { kind: "vital", reason };

  const changes = new Map<string, Uint8Array | null>();
  changes.set(key, substitute.kind === "row" ? substitute.bytes : null);
  const place = await itemWithout(store, key);
  const besides =
    place !== null && key.startsWith(ITEMS_PREFIX) ? await whereItStands(store, place) : undefined;
  if (besides !== undefined) changes.set(besides, null);

  const puts: Entry[] = [asideRow(key, { bytes, reason, place, atWallMs })];
  const deletes: string[] = [];
  for (const [changed, value] of changes)
    if (value === null) deletes.push(changed);
    else puts.push({ key: changed, value });
  puts.push(...(await numbersAfter(store, changes)));
  if (key.startsWith(WORKERS_PREFIX)) puts.push(await workersAfter(store, bytes, changes.get(key) ?? null));
  const outcome = await store.commit({ puts, deletes, expect: [], durability: "sync" });
  if (outcome.kind === "unknown") throw outcome.cause;
  return { kind: "aside", reason, place };
}

function asideRow(key: string, value: Parameters<typeof quarantineRecord.encode>[0]): Entry {
  const aside = quarantineKey(key);
  return { key: aside, value: encodeRecord(quarantineRecord, aside, value) };
}

/** The item that has no result any more, or will have none, because of the row. */
export async function itemWithout(store: Store, key: string): Promise<Place | null> {
  const segment = segmentOf(key);
  if (segment === undefined) return null;
  const tail = key.slice(key.lastIndexOf("/") + 1);
  const place = segment === "delayed" ? placeOfDelayed(key.slice(DELAYED_PREFIX.length)) : tail;
  if (!isPlace(place)) return null;
  for (const prefix of [DONE_PREFIX, FAILED_PREFIX])
    if (key !== `${prefix}${place}` && (await store.get(`${prefix}${place}`)) !== undefined) return null;
  return place;
}

/** The row of an item that is not final, if there is one and it is whole. */
async function whereItStands(store: Store, place: Place): Promise<string | undefined> {
  const running = `${SEGMENT_ROWS.running.prefix}${place}`;
  if ((await store.get(running)) !== undefined) return running;
  const returned = await findReturnedKey(store, place);
  if (returned !== undefined) return returned;
  const delayed = await findDelayed(store, place);
  return delayed && `${DELAYED_PREFIX}${delayed.delayed}`;
}

/** The ledger's numbers as they are with these rows gone or replaced; nothing when no segment has any of them. */
async function numbersAfter(
  store: Store,
  changes: ReadonlyMap<string, Uint8Array | null>,
): Promise<readonly Entry[]> {
  const touched = new Set([...changes.keys()].flatMap((key) => segmentOf(key) ?? []));
  if (touched.size === 0) return [];
  const numbers = await readRecord(store, LEDGER_KEY, ledgerRecord);
  if (numbers === undefined) return [];
  const segments = { ...numbers.segments };
  let { failedByClass } = numbers;
  for (const segment of touched) {
    segments[segment] = await tallyAfter(store, segment, numbers, changes);
    if (segment === "failed") failedByClass = await classesAfter(store, changes);
  }
  const value = encodeRecord(ledgerRecord, LEDGER_KEY, { ...numbers, segments, failedByClass });
  return [{ key: LEDGER_KEY, value }];
}

/**
 * The rows that were counted, less those that go. Its sum is that of the rows that are left: the checksum of a row that cannot
 * be read may not be the one that was added. A row that is missing stays counted, and so is found.
 */
async function tallyAfter(
  store: Store,
  segment: SegmentName,
  { segments }: LedgerNumbers,
  changes: ReadonlyMap<string, Uint8Array | null>,
): Promise<{ readonly count: number; readonly sum: number }> {
  const { prefix } = SEGMENT_ROWS[segment];
  let [gone, sum] = [0, 0];
  for await (const page of pagesUnder(store, prefix, 1_000, 4 * 2 ** 20))
    for (const { key, value } of page) {
      const now = changes.has(key) ? (changes.get(key) ?? null) : value;
      if (now === null) gone++;
      else if (now.length > MIN_RECORD_BYTES) sum = addToSum(sum, recordChecksum(now));
    }
  return { count: segments[segment].count - gone, sum };
}

const MIN_RECORD_BYTES = 6;

async function classesAfter(
  store: Store,
  changes: ReadonlyMap<string, Uint8Array | null>,
): Promise<LedgerNumbers["failedByClass"]> {
  const counts = byClass(() => 0);
  for await (const page of pagesUnder(store, FAILED_PREFIX, 1_000, 4 * 2 ** 20))
    for (const { key, value } of page) {
      const decoded = decodeRecord(failedRecord, key, value);
      if (!changes.has(key) && decoded.kind === "ok") counts[decoded.value.class]++;
    }
  return counts;
}

async function workersAfter(store: Store, before: Uint8Array, after: Uint8Array | null): Promise<Entry> {
  const count = await SegmentCount.load(store, workersSegment);
  if (after === null) count.removed(before);
  else count.replaced(before, after);
  return count.entry();
}
