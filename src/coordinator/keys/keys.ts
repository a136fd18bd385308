// The room of keys. Items of one key run one at a time and in order, wherever; its state is committed with the result that made it.
//
// The room: `keys` moves each key by its chart, `key` is one of them and `key-table` all; `key-queue` and `ready` have those whose heads may go out,
// `key-memory` loads their items and states, `key-rows` and `key-records` store them, `replay-keys` reads them back, `warmth` says who has them. The ledger knows them by
// its door `KeyRoom` alone.
//
// Keeps true: an item that is not final is the head of its key or in its mail, once; a key has one item with a worker at most (K1);
// a state is that of the last success that was recorded (K2).
import type { KeyEvent } from "../../../machines/key.ts";
import { assert } from "../../base/assert.ts";
import type { WorkerId } from "../../base/ids.ts";
import type { Effect } from "../../runtime/compile.ts";
import type { Entry } from "../../storage/store.ts";
import type { KeyRoom, KeyedEnd, LeftState } from "../ledger/key-room.ts";
import type { Ledger, PendingItem } from "../ledger/ledger.ts";
import { priorityOf, sequenceOf } from "../ledger/place.ts";
import type { Place } from "../ledger/place.ts";
import type { ItemRecord } from "../ledger/records.ts";
import type { Taker } from "../ledger/shelf.ts";
import { IDLE, keyChart, NO_LETTERS, RUNNING, storedState, WAITING } from "./key.ts";
import type { Key, KeyAction, Letter, SteerVerdict } from "./key.ts";
import { KeyQueue } from "./key-queue.ts";
import { Assignment } from "./assignment.ts";
import type { Moved } from "./assignment.ts";
import type { KeySettings, KeysOptions } from "./key-settings.ts";
import { KeyCounts } from "./key-counts.ts";
import { addReadMail, appendMail, insertMail } from "./mail.ts";
import { KeyMemory } from "./key-memory.ts";
import type { KeysLoad, LoadedKey } from "./key-memory.ts";
import { KeyRows } from "./key-rows.ts";
import { KeyTable } from "./key-table.ts";
import { Warmth } from "./warmth.ts";

/** The memory of an item beside its payload, as in the windows. */
const ITEM_WEIGHT = 200;
const WHY_CHARACTERS = 200;
/** The chart of a key asks for none. */
const NO_EFFECTS: Effect[] = [];

export class Keys implements KeyRoom<PendingItem> {
  readonly settings: KeySettings;
  readonly table: KeyTable;
  readonly rows: KeyRows;
  readonly assignment: Assignment;
  readonly warmth = new Warmth();
  readonly #memory = new KeyMemory();
  readonly #queue: KeyQueue;
  readonly #stamp: Entry;
  /** By the place of the head. */
  readonly #heads = new Map<Place, Key>();
  readonly counts = new KeyCounts();
  #hasStamp: boolean;
  #hasSkipped = false;
  #nowMs = 0;
  #pending = 0;

  constructor({ settings, shelves, stamp, numbers, assignment }: KeysOptions) {
    this.settings = settings;
    const { totalPartitions } = numbers ?? settings;
    this.table = new KeyTable(totalPartitions, settings.maxKeysPerPartition);
    this.rows = new KeyRows(totalPartitions, numbers);
    this.#queue = new KeyQueue(settings.spillAfterMs, shelves);
    this.#stamp = stamp;
    this.assignment = new Assignment({ totalPartitions, virtualNodes: settings.virtualNodes }, assignment);
    this.#queue.reassign(this.assignment, this.#nowMs);
    this.#hasStamp = numbers !== undefined;
  }

  /** Whether the run has, or has had, items of keys. */
  get isInUse(): boolean {
    return this.#hasStamp;
  }

  get pending(): number {
    return this.#pending - this.#queue.alone;
  }

  get ready(): number {
    return this.#queue.size;
  }

  get hasOpen(): boolean {
    return !this.#queue.isEmpty || this.#memory.isHungry;
  }

