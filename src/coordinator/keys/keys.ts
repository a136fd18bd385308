// The room of keys. Items of one key run one at a time and in order, wherever; its state is committed with the result that made it.
//
// The room: `mailboxes` moves each key by its chart, `key` is one of them, `key-table` all and `mail` what waits; `settling` ends the item of one;
// `key-queue` and `ready` have those whose heads may go out, by the `ring` and its `assignment`; `key-memory` loads items and states, `warmth` says who
// has them. `key-rows` stores them as `key-records`, `timer-record` and `partition-record` say, and `replay-keys` reads them back. Asks of an `actor`
// pass `admission` and are carried out by `asking`, with `timers`, `lanes`, `judgement` and `endings`. `steering` is what operators do,
// `moving` takes keys to another run, `awaited-keys` are those that calls wait for; `key-counts` and `inside-counts` count, `key-settings` are what the
// room is made with. The ledger knows all of it by its door `KeyRoom` alone.
//
// Keeps true: an item that is not final is the head of its key or in its mail, once; a key has one item with a worker at most (K1);
// a state is that of the last success that was recorded (K2).
import { assert } from "../../base/assert.ts";
import type { WorkerId } from "../../base/ids.ts";
import type { Entry } from "../../storage/store.ts";
import type { Fault, KeyRoom, KeyedEnd, LeftState, Order } from "../ledger/key-room.ts";
import type { Ledger, PendingItem } from "../ledger/ledger.ts";
import { isInside, priorityOf, sequenceOf } from "../ledger/place.ts";
import type { Place } from "../ledger/place.ts";
import type { FailureClass, ItemRecord } from "../ledger/records.ts";
import type { Taker } from "../ledger/shelf.ts";
import { Actor } from "./actor.ts";
import { faultOf } from "./admission.ts";
import { Asking } from "./asking.ts";
import { Endings } from "./endings.ts";
import { Timers } from "./timers.ts";
import type { Timer } from "./timers.ts";
import { IDLE } from "./key.ts";
import type { Key, KeyAction, Letter, SteerVerdict } from "./key.ts";
import { KeyQueue } from "./key-queue.ts";
import { Assignment } from "./assignment.ts";
import type { Moved } from "./assignment.ts";
import type { KeySettings, KeysOptions } from "./key-settings.ts";
import { KeyCounts } from "./key-counts.ts";
import { addReadMail } from "./mail.ts";
import { Mailboxes } from "./mailboxes.ts";
import { Moving } from "./moving.ts";
import { Settling } from "./settling.ts";
import { Steering } from "./steering.ts";
import { KeyMemory } from "./key-memory.ts";
import type { KeysLoad, LoadedKey } from "./key-memory.ts";
import { KeyRows } from "./key-rows.ts";
import { KeyTable } from "./key-table.ts";
import { Warmth } from "./warmth.ts";

/** The memory of an item beside its payload, as in the windows. */
const ITEM_WEIGHT = 200;

export class Keys implements KeyRoom<PendingItem> {
  readonly settings: KeySettings;
  readonly table: KeyTable;
  readonly rows: KeyRows;
  readonly assignment: Assignment;
  readonly warmth = new Warmth();
  readonly #memory = new KeyMemory();
  readonly #queue: KeyQueue;
  readonly #stamp: Entry;
  readonly #boxes: Mailboxes;
  readonly #steering: Steering;
  readonly counts = new KeyCounts();
  /** The same of lanes, which are no keys. */
  readonly laneCounts = new KeyCounts();
  readonly timers = new Timers();
  readonly #orders: Order<PendingItem>[] = [];
  readonly #endings: Endings;
  readonly #asking: Asking;
  readonly #settling: Settling;
  /** Keys from other runs. */
  readonly moving: Moving;
  #hasStamp: boolean;
  #areTimersOn = true;

