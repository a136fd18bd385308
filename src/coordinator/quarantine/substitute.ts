// The substitute for a row that cannot be read: nothing, or a row that is made again of others. The rows of items, of the
// index, of the order of completion and of the registry must be there for the rest to be read. Revocations and rows that were
// set aside are never replaced: they must not be forgotten.
import type { RecordType } from "../../storage/codec.ts";
import { decodeRecord, encodeRecord } from "../../storage/codec.ts";
import {
  COMPLETIONS_PREFIX,
  DONE_PREFIX,
  EPOCH_STARTS_KEY,
  FAILED_PREFIX,
  ITEM_INDEX_PREFIX,
  ITEMS_PREFIX,
  QUARANTINE_PREFIX,
  RELEASES_PREFIX,
  RUNNING_PREFIX,
  WORKERS_PREFIX,
} from "../../storage/keys.ts";
import { pagesUnder } from "../../storage/records.ts";
import type { Store } from "../../storage/store.ts";
import { KEY_SEGMENT_ROWS, KEY_SEGMENTS } from "../keys/key-records.ts";
import { completionsRecord } from "../ledger/completions.ts";
import { itemIdText, isPlace } from "../ledger/place.ts";
import { doneRecord, failedRecord, itemIndexRecord, itemRecord, runningRecord } from "../ledger/records.ts";
import type { Place } from "../ledger/place.ts";
import type { IncarnationId } from "../../base/ids.ts";
import { workerRecord } from "../workers/worker-record.ts";
import { recordUnder } from "./known-rows.ts";

/** `vital`: without it nothing can be said of the rest, and nothing else knows what was in it. */
export type Substitute =
  | { readonly kind: "nothing" }
  | { readonly kind: "row"; readonly bytes: Uint8Array }
  | { readonly kind: "vital" };

/** Without a row of these something that was promised is forgotten: what is set aside, the order within a key, its state, how a release stands. */
const KEPT_PREFIXES = [
  ...[QUARANTINE_PREFIX, RELEASES_PREFIX],
  ...KEY_SEGMENTS.map((segment) => KEY_SEGMENT_ROWS[segment].prefix),
];

/** The row under the key is there, and cannot be read. */
export async function substituteFor(store: Store, key: string): Promise<Substitute> {
  const row = <T>(type: RecordType<T>, value: T | undefined): Substitute =>
    value === undefined ? { kind: "vital" } : { kind: "row", bytes: encodeRecord(type, key, value) };
  if (key.startsWith(ITEMS_PREFIX)) return row(itemRecord, await itemWithout(store, key));
  if (key.startsWith(COMPLETIONS_PREFIX)) return row(completionsRecord, await completedIn(store, key));
  if (key.startsWith(WORKERS_PREFIX)) return row(workerRecord, await workerWithout(store, key));
  if (key.startsWith(ITEM_INDEX_PREFIX)) {
    const place = await placeOfId(store, key.slice(ITEM_INDEX_PREFIX.length));
    return row(itemIndexRecord, place && { place, counts: [] });
  }
  const isMeta = key.startsWith("meta/") && key !== EPOCH_STARTS_KEY;
  // Without it nothing says that the run lacks an item.
  const isKept = KEPT_PREFIXES.some((prefix) => key.startsWith(prefix));
  const isVital = recordUnder(key) === undefined || isMeta || isKept;
  return isVital ? { kind: "vital" } : { kind: "nothing" };
}

/** Its id, and no payload: what became of it can be read. */
async function itemWithout(
  store: Store,
  key: string,
): Promise<Parameters<typeof itemRecord.encode>[0] | undefined> {
  const place = key.slice(ITEMS_PREFIX.length);
  if (!isPlace(place)) return undefined;
  const id = await idAt(store, place);
  return id && { id, payload: new Uint8Array(), key: "", label: "" };
}

async function idAt(store: Store, place: Place): Promise<Uint8Array | undefined> {
  const beside: readonly (readonly [string, RecordType<{ readonly id: Uint8Array }>])[] = [
    [DONE_PREFIX, doneRecord],
    [FAILED_PREFIX, failedRecord],
    [RUNNING_PREFIX, runningRecord],
  ];
  for (const [prefix, type] of beside) {
    const bytes = await store.get(`${prefix}${place}`);
    const decoded = bytes && decodeRecord(type, `${prefix}${place}`, bytes);
    if (decoded?.kind === "ok") return decoded.value.id;
  }
  for await (const { key, value } of wholeUnder(store, ITEM_INDEX_PREFIX, itemIndexRecord))
    if (value.place === place) return Buffer.from(key.slice(ITEM_INDEX_PREFIX.length), "base64url");
  return undefined;
}

async function placeOfId(store: Store, idText: string): Promise<Place | undefined> {
  for await (const { key, value } of wholeUnder(store, ITEMS_PREFIX, itemRecord)) {
    const place = key.slice(ITEMS_PREFIX.length);
    if (itemIdText(value.id) === idText && isPlace(place)) return place;
  }
  return undefined;
}

async function completedIn(store: Store, key: string): Promise<readonly Place[]> {
  const number = Number.parseInt(key.slice(COMPLETIONS_PREFIX.length), 16);
  const places: Place[] = [];
  for (const [prefix, type] of [[DONE_PREFIX, doneRecord] as const, [FAILED_PREFIX, failedRecord] as const])
    for await (const row of wholeUnder<{ readonly completion: number }>(store, prefix, type)) {
      const place = row.key.slice(prefix.length);
      if (row.value.completion === number && isPlace(place)) places.push(place);
    }
  return places.sort();
}

/** One that is to be heard again: with its items, if it is the process that they were given to. */
async function workerWithout(store: Store, key: string): Promise<Parameters<typeof workerRecord.encode>[0]> {
  let incarnation = "00000000000000000000000000" as IncarnationId;
  for await (const { value } of wholeUnder(store, RUNNING_PREFIX, runningRecord))
    if (key === `${WORKERS_PREFIX}${value.worker}` && value.incarnation > incarnation)
      incarnation = value.incarnation;
  const nothingElse = { isToDrain: false, failuresInRow: 0, slots: 1, plugins: [], registeredAtWallMs: 0 };
  return { incarnation, state: "Ready+Alive", trust: "Trusted", ...nothingElse };
}

async function* wholeUnder<T>(
  store: Store,
  prefix: string,
  type: RecordType<T>,
): AsyncGenerator<{ readonly key: string; readonly value: T }> {
  for await (const page of pagesUnder(store, prefix, 1_000, 4 * 2 ** 20))
    for (const { key, value } of page) {
      const decoded = decodeRecord(type, key, value);
      if (decoded.kind === "ok") yield { key, value: decoded.value };
    }
}
