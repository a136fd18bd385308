// The asks of results, carried out in the turn that records the result: timers are set, invocations and children begin, messages and
// actions become items. And what becomes of them later: a timer is due, an invocation or a child ends.
//
// Keeps true: all of it stands in the batch of the state that has asked for it (K9); the end of an invocation is told once (K10).
import type { Asks, Final, Start } from "../ledger/asks.ts";
import type { KeyedEnd } from "../ledger/key-room.ts";
import type { Origin } from "../ledger/origin.ts";
import { insideItemIdOf, priorityOf } from "../ledger/place.ts";
import { isThere } from "./admission.ts";
import type { Actor } from "./actor.ts";
import type { Endings, RoomParts } from "./endings.ts";
import type { Key, Letter } from "./key.ts";
import { actionLane, invocationLane, invocationOf } from "./lanes.ts";
import { Timer } from "./timers.ts";

/** Index of the item that tells of an end: no result asks for so many. */
const END_INDEX = 2 ** 32 - 1;
/** Timers that are due and go off in one turn. */
const FIRED_MAX = 1_024;

/** The item whose result asks. */
interface Asker {
  readonly id: Uint8Array;
  readonly priority: number;
  /** Counts what it has asked for. */
  asked: number;
}

export class Asking {
  readonly #parts: RoomParts;
  readonly #endings: Endings;
  readonly #ensure: (text: string) => Key;
  steadyMs = 0;

  constructor(parts: RoomParts, endings: Endings, ensure: (text: string) => Key) {
    this.#parts = parts;
    this.#endings = endings;
    this.#ensure = ensure;
  }

  /** An item of the key has succeeded: its actor waits for it no more. */
  heard(key: Key, origin: Origin | undefined): void {
    const { actor } = key;
    if (actor === undefined) return;
    if (origin?.kind === "timer") return this.#heardTimer(key, actor, origin);
    if (origin?.kind !== "outcome" && origin?.kind !== "failure") return;
    const { id, number } = origin;
    if (actor.live.get(id)?.number !== number) return;
    actor.live.delete(id);
    this.#parts.rows.touch(key);
  }

  /**
   * An item of the key has failed, and the key goes on without it. An actor that has not heard of the end of what it has begun
   * leaves it with its state, as if it were there. A child whose start it was is over: its parent is told why.
   */
  passedOver(key: Key, head: Letter, message: string): void {
    const { actor } = key;
    const origin = head.item?.origin ?? head.origin;
    if (actor === undefined) return;
    if (origin?.kind === "timer") return this.#heardTimer(key, actor, origin);
    const id = head.item?.id ?? head.id;
    if (origin?.kind !== "start" || actor.parent === undefined || id === undefined) return;
    actor.isFinal = true;
    this.#tellEnd(actor.parent, { id, priority: priorityOf(head.place), asked: 0 }, { message });
  }

