// The queue: the next item to be given out, first of all windows in order of (priority, submission), and the worker that it may
// go to.
import type { Ledger, PendingItem } from "./ledger.ts";
import { placeOf } from "./place.ts";
import type { Taker } from "./shelf.ts";
import { isParticular } from "./shelf.ts";
import { Window } from "./window.ts";

/** The window of the items of a priority that were never given out. The ledger has them in order, highest priority first. */
export function freshWindow({ fresh, tally }: Ledger, priority: number): Window<PendingItem> {
  const known = fresh.get(priority);
  if (known !== undefined) return known;
  const window = new Window<PendingItem>(placeOf(priority, tally.cursors.get(priority) ?? 0));
  const inOrder = [...fresh, [priority, window] as const].sort(([one], [other]) => other - one);
  fresh.clear();
  for (const [lane, its] of inOrder) fresh.set(lane, its);
  return window;
}

/** The next item that this worker may have beside others; undefined when none is in memory. */
export function nextPending(ledger: Ledger, taker: Taker): PendingItem | undefined {
  const { shelf, returned } = ledger;
  shelve(ledger, taker.nowMs);
  const window = firstWindow(ledger);
  const next = window?.peek();
  const kept = shelf.size === 0 ? undefined : shelf.peek(taker);
  if (kept === undefined || (next !== undefined && next.key < kept.key)) return window?.take();
  shelf.remove(kept.key);
  returned.left(kept.key);
  return kept;
}

/** The next item that nobody has failed. */
export function nextUntried(ledger: Ledger, nowMs: number): PendingItem | undefined {
  shelve(ledger, nowMs);
  return firstWindow(ledger)?.take();
}

/** The next item that runs with nothing beside it. */
export function nextAlone({ alone, returnedAlone }: Ledger, taker: Taker): PendingItem | undefined {
  const kept = alone.peek(taker);
  if (kept === undefined) return undefined;
  alone.remove(kept.key);
  returnedAlone.left(kept.key);
  return kept;
}

/**
 * Puts items that are next and not for everybody out of the way of the rest. Items that a full shelf has no room for stay in
 * the store.
 */
export function shelve({ returned, returnedAlone, shelf, alone, fresh }: Ledger, nowMs: number): void {
  if (shelf.isLow) returned.readmit();
  for (let head = returned.peek(); head !== undefined && isParticular(head); head = returned.peek()) {
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

/** Pending items that may be given out now, but those that are known to run alone. In memory or not. */
export function countReady({ tally, alone, returnedAlone }: Ledger): number {
  return tally.pending - tally.count("delayed") - alone.size - returnedAlone.size;
}

/** Whether there is, or may be in the store, an item that any worker may have. */
export function hasOpen({ returned, fresh }: Ledger): boolean {
  if (!returned.isExhausted) return true;
  for (const window of fresh.values()) if (!window.isExhausted) return true;
  return false;
}

/** An item that comes behind fresh ones waits in its window until it is next. */
function comesAfter(head: PendingItem, fresh: Ledger["fresh"]): boolean {
  const first = firstFresh(fresh)?.peek();
  return first !== undefined && first.key < head.key;
}

/** The window that has the next item for anybody. */
function firstWindow({ returned, fresh }: Ledger): Window<PendingItem> | undefined {
  const window = firstFresh(fresh);
  const head = returned.peek();
  if (head === undefined || isParticular(head)) return window;
  const first = window?.peek();
  return first !== undefined && first.key < head.key ? window : returned;
}

function firstFresh(fresh: Ledger["fresh"]): Window<PendingItem> | undefined {
  for (const window of fresh.values()) if (window.size > 0) return window;
  return undefined;
}
