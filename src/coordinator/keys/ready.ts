// Keys whose heads may be given out: those of each worker's partitions, and those that any worker may have. A head that its owner has
// not taken within the time to spill goes to any worker that has a slot free, as one does whose partition has no owner, and one that was
// returned. While a turn gives out, those are lent to the workers that are to be asked first.
//
// Keeps true: a key stands in one heap at most, by the order of its head, and in a line by the time since when it is ready. An entry that
// is no key's place any more is dropped when it comes to the top, or to the front.
import type { WorkerId } from "../../base/ids.ts";
import type { Key } from "./key.ts";

interface Entry {
  readonly key: Key;
  readonly order: string;
}

/** Entries that are looked at for a worker that cannot have the first one. */
const LOOKED_AT_MAX = 256;

/** A heap of keys, the first by order of priority and submission on top. */
export class ReadyHeap {
  readonly #entries: Entry[] = [];
  /** The keys that stand here. */
  size = 0;

  push(key: Key): void {
    const entries = this.#entries;
    const entry = { key, order: key.order };
    let at = entries.push(entry) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = entries[above];
      if (parent === undefined || parent.order <= entry.order) break;
      entries[at] = parent;
      at = above;
    }
    entries[at] = entry;
  }

  /** Stale entries on top are dropped. */
  peek(): Key | undefined {
    for (let [top] = this.#entries; top !== undefined; [top] = this.#entries) {
      if (isThere(this, top)) return top.key;
      this.#dropTop();
    }
    return undefined;
  }

  /**
   * The first key whose state is of this version at most. It may miss one far behind others that are of later versions, which wait for
   * workers of another version.
   */
  peekUpTo(stateVersion: number): Key | undefined {
    const top = this.peek();
    if (top === undefined || top.stateVersion <= stateVersion) return top;
    let best: Entry | undefined;
    for (const entry of this.#entries.slice(0, LOOKED_AT_MAX)) {
      if (entry.key.stateVersion > stateVersion || !isThere(this, entry)) continue;
      if (best === undefined || entry.order < best.order) best = entry;
    }
    return best?.key;
  }

  /** The keys that stand here, in no order. */
  get keys(): Key[] {
    const there = this.#entries.filter((entry) => isThere(this, entry));
    return [...new Set(there.map(({ key }) => key))];
  }

  #dropTop(): void {
    const entries = this.#entries;
    const last = entries.pop();
    if (last === undefined || entries.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      let child = entries[below];
      const right = entries[below + 1];
      if (child === undefined) break;
      if (right !== undefined && right.order < child.order) [below, child] = [below + 1, right];
      if (child.order >= last.order) break;
      entries[at] = child;
      at = below;
    }
    entries[at] = last;
  }
}

function isThere(heap: ReadyHeap, { key, order }: Entry): boolean {
  return key.queue === heap && key.order === order;
}

interface Waiting {
  readonly key: Key;
  /** When it became ready, monotonic. */
  readonly sinceMs: number;
}

/** The line holds so many entries more than twice those that are ready before the others are dropped. */
const LINE_SLACK = 1_024;

export class Ready {
  readonly #spillAfterMs: number;
  readonly #own = new Map<WorkerId, ReadyHeap>();
  readonly #common = new ReadyHeap();
  /** Heads of the common heap that are lent, by worker. */
  readonly #lent = new Map<WorkerId, ReadyHeap>();
  /** All heads in the order in which they became ready; those that have gone included. */
  #line: Waiting[] = [];
  /** No head that is ready stands before this one; and none that waits for its owner before that one. */
  #first = 0;
  #firstOwn = 0;
  /** Owners have their partitions since then, monotonic. */
  #ownedSinceMs = -Infinity;
  #size = 0;

  constructor(spillAfterMs: number) {
    this.#spillAfterMs = spillAfterMs;
  }

  get size(): number {
    return this.#size;
  }

