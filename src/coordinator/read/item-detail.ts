// One item, found and looked at closely. Found by what a person calls it: its id, the beginning of its id, or the label that its input
// gave it. Ids are looked up; labels have no index, so all items are walked over, a page at a time, for as long as the asker waits.
// Then: where it stands, what became of its attempts, how many go before it. Items in flight are in memory and the others in the
// store, so both are asked, and asked again when the item has moved between the two.
import {
  ITEM_INDEX_PREFIX,
  ITEMS_PREFIX,
  KEY_NUMBERS_KEY,
  MAIL_PREFIX,
  RETURNED_PREFIX,
} from "../../storage/keys.ts";
import { readRecord, recordOf, pagesUnder, corrupt, recordsUnder } from "../../storage/records.ts";
import {
  isKeyed,
  placeOfKey,
  dueOfDelayed,
  laneEnd,
  placeOf,
  priorityOf,
  sequenceOf,
  ITEM_ID_BYTES,
  itemIdText,
  itemDigits,
} from "../ledger/place.ts";
import type { Store } from "../../storage/store.ts";
import { actorOf } from "../keys/lanes.ts";
import type { Origin } from "../ledger/origin.ts";
import { itemIndexRecord, itemRecord } from "../ledger/records.ts";
import type { Place } from "../ledger/place.ts";
import { runsAlone } from "../../../machines/work-item.ts";
import type { AttemptRecord as Attempt, GetItemResponse, Item } from "../../gen/rollout/v1/run_pb.ts";
import { ItemState } from "../../gen/rollout/v1/run_pb.ts";
import { OutcomeClass } from "../../gen/rollout/v1/work_pb.ts";
import { nextKey } from "../../storage/store.ts";
import type { AttemptLog, AttemptRecord } from "../ledger/attempt-records.ts";
import {
  attemptLogRecord,
  attemptRecord,
  attemptsOf,
  checkpointKey,
  checkpointRecord,
  logsOf,
} from "../ledger/attempt-records.ts";
import { mailKey, pathOf } from "../keys/key-records.ts";
import { findDelayed, findReturned } from "./examine-items.ts";
import type { FinalItem } from "./stored-items.ts";
import { seeItemAt } from "./stored-items.ts";
import type { ItemSighting } from "../ledger/ledger.ts";
import type { ReturnedRecord } from "../ledger/records.ts";
import { constantOf } from "../turn/operator-message.ts";
import type { Filled } from "../turn/operator-message.ts";

export type Sought =
  | { readonly kind: "found"; readonly place: Place }
  | { readonly kind: "unknown" }
  /** Ids, in hexadecimal, of some that the name may mean. */
  | { readonly kind: "several"; readonly ids: readonly string[] };

const ID_DIGITS = 2 * ITEM_ID_BYTES;
const PREFIX_DIGITS_MIN = 6;
/** Shorter numbers are more likely how an input counts its items. */
const LIKELY_LABEL = /^\d{1,15}$/;
/** Payloads of a page are in memory at once. */
const ITEMS_PAGE = 64;
const IDS_PAGE = 256;

/** `name` is not empty. Throws store_corrupt. `isAwaited` says whether anybody still waits; `unknown` when nobody does. */
export async function findByName(store: Store, name: string, isAwaited: () => boolean): Promise<Sought> {
  const digits = name.toLowerCase();
  const isId = new RegExp(`^[0-9a-f]{${PREFIX_DIGITS_MIN},${ID_DIGITS}}$`).test(digits);
  if (digits.length === ID_DIGITS && isId) return findById(store, Buffer.from(digits, "hex"));
  const ways = [() => findByPrefix(store, digits), () => findByLabel(store, name, isAwaited)];
  if (!isId) ways.shift();
  else if (LIKELY_LABEL.test(name)) ways.reverse();
  for (const find of ways) {
    const sought = await find();
    if (sought.kind !== "unknown") return sought;
  }
  return { kind: "unknown" };
}

export async function findById(store: Store, id: Uint8Array): Promise<Sought> {
  const index = await readRecord(store, `${ITEM_INDEX_PREFIX}${itemIdText(id)}`, itemIndexRecord);
  return index === undefined ? { kind: "unknown" } : { kind: "found", place: index.place };
}

