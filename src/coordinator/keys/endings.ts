// The ends of actors: a child or an invocation is left by the actor that has started it, an actor is final, a key is forgotten. All that
// was its own goes in the same commit: timers, invocations, children and theirs; what waits in its mail is dropped as it comes up.
import type { Order } from "../ledger/key-room.ts";
import type { PendingItem } from "../ledger/ledger.ts";
import { Actor } from "./actor.ts";
import type { Live } from "./actor.ts";
import { DELAYED, IDLE, RUNNING } from "./key.ts";
import type { Key } from "./key.ts";
import type { KeyMemory } from "./key-memory.ts";
import type { KeyQueue } from "./key-queue.ts";
import type { KeyRows } from "./key-rows.ts";
import type { KeyTable } from "./key-table.ts";
import { invocationLane } from "./lanes.ts";
import type { Mailboxes } from "./mailboxes.ts";
import type { Timers } from "./timers.ts";
import type { Warmth } from "./warmth.ts";

/** The parts of the room that the end of an actor changes. */
export interface RoomParts {
  readonly table: KeyTable;
  readonly rows: KeyRows;
  readonly memory: KeyMemory;
  readonly warmth: Warmth;
  readonly queue: KeyQueue;
  readonly boxes: Mailboxes;
  readonly timers: Timers;
  readonly orders: Order<PendingItem>[];
  /** The first sequence that no item has. */
  readonly nextSequence: () => number;
}

export class Endings {
  readonly #parts: RoomParts;

  constructor(parts: RoomParts) {
    this.#parts = parts;
  }

  /** The actor of the key, made when it was none. */
  actorOf(key: Key): Actor {
    this.#parts.rows.touchInside();
    return (key.actor ??= new Actor());
  }

  /** An invocation or a child that its actor does not wait for any more. False when it has none of that id. */
  leave(key: Key, id: string): boolean {
    const live = key.actor?.live.get(id);
    if (live === undefined) return false;
    key.actor?.live.delete(id);
    this.#parts.rows.touch(key);
    this.#end(key, live);
    return true;
  }

  #end({ text }: Key, { id, number, isChild }: Live): void {
    const { table } = this.#parts;
    const lane = table.get(isChild ? `${text}/${id}` : invocationLane(text, id, number));
    if (lane === undefined) return;
    const { parent } = lane.actor ?? {};
    if (lane.isLane) this.#clear(lane);
    else if (parent?.key === text && parent.number === number) this.stop(lane);
  }

  /** A timer is not wanted any more, whether it is armed or its event waits in the mail. */
  disarm(key: Key, id: string): void {
    const { actor } = key;
    if (actor === undefined) return;
    const timer = actor.timers.get(id);
    if (timer !== undefined) {
      actor.timers.delete(id);
      this.#parts.timers.disarm(timer);
      this.#parts.rows.dropTimer(key, timer);
    }
    if (actor.fired.delete(id)) this.#parts.rows.touch(key);
  }

  /** Nothing of it is waited for any more: its timers, its invocations and its children end. */
  release(key: Key): void {
    const { actor } = key;
    if (actor === undefined) return;
    for (const id of [...actor.timers.keys(), ...actor.fired.keys()]) this.disarm(key, id);
    for (const id of [...actor.live.keys()]) this.leave(key, id);
    const { retirement } = actor;
    if (retirement === undefined) return;
    actor.retirement = undefined;
    this.#parts.timers.disarm(retirement);
    this.#parts.rows.dropTimer(key, retirement);
  }

  /** The actor is there no more. Items that wait are dropped as they come up, and the key goes behind the last of them. */
  stop(key: Key): void {
    const { memory, rows, warmth } = this.#parts;
    this.release(key);
    this.#withdraw(key);
    const actor = this.close(key);
    actor.isFinal = false;
    actor.parent = undefined;
    // Another actor may begin here: it has no history yet.
    key.last = undefined;
    if (key.hasState) {
      key.hasState = false;
      key.stateVersion = 0;
      memory.dropState(key);
      rows.touchState(key);
      warmth.committed(key, undefined);
    }
    rows.touch(key);
    this.#clear(key);
  }

  /** Items that were submitted until now are for an actor that is there no more. */
  close(key: Key): Actor {
    const actor = this.actorOf(key);
    actor.since = this.firstSequence;
    actor.isGone = true;
    return actor;
  }

  /** Items that are about to be added are not, if they are for an actor that is stopped. */
  #withdraw({ text }: Key): void {
    const { orders } = this.#parts;
    const others = orders.filter((order) => order.kind !== "add" || order.item.key !== text);
    if (others.length < orders.length) orders.splice(0, orders.length, ...others);
  }

  /** The first sequence that no item has, nor any that is about to be added. */
  get firstSequence(): number {
    const { orders, nextSequence } = this.#parts;
    return nextSequence() + orders.filter(({ kind }) => kind === "add").length;
  }

  /** The key goes on, failed or paused: to drop what nobody wants. */
  #clear(key: Key): void {
    const { boxes, queue, orders } = this.#parts;
    const { isPaused, hasFailed } = key.row.context;
    if (key.row.state === RUNNING && key.head?.id !== undefined)
      orders.push({ kind: "drop", id: key.head.id });
    queue.remove(key);
    if (hasFailed) {
      boxes.step(key, { type: "key.skipped" });
      key.why = "";
      boxes.endHead(key);
    }
    if (isPaused) boxes.step(key, { type: "key.resumed" });
    if (key.row.state === DELAYED) boxes.wake(key);
    boxes.look(key);
    this.removeIfGone(key);
  }

  /** Behind an item of the key. A child that has told its parent of its end goes, and so does a key that nobody needs. */
  leaveIfOver(key: Key): void {
    if (key.actor?.isFinal === true && key.actor.parent !== undefined) this.stop(key);
    else this.removeIfGone(key);
  }

  /** Behind the last item of a key that nobody needs. */
  removeIfGone(key: Key): void {
    const isNeeded = !key.isLane && key.actor?.isGone !== true;
    if (!isNeeded && key.row.state === IDLE.state) this.remove(key);
  }

  /** The key is idle, and forgotten with all that is its own. */
  remove(key: Key): void {
    const { boxes, memory, warmth, rows, table } = this.#parts;
    this.release(key);
    boxes.retire(key);
    for (const part of [memory, warmth]) part.forget(key);
    rows.retire(key);
    table.remove(key);
  }
}