  /** How long the head has been ready that waits for longest; undefined while none is. Walks over all that are. */
  get oldestReadyMs(): number | undefined {
    const { oldestMs } = this.#queue;
    return oldestMs === undefined ? undefined : Math.max(0, this.#nowMs - oldestMs);
  }

  /** When the room wants a turn although nothing happens; monotonic, undefined while it does not. */
  get wakesAtMs(): number | undefined {
    return this.#queue.spillsAtMs;
  }

  /** At the beginning of each turn. */
  turnBegins(nowMs: number): void {
    this.#nowMs = nowMs;
    if (!this.#hasStamp) return;
    for (const key of this.#queue.turnBegins(nowMs)) this.#look(key);
    if (this.settings.skipsFailed && !this.#hasSkipped) this.#skipAll();
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

  arrived(place: Place, { id, payload, key: text }: Pick<ItemRecord, "id" | "payload" | "key">): void {
    const key = this.#ensure(text);
    this.rows.openPriority(priorityOf(place));
    const weight = ITEM_WEIGHT + payload.length;
    const item = { key: place, weight, id, payload, checkpoint: null, returned: null };
    this.#append(key, { place, item: undefined }, item);
  }

  #append(key: Key, letter: Letter, item: PendingItem | undefined): void {
    const { row, isKnown, head, behind } = key;
    const isFirst = head === undefined && behind === 0;
    this.#step(key, { type: "mail.arrived" });
    this.#pending++;
    if (isFirst) this.#beginHead(key, letter);
    else this.rows.putMail(key, letter.place);
    const isNear = isFirst || appendMail(key, letter, isKnown);
    if (isNear && item !== undefined) this.#memory.keep(letter, item, isFirst);
    if (isFirst || row.state === WAITING) this.#look(key);
  }

  take(place: Place): void {
    const key = this.#heads.get(place);
    if (key !== undefined) this.#queue.remove(key);
  }

  assigned(place: Place): void {
    const key = this.#headed(place);
    this.#queue.remove(key);
    assert(this.#step(key, { type: "key.assigned" }), "K1: of a key that runs nothing more is given out");
    this.#pending--;
    key.isForAll = false;
    if (key.head !== undefined) this.#memory.release(key.head);
  }

  returned(place: Place): void {
    const key = this.#headed(place);
    this.#step(key, { type: "item.returned" });
    this.#pending++;
    key.isForAll = true;
    this.#look(key);
  }

  delayed(place: Place): void {
    this.#step(this.#headed(place), { type: "item.delayed" });
  }

  due(place: Place): void {
    const key = this.#heads.get(place);
    // Items that wait are read from the store: a leader that was succeeded may read those of the next one.
    if (key === undefined || !this.#step(key, { type: "item.due" })) return;
    this.#pending++;
    this.#look(key);
  }

  admits(place: Place, left: LeftState | undefined): string | undefined {
    if (left === undefined) return undefined;
    const key = this.#heads.get(place);
    const commit = key?.statedCommit ?? 0;
    const [is, was] = [left.stateVersion ?? 0, key?.stateVersion ?? 0];
    if (is < was && left.state !== "kept") return `its state is of version ${is}, and was of ${was}`;
    if (left.basedOn === commit) return undefined;
    return `the state that it began with is of commit ${left.basedOn}, and its key has that of ${commit}`;
  }

  /** The worker that was to begin this item does not have the state of its key. */
  missed(place: Place): void {
    this.warmth.missed(this.#headed(place));
  }

  settled(place: Place, end: KeyedEnd): Place | undefined {
    const key = this.#headed(place);
    const { last } = key;
    const parks = end.kind === "failed" && !end.sparesKey && !this.settings.skipsFailed;
    if (parks) key.why = end.why.slice(0, WHY_CHARACTERS);
    if (end.kind === "done") key.last = place;
    if (end.kind === "done" && end.left !== undefined) this.#commit(key, end.left, end.commit);
    this.#step(key, { type: parks ? "item.failed" : "item.settled" });
    if (!parks) this.#endHead(key);
    return last;
  }

  #commit(key: Key, { state, stateVersion = 0, heardBy }: LeftState, commit: number): void {
    if (state === "kept" || (state === "removed" && !key.hasState)) return;
    key.commit = commit;
    key.hasState = state !== "removed";
    key.stateVersion = key.hasState ? stateVersion : 0;
    if (state === "removed") this.#memory.dropState(key);
    // A copy: what keeps the state must not keep the whole message that it came in.
    else this.#memory.keepState(key, new Uint8Array(state));
    this.rows.touchState(key);
    this.warmth.committed(key, heardBy);
  }

  /** Before all that waits: in order of submission, as ever. */
  takenBack(place: Place, text: string): void {
    const key = this.#ensure(text);
    const letter: Letter = { place, item: undefined };
    if (key.head?.place === place) {
      this.#step(key, { type: "item.retried" });
      this.#pending++;
      key.why = "";
    } else if (key.behind === 0) this.#append(key, letter, undefined);
    else {
      const { isKnown } = key;
      this.rows.putMail(key, place);
      this.#step(key, { type: "mail.arrived" });
      this.#pending++;
      insertMail(key, letter, isKnown);
    }
    this.#recede(key);
    this.#look(key);
  }

  /** The head goes behind an item that was submitted before it and was taken back, where it may. */
  #recede(key: Key): void {
    const { head, isKnown } = key;
    const [first] = key.next;
    if (head === undefined || first === undefined || !key.isOpen) return;
    if (sequenceOf(first.place) > sequenceOf(head.place)) return;
    this.#queue.remove(key);
    this.#heads.delete(head.place);
    this.rows.putMail(key, head.place);
    key.head = undefined;
    key.isForAll = false;
    this.#draw(key);
    insertMail(key, head, isKnown);
  }

  /** The head that has failed, or an idle key, or all of it: as an operator asks. */
  steer(text: string, action: KeyAction): SteerVerdict {
    const key = this.table.get(text);
    if (key === undefined) return "unknown";
    const { isPaused, hasFailed } = key.row.context;
    switch (action) {
      case "pause":
        this.#step(key, { type: "key.paused" });
        this.#queue.remove(key);
        return "done";
      case "resume":
        if (hasFailed) return "headFailed";
        if (isPaused) this.#step(key, { type: "key.resumed" });
        this.#look(key);
        return "done";
      case "skip":
        if (!hasFailed) return "notFailed";
        this.#skip(key);
        return "done";
      case "retire":
        if (key.row.state !== IDLE.state) return "notIdle";
        this.#step(key, { type: "key.retired" });
        this.counts.went(key.row);
        for (const part of [this.#memory, this.warmth]) part.forget(key);
        this.rows.retire(key);
        this.table.remove(key);
        return "done";
    }
  }

  #skip(key: Key): void {
    this.#step(key, { type: "key.skipped" });
    key.why = "";
    this.#endHead(key);
  }

  /** All that parked before failed items were skipped. */
  #skipAll(): void {
    this.#hasSkipped = true;
    if (this.counts.parked === 0) return;
    for (const key of this.table) if (key.row.context.hasFailed) this.#skip(key);
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
    if (moved !== undefined) this.#queue.reassign(this.assignment, this.#nowMs);
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
      this.#draw(key);
      this.#recede(key);
      this.#look(key);
    }
  }

  /** For replay: a key as its row has it. */
  restore(key: Key, { isRunning }: { readonly isRunning: boolean }): void {
    const { context } = key.row;
    if (isRunning) key.row = { state: RUNNING, context };
    this.counts.came(key.row);
    if (key.head !== undefined) this.#heads.set(key.head.place, key);
    this.#pending += context.mail - (isRunning || context.isDelayed ? 1 : 0);
    if (context.mail > 0) this.#memory.hunger(key);
  }

  #ensure(text: string): Key {
    const [{ size }, key] = [this.table, this.table.ensure(text)];
    if (this.table.size > size) this.counts.came(IDLE);
    return key;
  }

  #headed(place: Place): Key {
    const key = this.#heads.get(place);
    assert(key !== undefined, "an item of a key that moves is the head of its key");
    return key;
  }

  #beginHead(key: Key, letter: Letter): void {
    key.head = letter;
    this.#heads.set(letter.place, key);
  }

  /** The head is final, or the key goes on without it: the next one takes its place. */
  #endHead(key: Key): void {
    if (key.head !== undefined) {
      this.#memory.release(key.head);
      this.#heads.delete(key.head.place);
    }
    key.head = undefined;
    key.isForAll = false;
    this.#draw(key);
    this.#look(key);
  }