/** Keys hold ids in base64url, 6 bits a character: whole characters of the beginning are a range, the rest is compared. */
async function findByPrefix(store: Store, digits: string): Promise<Sought> {
  const whole = Buffer.from(digits.slice(0, digits.length - (digits.length % 2)), "hex");
  const beginning = whole.toString("base64url").slice(0, Math.floor((whole.length * 8) / 6));
  const from = `${ITEM_INDEX_PREFIX}${beginning}`;
  const rows = await store.scan({ from, to: `${from}~`, limit: IDS_PAGE });
  const found = rows.filter(({ key }) => hexOf(key).startsWith(digits));
  const [only] = found;
  if (only === undefined) return { kind: "unknown" };
  if (found.length > 1) return { kind: "several", ids: found.slice(0, 3).map(({ key }) => hexOf(key)) };
  const index = recordOf(store, only, itemIndexRecord);
  return { kind: "found", place: index.place };
}

async function findByLabel(store: Store, label: string, isAwaited: () => boolean): Promise<Sought> {
  const bytes = Buffer.from(label);
  const found: { readonly place: Place; readonly id: string }[] = [];
  for await (const page of pagesUnder(store, ITEMS_PREFIX, ITEMS_PAGE)) {
    if (!isAwaited()) return { kind: "unknown" };
    for (const { key, value } of page) {
      // Most rows do not even have its bytes in them, and need no decoding.
      if (!Buffer.from(value.buffer, value.byteOffset, value.byteLength).includes(bytes)) continue;
      const item = recordOf(store, { key, value }, itemRecord);
      if (item.label !== label) continue;
      found.push({ place: placeOfKey(store, ITEMS_PREFIX, key), id: Buffer.from(item.id).toString("hex") });
    }
    if (found.length > 1) break;
  }
  if (found.length > 1) return { kind: "several", ids: found.slice(0, 3).map(({ id }) => id) };
  const [only] = found;
  return only === undefined ? { kind: "unknown" } : { kind: "found", place: only.place };
}

function hexOf(key: string): string {
  return Buffer.from(key.slice(ITEM_INDEX_PREFIX.length), "base64url").toString("hex");
}

/** As it is answered, but for the result of one that is final. */
export interface ItemDetail extends Omit<Filled<GetItemResponse>, "result"> {
  readonly final: FinalItem | undefined;
  /** Undefined for an item that was submitted. */
  readonly origin?: Origin;
}

/** Where an item stands, and what only that says of it. */
interface Standing {
  readonly item: Pick<Filled<Item>, "state" | "attempt" | "charged" | "lost" | "alone"> &
    Pick<Filled<Item>, "worker" | "dueAtMs" | "error">;
  readonly assignedAgeMs?: number;
  readonly final?: FinalItem;
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
  look: (id: Uint8Array, key: string) => Promise<ItemSighting>,
): Promise<ItemDetail> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const seen = await seeItemAt(store, place);
    if (seen === undefined) return corrupt(store, `${ITEMS_PREFIX}${place}`, "an item is missing");
    const sighting = await look(seen.item.id, isKeyed(place) ? seen.item.key : "");
    const standing = await standingOf(store, seen, sighting);
    if (standing === undefined) continue;
    const { state } = standing.item;
    const isReady = (state === ItemState.FRESH || state === ItemState.RETURNED) && !isKeyed(place);
    const ahead = isReady ? await countAhead(store, place, sighting) : undefined;
    const checkpoint = await readRecord(store, checkpointKey(place), checkpointRecord);
    const { id, label, payload, origin } = seen.item;
    return {
      item: {
        item: itemDigits(id),
        ...(label !== "" && { id: label }),
        sequence: sequenceOf(place),
        priority: priorityOf(place),
        maxAttempts: sighting.budgets.maxAttempts,
        maxLost: sighting.budgets.maxLost,
        ...standing.item,
        ...(ahead !== undefined && { ahead }),
        ...(isKeyed(place) && (await keyOf(store, { place, key: seen.item.key }, sighting))),
        checkpointBytes: checkpoint?.content.length ?? 0,
        attempts: await readAttempts(store, place, standing.final),
      },
      payload,
      ...(standing.assignedAgeMs !== undefined && { assignedAgeMs: standing.assignedAgeMs }),
      final: standing.final,
      ...(origin && { origin }),
    };
  }
  return corrupt(store, `${ITEMS_PREFIX}${place}`, "where this item stands is missing");
}