  /** Its head can be given out, by `order`: to its owner first, if it has one. */
  put(key: Key, owner: WorkerId | undefined, nowMs: number): void {
    key.readySinceMs = nowMs;
    this.#size++;
    this.#line.push({ key, sinceMs: nowMs });
    this.#place(key, key.isForAll ? undefined : owner);
    if (this.#line.length > 2 * this.#size + LINE_SLACK) this.#closeUp();
  }

  #place(key: Key, owner: WorkerId | undefined): void {
    stand(key, owner === undefined ? this.#common : heapOf(this.#own, owner));
  }

  remove(key: Key): void {
    leave(key);
    this.#size--;
  }

  /** How many keys wait for a worker as their owner. */
  countOwn(worker: WorkerId): number {
    return this.#own.get(worker)?.size ?? 0;
  }

  /** The first key of a worker's own; and of all others that may go to it. States are of this version at most. */
  peekOwn(worker: WorkerId, stateVersion: number): Key | undefined {
    return this.#own.get(worker)?.peekUpTo(stateVersion);
  }

  peekOther(worker: WorkerId, stateVersion: number): Key | undefined {
    const lent = this.#lent.get(worker)?.peekUpTo(stateVersion);
    const common = this.#common.peekUpTo(stateVersion);
    return lent !== undefined && (common === undefined || lent.order < common.order) ? lent : common;
  }

  get hasCommon(): boolean {
    return this.#common.size > 0;
  }

  /** Lends keys that any worker may have, in their order, until one cannot be lent. `takeBack` follows in the same turn. */
  lend(toWhom: (partition: number) => WorkerId | undefined): void {
    for (let key = this.#common.peek(); key !== undefined; key = this.#common.peek()) {
      const worker = toWhom(key.partition);
      if (worker === undefined) return;
      stand(key, heapOf(this.#lent, worker));
    }
  }

  /** Keys that were lent and not taken are for any worker again. False when there are none. */
  takeBack(): boolean {
    const left = [...this.#lent.values()].flatMap((heap) => heap.keys);
    this.#lent.clear();
    for (const key of left) stand(key, this.#common);
    return left.length > 0;
  }

  /** Any key that is ready; undefined when none is. */
  peekAny(stateVersion: number): Key | undefined {
    const common = this.#common.peekUpTo(stateVersion);
    if (common !== undefined) return common;
    for (const heap of this.#own.values()) {
      const key = heap.peekUpTo(stateVersion);
      if (key !== undefined) return key;
    }
    return undefined;
  }

  /** Heads that have waited long enough for their owners are for anybody from now on: so many of them, those that have waited longest. */
  spill(nowMs: number, count: number): void {
    for (let left = count; left > 0; left--) {
      const key = this.longestForOwner;
      if (key === undefined || this.#spillsAtMs(key) > nowMs) return;
      key.isForAll = true;
      this.#place(key, undefined);
    }
  }

  /** When the head spills that has waited for its owner for longest, monotonic; undefined while none waits. */
  get spillsAtMs(): number | undefined {
    const key = this.longestForOwner;
    return key && this.#spillsAtMs(key);
  }

  /** The key that has waited for its owner for longest. */
  get longestForOwner(): Key | undefined {
    for (let at = this.#line[this.#firstOwn]; at !== undefined; at = this.#line[++this.#firstOwn])
      if (isInLine(at) && at.key.queue !== this.#common) return at.key;
    return undefined;
  }

  /** Partitions have other owners: heads that wait for theirs wait for the new ones. */
  reassign(ownerOf: (key: Key) => WorkerId | undefined, nowMs: number): void {
    const ownerless = this.#common.keys.filter(({ isForAll }) => !isForAll);
    const keys = [...ownerless, ...[...this.#own.values()].flatMap((heap) => heap.keys)];
    this.#own.clear();
    this.#ownedSinceMs = nowMs;
    this.#firstOwn = this.#first;
    for (const key of keys) this.#place(key, ownerOf(key));
  }

  /** When the head that has been ready for longest became so, monotonic. */
  get oldestMs(): number | undefined {
    for (let at = this.#line[this.#first]; at !== undefined; at = this.#line[++this.#first])
      if (isInLine(at)) return at.sinceMs;
    return undefined;
  }

  #spillsAtMs({ readySinceMs }: Key): number {
    return Math.max(readySinceMs, this.#ownedSinceMs) + this.#spillAfterMs;
  }

  /** Only those that are ready stay. */
  #closeUp(): void {
    this.#line = this.#line.filter(isInLine);
    this.#first = 0;
    this.#firstOwn = 0;
  }
}

/** Whether it is ready still, since then. */
function isInLine({ key: { queue, readySinceMs }, sinceMs }: Waiting): boolean {
  return queue instanceof ReadyHeap && readySinceMs === sinceMs;
}

function stand(key: Key, heap: ReadyHeap): void {
  leave(key);
  key.queue = heap;
  heap.size++;
  heap.push(key);
}

function leave(key: Key): void {
  if (key.queue instanceof ReadyHeap) key.queue.size--;
  key.queue = undefined;
}

function heapOf(heaps: Map<WorkerId, ReadyHeap>, worker: WorkerId): ReadyHeap {
  const known = heaps.get(worker);
  if (known !== undefined) return known;
  const heap = new ReadyHeap();
  heaps.set(worker, heap);
  return heap;
}
