// One item, looked at closely: where it stands, what became of its attempts, how many go before it. Items in flight are in
// memory and the others in the store, so both are asked, and asked again when the item has moved between the two.
import type { WorkerId } from "../../base/ids.ts";
import { ITEMS_PREFIX, RETURNED_PREFIX } from "../../storage/keys.ts";
import { readRecord, recordsUnder } from "../../storage/records.ts";
import type { Store } from "../../storage/store.ts";
import { nextKey } from "../../storage/store.ts";
import type { AttemptClass, AttemptLog, AttemptRecord } from "../ledger/attempt-records.ts";
import {
  attemptLogRecord,
  attemptRecord,
  attemptsOf,
  checkpointKey,
  checkpointRecord,
  logsOf,
} from "../ledger/attempt-records.ts";
import { findDelayed, findReturned } from "./examine-items.ts";
import type { FinalItem } from "./stored-items.ts";
import { corrupt, seeItemAt } from "./stored-items.ts";
import type { ItemSighting } from "../ledger/ledger.ts";
import type { ItemRecord, ReturnedRecord } from "../ledger/records.ts";
import { dueOfDelayed, laneEnd, placeOf, priorityOf, sequenceOf } from "../ledger/place.ts";
import type { Place } from "../ledger/place.ts";

export type ItemStanding =
  | { readonly kind: "fresh" }
  | { readonly kind: "returned"; readonly budgets: ReturnedRecord }
  | { readonly kind: "delayed"; readonly budgets: ReturnedRecord; readonly dueAtWallMs: number }
  | { readonly kind: "running"; readonly running: NonNullable<ItemSighting["running"]> }
  | { readonly kind: "final"; readonly final: FinalItem };

/** An attempt that has ended. */
export type PastAttempt = Omit<AttemptRecord, "class"> & { readonly class: AttemptClass | "success" };

export interface ItemDetail {
  readonly place: Place;
  readonly item: ItemRecord;
  readonly standing: ItemStanding;
  readonly sighting: ItemSighting;
  /** Undefined when it does not wait to be given out, or when more than can be counted do. */
  readonly ahead: number | undefined;
  readonly checkpointBytes: number;
  /** The attempts that are remembered, oldest first. */
  readonly attempts: readonly PastAttempt[];
}

const TRIES_MAX = 5;
const AHEAD_MAX = 10_000;
/** Payloads are read to count items; beyond so many bytes nobody counts any more. */
const COUNTING_BYTES_MAX = 64 * 2 ** 20;
const PAGE = 128;
const SLOTS_MAX = 16;

/** `look` asks the reactor. Throws store_corrupt. */
export async function readItem(
  store: Store,
  place: Place,
  look: (id: Uint8Array) => Promise<ItemSighting>,
): Promise<ItemDetail> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const seen = await seeItemAt(store, place);
    if (seen === undefined) return corrupt(store, `${ITEMS_PREFIX}${place}`, "an item is missing");
    const sighting = await look(seen.item.id);
    const standing = await standingOf(store, seen, sighting);
    if (standing === undefined) continue;
    const isReady = standing.kind === "fresh" || standing.kind === "returned";
    const checkpoint = await readRecord(store, checkpointKey(place), checkpointRecord);
    return {
      ...{ place, item: seen.item, standing, sighting },
      ahead: isReady ? await countAhead(store, place, sighting) : undefined,
      checkpointBytes: checkpoint?.length ?? 0,
      attempts: await readAttempts(store, place, standing),
    };
  }
  return corrupt(store, `${ITEMS_PREFIX}${place}`, "where this item stands is missing");
}

/** Undefined when it has moved between the readings. */
async function standingOf(
  store: Store,
  seen: NonNullable<Awaited<ReturnType<typeof seeItemAt>>>,
  { running, cursors }: ItemSighting,
): Promise<ItemStanding | undefined> {
  const { place, final } = seen;
  if (final !== undefined) return { kind: "final", final: { ...seen, final } };
  if (running !== undefined) return { kind: "running", running };
  const returned = await findReturned(store, place);
  if (returned !== undefined) return { kind: "returned", budgets: returned.value };
  const delayed = await findDelayed(store, place);
  if (delayed !== undefined)
    return { kind: "delayed", budgets: delayed.budgets, dueAtWallMs: dueOfDelayed(delayed.delayed) };
  const isFresh = sequenceOf(place) >= (cursors.get(priorityOf(place)) ?? 0);
  return isFresh ? { kind: "fresh" } : undefined;
}

/** Returned items and those that were never given out, before this one in order of priority and submission. */
async function countAhead(
  store: Store,
  place: Place,
  { cursors }: ItemSighting,
): Promise<number | undefined> {
  const range = { from: RETURNED_PREFIX, to: `${RETURNED_PREFIX}${place}` };
  let ahead = (await store.scan({ ...range, limit: AHEAD_MAX })).length;
  const [priority, sequence] = [priorityOf(place), sequenceOf(place)];
  const [only] = cursors.keys();
  // A single priority has all sequences.
  if (cursors.size === 1 && only === priority)
    return within(ahead + Math.max(0, sequence - (cursors.get(priority) ?? 0)));
  let bytes = 0;
  for (const [lane, cursor] of cursors) {
    if (lane < priority) continue;
    const end = lane === priority ? place : laneEnd(lane);
    const to = `${ITEMS_PREFIX}${end}`;
    for (let from = `${ITEMS_PREFIX}${placeOf(lane, cursor)}`; from < to;) {
      const page = await store.scan({ from, to, limit: PAGE });
      const last = page.at(-1);
      if (last === undefined) break;
      ahead += page.length;
      for (const { value } of page) bytes += value.length;
      if (ahead >= AHEAD_MAX || bytes > COUNTING_BYTES_MAX) return undefined;
      from = nextKey(last.key);
    }
  }
  return within(ahead);
}

function within(ahead: number): number | undefined {
  return ahead < AHEAD_MAX ? ahead : undefined;
}

/** A success leaves no row of its own; it stands in the item's. */
async function readAttempts(store: Store, place: Place, standing: ItemStanding): Promise<PastAttempt[]> {
  const attempts: PastAttempt[] = [];
  for await (const { record } of recordsUnder(store, attemptsOf(place), attemptRecord, SLOTS_MAX))
    attempts.push(record);
  if (standing.kind === "final" && standing.final.final.kind === "done") {
    const { attempt, worker, pluginVersion, startedAtWallMs, durationMs, finishedAtWallMs } =
      standing.final.final.record;
    const log = await readAttemptLog(store, place, attempt);
    const ended = { endedAtWallMs: finishedAtWallMs, logBytes: log?.log.length ?? 0 };
    const how = { class: "success", message: "" } as const;
    const execution = { pluginVersion, startedAtWallMs, durationMs };
    attempts.push({ attempt, worker: worker satisfies WorkerId, ...how, ...execution, ...ended });
  }
  return attempts.sort((one, other) => one.attempt - other.attempt);
}

/** The end of the attempt's standard error; `attempt` 0: the last one that left anything. Throws store_corrupt. */
export async function readAttemptLog(
  store: Store,
  place: Place,
  attempt: number,
): Promise<AttemptLog | undefined> {
  const logs: AttemptLog[] = [];
  for await (const { record } of recordsUnder(store, logsOf(place), attemptLogRecord, SLOTS_MAX))
    logs.push(record);
  logs.sort((one, other) => one.attempt - other.attempt);
  return attempt === 0 ? logs.at(-1) : logs.find((log) => log.attempt === attempt);
}
