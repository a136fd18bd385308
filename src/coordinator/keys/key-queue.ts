// Heads on their way to workers: each goes to whoever has its partition, or after a while to the first worker behind that one on the
// ring that has a free slot, or to anybody. Where nobody has a free slot it stays its owner's, whose backlog it may wait in: more work than
// slots is no reason for a state to move. A head that a worker has failed stands on the ledger's shelf for such items, and one that runs
// alone on that of those; a head that a full shelf has no room for is looked at again.
import { runsAlone } from "../../../machines/work-item.ts";
import type { WorkerId } from "../../base/ids.ts";
import type { Ledger, PendingItem } from "../ledger/ledger.ts";
import { orderOf } from "../ledger/place.ts";
import type { Taker } from "../ledger/shelf.ts";
import type { Assignment } from "./assignment.ts";
import type { Key } from "./key.ts";
import { Ready } from "./ready.ts";

type Ring = Pick<Assignment, "size" | "ownerOf" | "firstOf">;

const NO_RING: Ring = { size: 0, ownerOf: () => undefined, firstOf: () => undefined };

/** Heads looked at again in one turn. */
const SHELVED_AGAIN_MAX = 256;
/** A head that has waited so many times longer than another worker's own first, and for so many times to spill, is not its owner's alone. */
const PATIENCE = { ofOwn: 2, ofSpills: 8 };

export class KeyQueue {
  readonly #ready: Ready;
  readonly #spillAfterMs: number;
  readonly #shelves: Pick<Ledger, "shelf" | "alone">;
  readonly #shelfless = new Set<Key>();
  #ring = NO_RING;
  #onShelf = 0;
  #alone = 0;
  #nowMs = 0;

  constructor(spillAfterMs: number, shelves: Pick<Ledger, "shelf" | "alone">) {
    this.#ready = new Ready(spillAfterMs);
    this.#spillAfterMs = spillAfterMs;
    this.#shelves = shelves;
  }

  /** Heads that may be given out beside others. */
  get size(): number {
    return this.#ready.size + this.#onShelf;
  }

  /** Heads for anybody, or for their owners. */
  get isEmpty(): boolean {
    return this.#ready.size === 0;
  }

  /** Heads that run alone. */
  get alone(): number {
    return this.#alone;
  }

  /** When a head will wait for its owner no longer, monotonic; undefined while none is yet to. One that might go now waits for a free slot. */
  get spillsAtMs(): number | undefined {
    const { spillsAtMs } = this.#ready;
    return spillsAtMs !== undefined && spillsAtMs > this.#nowMs ? spillsAtMs : undefined;
  }

  /** When the head that has been ready for longest became so, monotonic; undefined while none is. */
  get oldestMs(): number | undefined {
    return this.#ready.oldestMs;
  }

  /** At the beginning of a turn. Returns heads that a shelf may have room for now. */
  turnBegins(nowMs: number): readonly Key[] {
    this.#nowMs = nowMs;
    if (this.#shelfless.size === 0) return [];
    const again = [...this.#shelfless].slice(0, SHELVED_AGAIN_MAX);
    for (const key of again) this.#shelfless.delete(key);
    return again;
  }

  /** Its head can be given out: `item` is all of it. */
  put(key: Key, { key: place, returned }: PendingItem, nowMs: number): void {
    const budgets = returned?.budgets;
    if (budgets !== undefined && runsAlone(budgets)) return this.#shelve(key, "alone", nowMs);
    if (budgets !== undefined && budgets.failedBy !== "") return this.#shelve(key, "shelf", nowMs);
    key.order = orderOf(place);
    this.#ready.put(key, this.#ring.ownerOf(key.partition), nowMs);
  }

  #shelve(key: Key, where: "shelf" | "alone", nowMs: number): void {
    const [shelf, item] = [this.#shelves[where], key.head?.item];
    if (item === undefined) return;
    if (shelf.isFull) return void this.#shelfless.add(key);
    shelf.put(item, nowMs);
    key.queue = where;
    if (where === "alone") this.#alone++;
    else this.#onShelf++;
  }

  /** Its head is not to be given out any more. Idempotent. */
  remove(key: Key): void {
    const { queue, head } = key;
    this.#shelfless.delete(key);
    if (queue === undefined) return;
    if (queue !== "shelf" && queue !== "alone") return this.#ready.remove(key);
    key.queue = undefined;
    if (head !== undefined) this.#shelves[queue].remove(head.place);
    if (queue === "alone") this.#alone--;
    else this.#onShelf--;
  }

  /** See `KeyRoom`. Beyond its slots a worker is given heads of its own partitions, and others' that have waited far longer. */
  next(taker: Taker): PendingItem | undefined {
    if (this.#ready.size === 0 || taker.takesKeys === false) return undefined;
    const { stateVersion = Infinity } = taker;
    const own = this.#ready.peekOwn(taker.worker, stateVersion);
    const mayTakeAny = taker.hasFreeSlot !== false || this.#ring.size === 0;
    const other = mayTakeAny
      ? this.#ready.peekOther(taker.worker, stateVersion)
      : this.#forgotten(own, stateVersion);
    const key = own === undefined || (other !== undefined && other.order < own.order) ? other : own;
    return key?.head?.item;
  }

  /** A head whose owner does not come to it, while a worker that is never out of its own goes on with those. */
  #forgotten(own: Key | undefined, stateVersion: number): Key | undefined {
    const key = this.#ready.longestForOwner;
    if (key === undefined || own === undefined || key.stateVersion > stateVersion) return undefined;
    const waitedMs = (one: Key): number => this.#nowMs - one.readySinceMs;
    const patienceMs = PATIENCE.ofOwn * waitedMs(own) + PATIENCE.ofSpills * this.#spillAfterMs;
    return waitedMs(key) > patienceMs ? key : undefined;
  }

  /** See `KeyRoom`. Slots that a worker's own heads will take are not free. */
  lend(freeSlots: () => Map<WorkerId, number>): (() => boolean) | undefined {
    const maySpill = (this.#ready.spillsAtMs ?? Infinity) <= this.#nowMs;
    if (this.#ring.size === 0 || !(maySpill || this.#ready.hasCommon)) return undefined;
    const free = freeSlots();
    const slots = [...free.values()].reduce((sum, count) => sum + Math.max(0, count), 0);
    this.#ready.spill(this.#nowMs, slots);
    const use = (worker: WorkerId, count: number): void => {
      const left = (free.get(worker) ?? 0) - count;
      if (left > 0) free.set(worker, left);
      else free.delete(worker);
    };
    for (const worker of [...free.keys()]) use(worker, this.#ready.countOwn(worker));
    this.#ready.lend((partition) => {
      const worker = this.#ring.firstOf(free.keys(), partition);
      if (worker !== undefined) use(worker, 1);
      return worker;
    });
    return () => this.#ready.takeBack();
  }

  nextUntried(taker: Taker): PendingItem | undefined {
    const { takesKeys, stateVersion = Infinity } = taker;
    return takesKeys === false ? undefined : this.#ready.peekAny(stateVersion)?.head?.item;
  }

  /** Partitions have other owners. */
  reassign(ring: Ring, nowMs: number): void {
    this.#ring = ring;
    this.#ready.reassign((key) => ring.ownerOf(key.partition), nowMs);
  }
}
