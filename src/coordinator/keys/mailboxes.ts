// The mailboxes of keys: each key is moved by its chart here and nowhere else, its head is drawn from its mail, and stands where it is given
// out from as soon as all of it is in memory.
//
// Keeps true: an item that is not final is the head of its key or in its mail, once (K3).
import type { KeyEvent } from "../../../machines/key.ts";
import { assert } from "../../base/assert.ts";
import type { Effect } from "../../runtime/compile.ts";
import type { Order } from "../ledger/key-room.ts";
import type { PendingItem } from "../ledger/ledger.ts";
import { sequenceOf } from "../ledger/place.ts";
import type { Place } from "../ledger/place.ts";
import { DELAYED, IDLE, keyChart, NO_LETTERS, RUNNING, storedState, WAITING } from "./key.ts";
import type { Key, Letter } from "./key.ts";
import type { KeyCounts } from "./key-counts.ts";
import type { KeyMemory } from "./key-memory.ts";
import type { KeyQueue } from "./key-queue.ts";
import type { KeyRows } from "./key-rows.ts";
import type { KeyTable } from "./key-table.ts";
import { isAlive, refusalOf } from "./judgement.ts";
import { appendMail, insertMail } from "./mail.ts";

/** The chart of a key asks for none. */
const NO_EFFECTS: Effect[] = [];

/** The parts of the room that a move of a key changes. */
interface Parts {
  readonly rows: KeyRows;
  readonly table: KeyTable;
  readonly counts: KeyCounts;
  readonly laneCounts: KeyCounts;
  readonly memory: KeyMemory;
  readonly queue: KeyQueue;
  readonly orders: Order<PendingItem>[];
}

export class Mailboxes {
  readonly #rows: KeyRows;
  readonly #counts: KeyCounts;
  readonly #laneCounts: KeyCounts;
  readonly #table: KeyTable;
  readonly #orders: Order<PendingItem>[];
  readonly #memory: KeyMemory;
  readonly #queue: KeyQueue;
  /** By the place of the head. */
  readonly #heads = new Map<Place, Key>();
  /** Places of heads that wait and that nobody waits for. */
  readonly #left = new Set<Place>();
  /** Items that are neither with a worker nor wait for a time. */
  pending = 0;
  nowMs = 0;

  constructor({ rows, counts, laneCounts, table, memory, queue, orders }: Parts) {
    this.#table = table;
    this.#orders = orders;
    this.#rows = rows;
    this.#counts = counts;
    this.#laneCounts = laneCounts;
    this.#memory = memory;
    this.#queue = queue;
  }

