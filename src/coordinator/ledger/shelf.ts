// Pending items that wait for who may take them, out of the way of the rest: a shelf of those that a worker has failed and
// another one is to try, and one of those that run with nothing beside them. In the store they are what they were:
// returned. A new leader begins with empty shelves and finds them again.
//
// Keeps true: in order of submission among those that a worker may have; bounded (C8): a full shelf takes nothing more.
import type { WorkerId } from "../../base/ids.ts";
import { isKeyed, orderOf } from "./place.ts";
import type { Place } from "./place.ts";
import type { ReturnedRecord } from "./records.ts";

/** The worker that asks for an item. */
export interface Taker {
  readonly worker: WorkerId;
  /** No other worker could execute what this one has failed. */
  readonly isOnlyOne: boolean;
  /** Monotonic. */
  readonly nowMs: number;
  /** Whether it hands on the states of keys; it does unless said. */
  readonly takesKeys?: boolean;
  /** The latest version of states of keys that it goes on from; any unless said. */
  readonly stateVersion?: number;
  /** The latest version of states of keys that any other worker goes on from, below 0 where none does; any unless said. */
  readonly othersUpTo?: number;
  /** It executes attempts on trial and no others: the candidate's version, and its release. It takes all unless said. */
  readonly triesOnly?: { readonly version: string; readonly trial: string };
  /** Whether it would begin at once what it is given; it would unless said. */
  readonly hasFreeSlot?: boolean;
}

/** A pending item, as far as it matters to a release that may try it. */
interface Triable {
  readonly returned: { readonly budgets: Pick<ReturnedRecord, Behind> } | null;
  readonly checkpoint: { readonly version: string } | null;
  readonly keyed?: object;
}

type Behind = "charged" | "lost" | "isApart" | "tried";

/**
 * Whether it may be tried, and judged: it has no key, no attempt of it was charged, no loss of it counted, that release has not tried it,
 * and no other version has left a checkpoint.
 */
export function isClean(
  { returned, checkpoint, keyed }: Triable,
  { version, trial }: { readonly version: string; readonly trial: string },
): boolean {
  if (keyed !== undefined) return false;
  if (checkpoint !== null && checkpoint.version !== version) return false;
  return returned === null || isUnharmed(returned.budgets, trial);
}

/** The same of an item that is with a worker. */
export function isUnharmed(
  { charged, lost, isApart, tried }: Pick<ReturnedRecord, Behind>,
  trial: string,
): boolean {
  return charged === 0 && lost === 0 && !isApart && tried !== trial;
}

/** A pending item, as far as it matters here. */
interface Keepable extends Triable {
  /** Its place. */
  readonly key: Place;
  readonly weight: number;
  readonly returned: { readonly budgets: Pick<ReturnedRecord, Behind | "failedBy"> } | null;
  /** The state of its key. */
  readonly keyed?: { readonly stateVersion: number };
}

interface Kept<Item> {
  readonly item: Item;
  readonly failedBy: string;
  /** Monotonic. */
  readonly sinceMs: number;
}

const ITEMS_MAX = 4_096;
const WEIGHT_MAX = 16 * 2 ** 20;
/** The longest that an item waits for another worker than the one that failed it: as long as the longest backoff. */
const PATIENCE_MS = 60_000;

/** Whether it has to be looked at who takes it: another than has failed it, and for `taker` whether it may be tried. */
export function isParticular(item: Keepable, { triesOnly }: Pick<Taker, "triesOnly"> = {}): boolean {
  const { returned } = item;
  if (returned !== null && returned.budgets.failedBy !== "") return true;
  return triesOnly !== undefined && !isClean(item, triesOnly);
}

export class Shelf<Item extends Keepable> {
  /** Each list in order of place. Items that nobody has failed stand under the empty name. */
  readonly #byFailer = new Map<string, Kept<Item>[]>();
  readonly #places = new Set<string>();
  #weight = 0;