  /** Makes the first of the mail the head of a key that has none. */
  #draw(key: Key): void {
    const [first] = key.next;
    if (key.head !== undefined || first === undefined || key.row.context.mail === 0) return;
    key.next = key.next.length > 1 ? key.next.slice(1) : NO_LETTERS;
    this.rows.dropMail(key, first.place);
    this.#beginHead(key, first);
    this.rows.touch(key);
  }

  /** Gives the chart an event. False when it ignores it. */
  #step(key: Key, event: KeyEvent): boolean {
    const before = key.row;
    const after = keyChart.step(before, event, NO_EFFECTS);
    if (after === before) return false;
    key.row = after.state === IDLE.state ? IDLE : after;
    this.counts.went(before);
    this.counts.came(key.row);
    if (storedState(before.state) !== storedState(after.state) || before.context !== after.context)
      this.rows.touch(key);
    return true;
  }

  /** Puts the head where it is given out from, or has what it lacks read. */
  #look(key: Key): void {
    const { head, row } = key;
    if (row.context.mail > 0 && !key.isLoading) this.#memory.hunger(key);
    if (row.state !== WAITING) return this.#queue.remove(key);
    if (key.queue !== undefined || head?.item === undefined || (key.hasState && key.state === undefined))
      return;
    const { text, statedCommit: commit, state = null, stateVersion } = key;
    head.item = { ...head.item, keyed: { key: text, commit, state, stateVersion } };
    this.#queue.put(key, head.item, this.#nowMs);
  }
}