  /** The key whose head stands at the place. */
  #countsOf({ isLane }: Key): KeyCounts {
    return isLane ? this.#laneCounts : this.#counts;
  }

  find(place: Place): Key | undefined {
    return this.#heads.get(place);
  }

  headed(place: Place): Key {
    const key = this.#heads.get(place);
    assert(key !== undefined, "an item of a key that moves is the head of its key");
    return key;
  }

  /** Gives the chart an event. False when it ignores it. */
  step(key: Key, event: KeyEvent): boolean {
    const before = key.row;
    const after = keyChart.step(before, event, NO_EFFECTS);
    if (after === before) return false;
    key.row = after.state === IDLE.state ? IDLE : after;
    const counts = this.#countsOf(key);
    counts.went(before);
    counts.came(key.row);
    if (storedState(before.state) !== storedState(after.state) || before.context !== after.context)
      this.#rows.touch(key);
    return true;
  }

  /** An item more behind all that the key has; `item` is what is in memory of it. */
  append(key: Key, letter: Letter, item: PendingItem | undefined): void {
    const { row, isKnown, head, behind } = key;
    const isFirst = head === undefined && behind === 0;
    this.step(key, { type: "mail.arrived" });
    this.pending++;
    if (isFirst) this.#beginHead(key, letter);
    else this.#rows.putMail(key, letter.place);
    const isNear = isFirst || appendMail(key, letter, isKnown);
    if (isNear && item !== undefined) this.#memory.keep(letter, item, isFirst);
    if (isFirst || row.state === WAITING) this.look(key);
  }

  /** An item more in its place among those behind the head. */
  insert(key: Key, letter: Letter): void {
    const { isKnown } = key;
    this.#rows.putMail(key, letter.place);
    this.step(key, { type: "mail.arrived" });
    this.pending++;
    insertMail(key, letter, isKnown);
  }

  /** The head goes behind an item that was submitted before it and was taken back, where it may. */
  recede(key: Key): void {
    const { head, isKnown } = key;
    const [first] = key.next;
    if (head === undefined || first === undefined || !key.isOpen) return;
    if (sequenceOf(first.place) > sequenceOf(head.place)) return;
    this.#queue.remove(key);
    this.#heads.delete(head.place);
    this.#rows.putMail(key, head.place);
    key.head = undefined;
    key.isForAll = false;
    this.draw(key);
    insertMail(key, head, isKnown);
  }

  #beginHead(key: Key, letter: Letter): void {
    key.head = letter;
    this.#heads.set(letter.place, key);
  }

  /** The head is final, or the key goes on without it: the next one takes its place. */
  endHead(key: Key): void {
    if (key.head !== undefined) {
      this.#memory.release(key.head);
      this.#heads.delete(key.head.place);
    }
    key.head = undefined;
    key.isForAll = false;
    this.draw(key);
    this.look(key);
  }

  /** Makes the first of the mail the head of a key that has none. */
  draw(key: Key): void {
    const [first] = key.next;
    if (key.head !== undefined || first === undefined || key.row.context.mail === 0) return;
    key.next = key.next.length > 1 ? key.next.slice(1) : NO_LETTERS;
    this.#rows.dropMail(key, first.place);
    this.#beginHead(key, first);
    this.#rows.touch(key);
  }

  /** Puts the head where it is given out from, or has what it lacks read. */
  look(key: Key): void {
    const { head, row } = key;
    if (row.context.mail > 0 && !key.isLoading) this.#memory.hunger(key);
    if (row.state !== WAITING) return this.#queue.remove(key);
    if (key.queue !== undefined || head?.item === undefined || (key.hasState && key.state === undefined))
      return;
    if (head.isCondemned) return;
    const failure = refusalOf(this.#table, key, head.item);
    if (failure !== undefined) {
      head.isCondemned = true;
      this.#orders.push({ kind: "end", item: head.item, failure });
      return;
    }
    const { text, statedCommit: commit, state = null, stateVersion } = key;
    const { origin } = head.item;
    head.item = {
      ...head.item,
      keyed: { key: text, commit, state, stateVersion, ...(origin && { origin }) },
    };
    this.#queue.put(key, head.item, this.nowMs);
  }

  /** Its head waits, and nobody waits for it: to come to its end it has to be woken. */
  wake({ head }: Key): void {
    if (head === undefined) return;
    this.#left.add(head.place);
    this.#orders.push({ kind: "wake", place: head.place });
  }

  /** The same again of all that waits on: what is in memory of those that wait may have changed. A replay has to find them. */
  wakeLeft(isReplayed: boolean): void {
    for (const place of this.#left) this.#orders.push({ kind: "wake", place });
    if (!isReplayed) return;
    for (const key of this.#table)
      if (key.row.state === DELAYED && !isAlive(this.#table, key)) this.wake(key);
  }

  /** It waits no more. */
  isDue(place: Place): void {
    this.#left.delete(place);
  }

  /** It leaves memory: what is known of it as long as it is the head. */
  noteHead(head: Letter, { id, origin }: Pick<PendingItem, "id" | "origin">): void {
    head.id = id;
    if (origin !== undefined) head.origin = origin;
  }

  /** The key is idle, and forgotten. */
  retire(key: Key): void {
    this.step(key, { type: "key.retired" });
    this.#countsOf(key).went(key.row);
  }

  /** For replay: a key as its row has it. */
  restore(key: Key, { isRunning }: { readonly isRunning: boolean }): void {
    const { context } = key.row;
    if (isRunning) key.row = { state: RUNNING, context };
    this.#countsOf(key).came(key.row);
    if (key.head !== undefined) this.#heads.set(key.head.place, key);
    this.pending += context.mail - (isRunning || context.isDelayed ? 1 : 0);
    if (context.mail > 0) this.#memory.hunger(key);
  }
}
