// The queue: the next item to be given out, first of all windows in order of (priority, submission), and the worker that it may
// go to.
import type { Ledger, PendingItem } from "./ledger.ts";
import { isKeyed, orderOf, placeOf } from "./place.ts";
import type { Place } from "./place.ts";
import type { ItemRecord } from "./records.ts";
import type { Taker } from "./shelf.ts";
import { isParticular } from "./shelf.ts";
import { Window } from "./window.ts";

/** Memory of an item in a window beside its payload. */
export const ITEM_WEIGHT = 200;

/** An item as windows have it. */
export function pendingItem(
  key: Place,
  { id, payload }: Pick<ItemRecord, "id" | "payload">,
  returned: PendingItem["returned"],
): PendingItem {
  return { key, weight: ITEM_WEIGHT + payload.length, id, payload, checkpoint: null, returned };
}

/**
 * An item that is being written behind all others of its priority: in its window at once where those are in it, and there is nothing
 * to be read first; else it is loaded in its turn.
 */
export function admitFresh(
  ledger: Ledger,
  priority: number,
  place: Place,
  { id, payload }: Pick<ItemRecord, "id" | "payload">,
): void {
  const window = freshWindow(ledger, priority);
  let others = -window.weight;
  let isNext = true;
  for (const [lane, its] of ledger.fresh) {
    others += its.weight;
    isNext &&= lane <= priority || its.isWhole;
  }
  if (!isNext || !window.admits(ITEM_WEIGHT + payload.length, others)) return window.offer(place);
  // A copy: what waits must not keep the whole message that it came in.
  window.admit(pendingItem(place, { id, payload: new Uint8Array(payload) }, null));
}

/** The window of the items of a priority that were never given out. The ledger has them in order, highest priority first. */
export function freshWindow({ fresh, tally }: Ledger, priority: number): Window<PendingItem> {
  const known = fresh.get(priority);
  if (known !== undefined) return known;
  // The store has nothing yet of a priority without a cursor.
  const cursor = tally.cursors.get(priority);
  const window = new Window<PendingItem>(cursor === undefined ? null : placeOf(priority, cursor));
  const inOrder = [...fresh, [priority, window] as const].sort(([one], [other]) => other - one);
  fresh.clear();
  for (const [lane, its] of inOrder) fresh.set(lane, its);
  return window;
}

/** The next item that this worker may have beside others; undefined when none is in memory. */
export function nextPending(ledger: Ledger, taker: Taker): PendingItem | undefined {
  const { shelf, keys } = ledger;
  shelve(ledger, taker.nowMs, taker);
  const window = firstWindow(ledger, taker);
  const next = window?.peek();
  const kept = shelf.size === 0 ? undefined : shelf.peek(taker);
  const keyed = keys.next(taker);
  if (keyed !== undefined && isBefore(keyed, next) && isBefore(keyed, kept)) return takeKeyed(ledger, keyed);
  if (kept === undefined || (next !== undefined && isBefore(next, kept))) return window?.take();
  return takeKept(ledger, kept);
}

function takeKept(ledger: Ledger, kept: PendingItem): PendingItem {
  ledger.shelf.remove(kept.key);
  if (isKeyed(kept.key)) return takeKeyed(ledger, kept);
  ledger.returned.left(kept.key);
  return kept;
}

function takeKeyed({ keys }: Ledger, item: PendingItem): PendingItem {
  keys.take(item.key);
  return item;
}

function isBefore({ key }: PendingItem, other: PendingItem | undefined): boolean {
  return other === undefined || orderOf(key) < orderOf(other.key);
}

/** The next item that nobody has failed; where there is none, one that no other worker can execute. */
export function nextTry(ledger: Ledger, taker: Taker): PendingItem | undefined {
  shelve(ledger, taker.nowMs, taker);
  const window = firstWindow(ledger, taker);
  const keyed = ledger.keys.nextUntried(taker);
  if (keyed !== undefined && isBefore(keyed, window?.peek())) return takeKeyed(ledger, keyed);
  const untried = window?.take();
  if (untried !== undefined) return untried;
  const own = ledger.shelf.peekOwn(taker);
  return own && takeKept(ledger, own);
}

/** The next item that runs with nothing beside it. */
export function nextAlone(ledger: Ledger, taker: Taker): PendingItem | undefined {
  return takeAlone(ledger, ledger.alone.peek(taker));
}

/** The next one of these that no other worker can execute. */
export function nextOwnAlone(ledger: Ledger, taker: Taker): PendingItem | undefined {
  return takeAlone(ledger, ledger.alone.peekOwn(taker));
}

function takeAlone(ledger: Ledger, kept: PendingItem | undefined): PendingItem | undefined {
  if (kept === undefined) return undefined;
  ledger.alone.remove(kept.key);
  if (isKeyed(kept.key)) return takeKeyed(ledger, kept);
  ledger.returnedAlone.left(kept.key);
  return kept;
}

/**
 * Puts items that are next and not for everybody out of the way of the rest. Items that a full shelf has no room for stay in
 * the store.
 */
export function shelve(
  { returned, returnedAlone, shelf, alone, fresh }: Ledger,
  nowMs: number,
  taker: Pick<Taker, "triesOnly"> = {},
): void {
  if (shelf.isLow) returned.readmit();
  for (let head = returned.peek(); head !== undefined && isParticular(head, taker); head = returned.peek()) {
    if (comesAfter(head, fresh)) break;
    if (shelf.isFull) returned.postpone();
    else {
      returned.take();
      shelf.put(head, nowMs);
    }
  }
  for (let head = returnedAlone.peek(); head !== undefined; head = returnedAlone.peek()) {
    if (alone.isFull || comesAfter(head, fresh)) return;
    returnedAlone.take();
    alone.put(head, nowMs);
  }
}

/** Pending items that may be given out now, but those that are known to run alone. In memory or not; of each key its head at most. */
export function countReady({ tally, alone, returnedAlone, keys }: Ledger): number {
  const behindTheirHeads = keys.pending - keys.ready;
  return tally.pending - tally.count("delayed") - alone.size - returnedAlone.size - behindTheirHeads;
}

/** Whether there is, or may be in the store, an item that any worker may have. */
export function hasOpen({ returned, fresh, keys }: Ledger): boolean {
  if (!returned.isExhausted || keys.hasOpen) return true;
  for (const window of fresh.values()) if (!window.isExhausted) return true;
  return false;
}

/** An item that comes behind fresh ones waits in its window until it is next. */
function comesAfter(head: PendingItem, fresh: Ledger["fresh"]): boolean {
  const first = firstFresh(fresh)?.peek();
  return first !== undefined && first.key < head.key;
}

/** The window that has the next item for anybody. */
function firstWindow({ returned, fresh }: Ledger, taker: Taker): Window<PendingItem> | undefined {
  const window = firstFresh(fresh);
  const head = returned.peek();
  if (head === undefined || isParticular(head, taker)) return window;
  const first = window?.peek();
  return first !== undefined && first.key < head.key ? window : returned;
}

function firstFresh(fresh: Ledger["fresh"]): Window<PendingItem> | undefined {
  for (const window of fresh.values()) if (window.size > 0) return window;
  return undefined;
}
