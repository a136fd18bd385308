// Retries of failed items. They are looked up here and moved by the reactor, one page at a time for the whole run: an item that
// was looked up can change in no other way than by this call.
import type { ServiceImpl } from "@connectrpc/connect";
import { failure } from "../../base/errors.ts";
import type { RetryRequest, OperatorService } from "../../gen/rollout/v1/run_pb.ts";
import { recordChecksum } from "../../storage/codec.ts";
import { FAILED_PREFIX, ITEMS_PREFIX } from "../../storage/keys.ts";
import { corrupt, readRecord, recordOf } from "../../storage/records.ts";
import { invocationOf } from "../keys/lanes.ts";
import { isInside, isKeyed, isPlace, placeOfKey, itemIdOfDigits, itemIdText } from "../ledger/place.ts";
import type { Entry, Store } from "../../storage/store.ts";
import { nextKey, prefixRange } from "../../storage/store.ts";
import { findById } from "../read/item-detail.ts";
import type { FailedItem } from "../ledger/ledger.ts";
import type { Place } from "../ledger/place.ts";
import { failedRecord, failureClassOf, itemRecord } from "../ledger/records.ts";
import type { FailureClass } from "../ledger/records.ts";
import type { Leader } from "./leader.ts";
import { ask, refuse } from "./leader.ts";
import { turnstile } from "../../base/turnstile.ts";

/** Failed items that one call looks at. */
const PAGE = 1_000;

interface Batch {
  readonly failed: readonly FailedItem[];
  readonly skipped: number;
  /** Empty when nothing is left. */
  readonly after: string;
}

export function retries(leader: Leader, store: Store): Pick<ServiceImpl<typeof OperatorService>, "retry"> {
  const takeTurn = turnstile();
  return {
    async retry(request) {
      const only = readClass(request);
      const read = readerOf(request);
      return takeTurn(async () => {
        const { failed: found, skipped, after } = await read(store, only);
        const failed = (await withKeys(store, found)).filter(mayBeRetried);
        const verdict = await ask(leader, { kind: "retry", failed });
        if (verdict.kind === "cancelled") throw failure("run_cancelled", {});
        const passed = request.items.length > 0 ? found.length - failed.length : 0;
        return { coordinator: leader.envelope, retried: verdict.items, skipped: skipped + passed, after };
      });
    },
  };
}

function readClass({ failureClass }: RetryRequest): FailureClass | undefined {
  if (failureClass === "") return undefined;
  return failureClassOf(failureClass) ?? refuse("Retry", "failure_class is no class of failure");
}

type Read = (store: Store, only: FailureClass | undefined) => Promise<Batch>;

function readerOf({ items, after }: RetryRequest): Read {
  if (items.length > PAGE) return refuse("Retry", `more than ${PAGE} items in one call`);
  const ids = items.map((digits) => itemIdOfDigits(digits) ?? refuse("Retry", "items are not 64 digits"));
  if (after !== "" && !isPlace(after)) return refuse("Retry", "after is not what an answer has said");
  return ids.length > 0
    ? (store, only) => readNamed(store, ids, only)
    : (store, only) => readPage(store, after, only);
}

async function readPage(store: Store, after: string, only: FailureClass | undefined): Promise<Batch> {
  const { from: start, to } = prefixRange(FAILED_PREFIX);
  const from = after === "" ? start : nextKey(`${FAILED_PREFIX}${after}`);
  const rows = await store.scan({ from, to, limit: PAGE });
  const failed = rows
    .map((row) => readFailed(store, row))
    .filter((item) => only === undefined || item.class === only);
  const last = rows.at(-1);
  const isMore = last !== undefined && rows.length === PAGE;
  return { failed, skipped: 0, after: isMore ? placeOfKey(store, FAILED_PREFIX, last.key) : "" };
}

/** Each once, however often it is named. */
async function readNamed(
  store: Store,
  ids: readonly Uint8Array[],
  only: FailureClass | undefined,
): Promise<Batch> {
  const failed: FailedItem[] = [];
  const distinct = new Map(ids.map((id) => [itemIdText(id), id]));
  for (const id of distinct.values()) {
    const sought = await findById(store, id);
    const key = sought.kind === "found" ? `${FAILED_PREFIX}${sought.place}` : undefined;
    const value = key === undefined ? undefined : await store.get(key);
    if (key === undefined || value === undefined) continue;
    const item = readFailed(store, { key, value });
    if (only === undefined || item.class === only) failed.push(item);
  }
  return { failed, skipped: ids.length - failed.length, after: "" };
}

/** An actor has been told of a failed invocation, and nobody wants what was stopped. */
function mayBeRetried({ place, key = "", class: as }: FailedItem): boolean {
  return !isInside(place) || (as !== "cancelled" && invocationOf(key) === undefined);
}

/** The key of each item that a room of keys has. */
async function withKeys(store: Store, failed: readonly FailedItem[]): Promise<readonly FailedItem[]> {
  const keyed = failed.filter(({ place }) => isKeyed(place));
  if (keyed.length === 0) return failed;
  const keys = new Map<Place, string>();
  for (const { place } of keyed) {
    const rowKey = `${ITEMS_PREFIX}${place}`;
    const item = await readRecord(store, rowKey, itemRecord);
    keys.set(place, (item ?? corrupt(store, rowKey, "an item that has failed is missing")).key);
  }
  return failed.map((item) => ({ ...item, key: keys.get(item.place) }));
}

function readFailed(store: Store, entry: Entry): FailedItem {
  const { id, attempt, class: as, message, isApart } = recordOf(store, entry, failedRecord);
  const place = placeOfKey(store, FAILED_PREFIX, entry.key);
  return { place, id, attempt, class: as, message, isApart, checksum: recordChecksum(entry.value) };
}