  #heardTimer(key: Key, actor: Actor, { id, number }: Extract<Origin, { kind: "timer" }>): void {
    if (actor.fired.get(id) !== number) return;
    actor.fired.delete(id);
    this.#parts.rows.touch(key);
  }

  carryOut(key: Key, head: Letter, asks: Asks): void {
    if (head.id === undefined) return;
    const asker: Asker = { id: head.id, priority: priorityOf(head.place), asked: 0 };
    for (const id of asks.stopped) this.#endings.leave(key, id);
    for (const id of asks.cancelled) this.#endings.disarm(key, id);
    this.#setTimers(key, asker, asks);
    for (const start of asks.invocations) this.#invoke(key, asker, start);
    for (const start of asks.children) this.#startChild(key, asker, start);
    for (const { to, event, isOptional } of asks.sends)
      this.#send(asker, to, event, { kind: "mail", from: key.text, isOptional });
    for (const { type, params } of asks.actions)
      this.#add(asker, actionLane(key.text), params, { kind: "action", type, key: key.text });
    if (asks.final !== undefined) this.#finish(key, asker, asks.final);
  }

  #add(asker: Asker, key: string, bytes: Uint8Array, origin: Origin, index = asker.asked++): void {
    // A copy: what waits must not keep the whole message that it came in.
    const payload = new Uint8Array(bytes);
    const { id, priority } = asker;
    const item = { id: insideItemIdOf(id, index), payload, key, label: "", origin, priority };
    this.#parts.orders.push({ kind: "add", item });
  }

  #send(asker: Asker, to: string, event: Uint8Array, origin: Extract<Origin, { kind: "mail" }>): void {
    const index = asker.asked++;
    if (origin.isOptional && !isThere(this.#parts.table.get(to)) && !this.#isBegun(to)) return;
    this.#add(asker, to, event, origin, index);
  }

  /** An item that is about to be added begins it. */
  #isBegun(text: string): boolean {
    return this.#parts.orders.some((order) => order.kind === "add" && order.item.key === text);
  }

  #setTimers(key: Key, asker: Asker, asks: Asks): void {
    for (const { id, delayMs, event, to, isOptional } of asks.timers) {
      this.#endings.disarm(key, id);
      const sent = { event: new Uint8Array(event), to: to === key.text ? "" : to, isOptional };
      this.#arm(key, asker, { id, dueMs: Math.ceil(this.steadyMs + delayMs), ...sent });
    }
  }

  #arm(key: Key, asker: Asker, parts: Pick<Timer, "id" | "dueMs" | "event" | "to" | "isOptional">): void {
    const actor = this.#endings.actorOf(key);
    const { id, priority } = asker;
    const by = { asker: new Uint8Array(id), index: asker.asked++, priority };
    const timer = new Timer({ ...parts, ...by, key: key.text, number: actor.nextNumber++ });
    if (parts.id === "") actor.retirement = timer;
    else actor.timers.set(parts.id, timer);
    this.#parts.timers.arm(timer);
    this.#parts.rows.putTimer(key, timer);
    this.#parts.rows.touch(key);
  }

  #invoke(key: Key, asker: Asker, { id, source, input }: Start): void {
    const number = this.#begin(key, { id, source, isChild: false });
    const lane = invocationLane(key.text, id, number);
    this.#add(asker, lane, input, { kind: "invocation", id, source, key: key.text });
  }

  #startChild(key: Key, asker: Asker, { id, source, input }: Start): void {
    const number = this.#begin(key, { id, source, isChild: true });
    const child = this.#ensure(`${key.text}/${id}`);
    const actor = this.#endings.actorOf(child);
    // Mail that waits is of an earlier one.
    actor.since = this.#endings.firstSequence;
    actor.isGone = false;
    actor.parent = { key: key.text, id, number };
    this.#parts.rows.touch(child);
    this.#add(asker, child.text, input, { kind: "start", id, source, parent: key.text });
  }

  #begin(
    key: Key,
    start: { readonly id: string; readonly source: string; readonly isChild: boolean },
  ): number {
    const actor = this.#endings.actorOf(key);
    const number = actor.nextNumber++;
    actor.live.set(start.id, { ...start, number, hasEnded: false });
    this.#parts.rows.touch(key);
    return number;
  }

  /** A child goes with its end, behind the item that has brought it about. */
  #finish(key: Key, asker: Asker, { output, error, idleTtlMs }: Final): void {
    this.#endings.release(key);
    const actor = this.#endings.actorOf(key);
    actor.isFinal = true;
    this.#parts.rows.touch(key);
    const { parent } = actor;
    if (parent !== undefined) {
      this.#tellEnd(parent, asker, error === undefined ? { output } : { message: error });
      return;
    }
    if (idleTtlMs === undefined) return;
    const nothing = { event: new Uint8Array(), to: "", isOptional: false };
    this.#arm(key, asker, { id: "", dueMs: Math.ceil(this.steadyMs + idleTtlMs), ...nothing });
  }

  /** The item of an invocation is final. */
  invocationEnded(lane: Key, { place, id }: Letter, end: KeyedEnd): void {
    const invocation = invocationOf(lane.text);
    if (invocation === undefined || id === undefined) return;
    // Nobody waits for one that was stopped, or cancelled with its run.
    if (end.kind === "failed" && end.class === "cancelled") return;
    this.#tellEnd(invocation, { id, priority: priorityOf(place), asked: 0 }, end);
  }

  #tellEnd(
    { key: text, id, number }: { readonly key: string; readonly id: string; readonly number: number },
    asker: Asker,
    end: { readonly output: Uint8Array } | { readonly message: string },
  ): void {
    const key = this.#parts.table.get(text);
    const live = key?.actor?.live.get(id);
    if (key === undefined || live?.number !== number || live.hasEnded) return;
    live.hasEnded = true;
    this.#parts.rows.touch(key);
    const kind = "output" in end ? "outcome" : "failure";
    const payload = "output" in end ? end.output : Buffer.from(end.message);
    this.#add(asker, text, payload, { kind, id, number, isChild: live.isChild }, END_INDEX);
  }

  /** All that is due. Whether anything was. */
  fire(): boolean {
    const { timers, table, rows } = this.#parts;
    let fired = 0;
    for (let timer = timers.peek(); timer !== undefined && fired < FIRED_MAX; timer = timers.peek()) {
      if (timer.dueMs > this.steadyMs) break;
      fired++;
      timers.disarm(timer);
      const key = table.get(timer.key);
      if (key?.actor === undefined) continue;
      rows.dropTimer(key, timer);
      this.#goOff(key, key.actor, timer);
    }
    return fired > 0;
  }

  #goOff(key: Key, actor: NonNullable<Key["actor"]>, timer: Timer): void {
    const { id, number, to, event, isOptional, priority, asker, index } = timer;
    if (id === "") {
      actor.retirement = undefined;
      return this.#endings.stop(key);
    }
    actor.timers.delete(id);
    const by: Asker = { id: asker, priority, asked: index };
    if (to !== "") return this.#send(by, to, event, { kind: "mail", from: key.text, isOptional });
    actor.fired.set(id, number);
    this.#parts.rows.touch(key);
    this.#add(by, key.text, event, { kind: "timer", id, number });
  }
}