  constructor({ settings, shelves, stamp, numbers, assignment, nextSequence }: KeysOptions) {
    this.settings = settings;
    const { totalPartitions } = numbers ?? settings;
    this.table = new KeyTable(totalPartitions, settings.maxKeysPerPartition);
    this.rows = new KeyRows(totalPartitions, numbers);
    this.#queue = new KeyQueue(settings.spillAfterMs, shelves);
    this.#stamp = stamp;
    this.assignment = new Assignment({ totalPartitions, virtualNodes: settings.virtualNodes }, assignment);
    const parts = {
      ...{
        table: this.table,
        rows: this.rows,
        counts: this.counts,
        laneCounts: this.laneCounts,
        warmth: this.warmth,
      },
      ...{ memory: this.#memory, queue: this.#queue, timers: this.timers },
      ...{ orders: this.#orders, nextSequence },
    };
    this.#boxes = new Mailboxes(parts);
    const room = { ...parts, boxes: this.#boxes };
    this.#endings = new Endings(room);
    this.#asking = new Asking(room, this.#endings, (text) => this.#ensure(text));
    const acts = { ...room, endings: this.#endings, asking: this.#asking };
    this.#settling = new Settling(acts, settings.skipsFailed);
    this.#steering = new Steering(acts);
    this.moving = new Moving(room, (text) => this.#ensure(text));
    this.#queue.reassign(this.assignment, 0);
    this.#hasStamp = numbers !== undefined;
  }

  /** Whether the run has, or has had, items of keys. */
  get isInUse(): boolean {
    return this.#hasStamp;
  }

  get pending(): number {
    return this.#boxes.pending - this.#queue.alone;
  }

  get ready(): number {
    return this.#queue.size;
  }

  get hasOpen(): boolean {
    return !this.#queue.isEmpty || this.#memory.isHungry;
  }

  /** How long the head has been ready that waits for longest; undefined while none is. */
  get oldestReadyMs(): number | undefined {
    const { oldestMs } = this.#queue;
    return oldestMs === undefined ? undefined : Math.max(0, this.#boxes.nowMs - oldestMs);
  }

  /** When the room wants a turn although nothing happens; monotonic, undefined while it does not. */
  get wakesAtMs(): number | undefined {
    const { spillsAtMs } = this.#queue;
    const dueMs = this.#areTimersOn ? this.timers.peek()?.dueMs : undefined;
    if (dueMs === undefined) return spillsAtMs;
    const firesAtMs = this.#boxes.nowMs + dueMs - this.#asking.steadyMs;
    return Math.min(firesAtMs, spillsAtMs ?? Infinity);
  }

  /** At the beginning of each turn. `steadyMs`: by the clock that timers go by. */
  turnBegins(nowMs: number, steadyMs: number): void {
    this.#boxes.nowMs = nowMs;
    this.#asking.steadyMs = steadyMs;
    if (!this.#hasStamp) return;
    for (const key of this.#queue.turnBegins(nowMs)) this.#boxes.look(key);
    if (this.settings.skipsFailed) this.#steering.skipAll();
  }

  /** Timers that are due go off, unless the run is over for good. Whether any did. */
  fire(isCancelled: boolean): boolean {
    this.#areTimersOn = !isCancelled;
    return this.#areTimersOn && this.#asking.fire();
  }

  /** How long until the next event is sent; undefined while no timer is armed that will go off. */
  get nextTimerMs(): number | undefined {
    const { nextEventMs } = this.timers;
    return nextEventMs === undefined || !this.#areTimersOn
      ? undefined
      : Math.max(0, nextEventMs - this.#asking.steadyMs);
  }

  takeOrders(): readonly Order<PendingItem>[] {
    return this.#orders.length === 0 ? this.#orders : this.#orders.splice(0);
  }

  /** At its end: its rows go into the turn's batch. */
  turnEnds(
    turn: { put(entry: Entry): void; delete(key: string): void },
    scrub: Ledger["scrub"],
  ): KeysLoad | undefined {
    this.rows.flush(turn, scrub);
    this.#memory.trim();
    return this.#memory.wants();
  }

  /** Programs that know of no keys refuse the store from here on. */
  begin(turn: { put(entry: Entry): void }): void {
    if (this.#hasStamp) return;
    this.#hasStamp = true;
    turn.put(this.#stamp);
  }

  arrived(place: Place, record: Pick<ItemRecord, "id" | "payload" | "key" | "origin">): void {
    const { id, payload, key: text, origin } = record;
    const key = this.#ensure(text);
    this.rows.openPriority(priorityOf(place));
    if (isInside(place)) this.rows.countInside((inside) => inside.items++);
    // Mail that waits is of an earlier actor; this is the first item of another one.
    if (key.actor?.isGone === true && sequenceOf(place) >= key.actor.since) key.actor.isGone = false;
    const weight = ITEM_WEIGHT + payload.length;
    const item = {
      key: place,
      weight,
      id,
      payload,
      checkpoint: null,
      returned: null,
      ...(origin && { origin }),
    };
    this.#boxes.append(key, { place, item: undefined }, item);
  }

  take(place: Place): void {
    const key = this.#boxes.find(place);
    if (key !== undefined) this.#queue.remove(key);
  }

  assigned(place: Place): void {
    const key = this.#boxes.headed(place);
    this.#queue.remove(key);
    assert(
      this.#boxes.step(key, { type: "key.assigned" }),
      "K1: of a key that runs nothing more is given out",
    );
    this.#boxes.pending--;
    key.isForAll = false;
    if (isInside(place)) this.rows.inside.running++;
    if (key.head === undefined) return;
    const { item } = key.head;
    if (item !== undefined) this.#boxes.noteHead(key.head, item);
    this.#memory.release(key.head);
  }

  returned(place: Place): void {
    const key = this.#boxes.headed(place);
    this.#boxes.step(key, { type: "item.returned" });
    if (isInside(place)) this.rows.inside.running--;
    this.#boxes.pending++;
    key.isForAll = true;
    this.#boxes.look(key);
  }

  delayed(place: Place): void {
    this.#boxes.step(this.#boxes.headed(place), { type: "item.delayed" });
    if (!isInside(place)) return;
    this.rows.inside.running--;
    this.rows.inside.delayed++;
  }

  due(place: Place): void {
    const key = this.#boxes.find(place);
    this.#boxes.isDue(place);
    // Items that wait are read from the store: a leader that was succeeded may read those of the next one.
    if (key === undefined || !this.#boxes.step(key, { type: "item.due" })) return;
    this.#boxes.pending++;
    if (isInside(place)) this.rows.inside.delayed--;
    this.#boxes.look(key);
  }

  /** Heads that wait, and that nobody waits for, come to their end. `isReplayed`: behind all keys of a new leader. */
  wakeLeft(isReplayed = false): void {
    this.#boxes.wakeLeft(isReplayed);
  }

  admits(place: Place, left: LeftState | undefined): Fault | undefined {
    if (left === undefined) return undefined;
    const { table, timers, settings } = this;
    return faultOf({ table, timers, maxMail: settings.maxMail }, this.#boxes.find(place), left);
  }

  /** The worker that was to begin this item does not have the state of its key. */
  missed(place: Place): void {
    this.warmth.missed(this.#boxes.headed(place));
  }

  settled(place: Place, end: KeyedEnd): Place | undefined {
    return this.#settling.settled(place, end);
  }

  /** Before all that waits: in order of submission, as ever. */
  takenBack(place: Place, text: string, from: FailureClass): void {
    const isThere = this.table.get(text) !== undefined;
    const key = this.#ensure(text);
    // An actor that is gone does not begin again by what others have sent to it.
    if (isInside(place) && !isThere && !key.isLane) this.#endings.close(key);
    if (isInside(place)) this.rows.countInside((inside) => inside.failedByClass[from]--);
    const letter: Letter = { place, item: undefined };
    if (key.head?.place === place) {
      this.#boxes.step(key, { type: "item.retried" });
      this.#boxes.pending++;
      key.why = "";
    } else if (key.behind === 0) this.#boxes.append(key, letter, undefined);
    else this.#boxes.insert(key, letter);
    this.#boxes.recede(key);
    this.#boxes.look(key);
  }

  /** The head that has failed, or an idle key, or all of it: as an operator asks. */
  steer(text: string, action: KeyAction): SteerVerdict {
    return this.#steering.steer(text, action);
  }

  next(taker: Taker): PendingItem | undefined {
    return this.#queue.next(taker);
  }

  nextUntried(taker: Taker): PendingItem | undefined {
    return this.#queue.nextUntried(taker);
  }

  lend(freeSlots: () => Map<WorkerId, number>): (() => boolean) | undefined {
    return this.#queue.lend(freeSlots);
  }

  /** These workers are on the ring from now on. Undefined when nothing has changed. */
  assign(members: ReadonlySet<WorkerId>): Moved | undefined {
    const moved = this.assignment.change(members);
    if (moved !== undefined) this.#queue.reassign(this.assignment, this.#boxes.nowMs);
    return moved;
  }

  /** The answer to a load comes back. */
  loaded(keys: readonly LoadedKey[]): void {
    for (const loaded of keys) {
      const key = this.table.get(loaded.text);
      if (!key?.isLoading) continue;
      const mail = this.#memory.take(key, loaded);
      if (key.isStale) this.#memory.hunger(key);
      else addReadMail(key, mail);
      key.isStale = false;
      this.#boxes.draw(key);
      this.#boxes.recede(key);
      this.#boxes.look(key);
    }
  }

  /** For replay: a key as its row has it. */
  restore(key: Key, how: { readonly isRunning: boolean }): void {
    this.#boxes.restore(key, how);
    const { head, row } = key;
    if (head === undefined || !isInside(head.place)) return;
    if (how.isRunning) this.rows.inside.running++;
    if (row.context.isDelayed) this.rows.inside.delayed++;
  }

  /** The same of a timer that is armed. */
  restoreTimer(key: Key, timer: Timer): void {
    key.actor ??= new Actor();
    if (timer.id === "") key.actor.retirement = timer;
    else key.actor.timers.set(timer.id, timer);
    this.timers.arm(timer);
  }

  #ensure(text: string): Key {
    const known = this.table.get(text);
    if (known !== undefined) return known;
    const key = this.table.ensure(text);
    (key.isLane ? this.laneCounts : this.counts).came(IDLE);
    return key;
  }
}