/** The key of an item, and what of it goes before the item. */
async function keyOf(
  store: Store,
  { place, key }: { readonly place: Place; readonly key: string },
  { keyed }: ItemSighting,
): Promise<Pick<Filled<Item>, "key" | "keyPhase" | "aheadInKey" | "keyHead">> {
  if (keyed === undefined) return { key: actorOf(key) };
  const { phase: keyPhase, head, isHeadOpen } = keyed;
  const path = `${MAIL_PREFIX}${pathOf(key, keyed.partition)}/`;
  const own = mailKey(pathOf(key, keyed.partition), place);
  if (head === place || (await store.get(own)) === undefined) return { key: actorOf(key), keyPhase };
  const before = await store.scan({ from: path, to: own, limit: AHEAD_MAX });
  const aheadInKey = before.length + (isHeadOpen ? 1 : 0);
  const first = head === undefined ? undefined : await seeItemAt(store, head);
  return {
    ...{ key: actorOf(key), keyPhase },
    ...(before.length < AHEAD_MAX && { aheadInKey }),
    ...(first && { keyHead: itemDigits(first.item.id) }),
  };
}

/** Undefined when it has moved between the readings. */
async function standingOf(
  store: Store,
  seen: NonNullable<Awaited<ReturnType<typeof seeItemAt>>>,
  { running, cursors }: ItemSighting,
): Promise<Standing | undefined> {
  const { place, final } = seen;
  if (final !== undefined) return standingOfFinal({ ...seen, final });
  if (running !== undefined) {
    const { isAlone: alone, assignedAgeMs, ...holder } = running;
    const age = assignedAgeMs === undefined ? {} : { assignedAgeMs: Math.round(assignedAgeMs) };
    return { item: { state: ItemState.RUNNING, ...holder, alone }, ...age };
  }
  const returned = await findReturned(store, place);
  if (returned !== undefined) return { item: { state: ItemState.RETURNED, ...budgetsOf(returned.value) } };
  const delayed = await findDelayed(store, place);
  if (delayed !== undefined) {
    const dueAtMs = dueOfDelayed(delayed.delayed);
    return { item: { state: ItemState.DELAYED, ...budgetsOf(delayed.budgets), dueAtMs } };
  }
  // Beside it there would be a row of one that was given out, unless it moves just now.
  const isFresh = isKeyed(place) || sequenceOf(place) >= (cursors.get(priorityOf(place)) ?? 0);
  return isFresh
    ? { item: { state: ItemState.FRESH, attempt: 0, charged: 0, lost: 0, alone: false } }
    : undefined;
}

function standingOfFinal(item: FinalItem): Standing {
  const { final } = item;
  const { attempt, worker } = final.record;
  if (final.kind === "done") {
    const budgets = { charged: 0, lost: 0, alone: false };
    return { item: { state: ItemState.DONE, attempt, worker, ...budgets }, final: item };
  }
  const { charged, lost, class: as, message } = final.record;
  const failed = { state: ItemState.FAILED, error: { class: as, message } } as const;
  return { item: { ...failed, attempt, worker, charged, lost, alone: false }, final: item };
}

function budgetsOf({
  attempt,
  charged,
  lost,
  isApart,
}: ReturnedRecord): Pick<Filled<Item>, "attempt" | "charged" | "lost" | "alone"> {
  return { attempt, charged, lost, alone: runsAlone({ lost, isApart }) };
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
  const hasKeys = (await store.get(KEY_NUMBERS_KEY)) !== undefined;
  // A single priority has all sequences, but for those of items with keys.
  if (cursors.size === 1 && only === priority && !hasKeys)
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
async function readAttempts(
  store: Store,
  place: Place,
  final: FinalItem | undefined,
): Promise<Filled<Attempt>[]> {
  const attempts: Filled<Attempt>[] = [];
  for await (const { record } of recordsUnder(store, attemptsOf(place), attemptRecord, SLOTS_MAX))
    attempts.push(attemptOf(record));
  if (final?.final.kind === "done") {
    const { record } = final.final;
    const log = await readAttemptLog(store, place, record.attempt);
    const ended = { endedAtWallMs: record.finishedAtWallMs, logBytes: log?.log.length ?? 0 };
    attempts.push(attemptOf({ ...record, class: "success", message: "", ...ended }));
  }
  return attempts.sort((one, other) => one.attempt - other.attempt);
}

function attemptOf(
  past: Omit<AttemptRecord, "class"> & { readonly class: AttemptRecord["class"] | "success" },
): Filled<Attempt> {
  const { attempt, worker, message, pluginVersion, startedAtWallMs, durationMs, logBytes } = past;
  return {
    ...{ attempt, worker, message, logBytes },
    outcome: OutcomeClass[constantOf(past.class)],
    ...(pluginVersion !== "" && { pluginVersion }),
    // 0 when no worker said so.
    ...(Math.round(startedAtWallMs) !== 0 && {
      startedAtMs: Math.round(startedAtWallMs),
      durationMs: Math.round(durationMs),
    }),
    endedAtMs: Math.round(past.endedAtWallMs),
  };
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