  get size(): number {
    return this.#places.size;
  }

  get isFull(): boolean {
    return this.size >= ITEMS_MAX || this.#weight >= WEIGHT_MAX;
  }

  /** It has room for many. */
  get isLow(): boolean {
    return this.size <= ITEMS_MAX / 2 && this.#weight <= WEIGHT_MAX / 2;
  }

  has(place: string): boolean {
    return this.#places.has(place);
  }

  /** An item that is in no window any more. */
  put(item: Item, sinceMs: number): void {
    const kept = { item, failedBy: item.returned?.budgets.failedBy ?? "", sinceMs };
    insert(this.#listOf(kept.failedBy), kept);
    this.#places.add(item.key);
    this.#weight += item.weight;
  }

  /** The first one that this worker may have; it stays until it is removed. */
  peek(taker: Taker): Item | undefined {
    return this.#first(taker, (kept) => mayTake(taker, kept));
  }

  /** The same of those that wait for this worker alone. */
  peekOwn(taker: Taker): Item | undefined {
    return this.#first(taker, ({ item }) => isNobodyElses(taker, item));
  }

  #first(taker: Taker, mayHave: (kept: Kept<Item>) => boolean): Item | undefined {
    let best: Item | undefined;
    for (const list of this.#byFailer.values()) {
      const first = list.find(({ item }) => goesOnFrom(taker, item));
      if (first === undefined || !mayHave(first)) continue;
      if (best === undefined || orderOf(first.item.key) < orderOf(best.key)) best = first.item;
    }
    return best;
  }

  /** It leaves what is pending, or the shelf with its window. Unknown ones are ignored. */
  remove(place: Place): void {
    if (!this.#places.delete(place)) return;
    for (const list of this.#byFailer.values()) {
      const at = search(list, place);
      if (list[at]?.item.key !== place) continue;
      const [gone] = list.splice(at, 1);
      this.#weight -= gone?.item.weight ?? 0;
      if (list.length === 0 && gone !== undefined) this.#byFailer.delete(gone.failedBy);
      return;
    }
  }

  #listOf(failedBy: string): Kept<Item>[] {
    const known = this.#byFailer.get(failedBy);
    if (known !== undefined) return known;
    const list: Kept<Item>[] = [];
    this.#byFailer.set(failedBy, list);
    return list;
  }
}

/** Whether the worker can begin with the state of the item's key, and tries it if it does nothing else. */
function goesOnFrom({ takesKeys, stateVersion = Infinity, triesOnly }: Taker, item: Keepable): boolean {
  if (triesOnly !== undefined && !isClean(item, triesOnly)) return false;
  const { key, keyed } = item;
  if (keyed !== undefined && keyed.stateVersion > stateVersion) return false;
  return takesKeys !== false || !isKeyed(key);
}

/** Another worker than the one that failed it, where there is one and it comes in time. */
function mayTake(taker: Taker, { item, failedBy, sinceMs }: Kept<Keepable>): boolean {
  const { worker, isOnlyOne, nowMs } = taker;
  if (failedBy !== worker || isOnlyOne) return true;
  return isNobodyElses(taker, item) || nowMs - sinceMs >= PATIENCE_MS;
}

/** No other worker goes on from the state of its key. */
function isNobodyElses({ othersUpTo = Infinity }: Taker, { keyed }: Keepable): boolean {
  return keyed !== undefined && keyed.stateVersion > othersUpTo;
}

function insert<Item extends Keepable>(list: Kept<Item>[], kept: Kept<Item>): void {
  list.splice(search(list, kept.item.key), 0, kept);
}

/** Where the place stands in the list, or would. */
function search(list: readonly Kept<Keepable>[], place: Place): number {
  const order = orderOf(place);
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const item = list[middle]?.item;
    if (item !== undefined && orderOf(item.key) < order) low = middle + 1;
    else high = middle;
  }
  return low;
}
