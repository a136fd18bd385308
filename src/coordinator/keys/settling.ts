// The end of an item of a key: its state is committed with the result, what the result asks for is carried out, and the next of its mail
// becomes the head. A failure parks the key, unless its items are to be passed over.
import type { KeyedEnd, LeftState } from "../ledger/key-room.ts";
import { isInside } from "../ledger/place.ts";
import type { Place } from "../ledger/place.ts";
import type { Asking } from "./asking.ts";
import type { Endings, RoomParts } from "./endings.ts";
import { RUNNING } from "./key.ts";
import type { Key, Letter } from "./key.ts";
import { invocationOf } from "./lanes.ts";

const WHY_CHARACTERS = 200;

/** The parts of the room that the end of an item changes. */
interface Parts extends RoomParts {
  readonly endings: Endings;
  readonly asking: Asking;
}

export class Settling {
  readonly #parts: Parts;
  readonly #skipsFailed: boolean;

  constructor(parts: Parts, skipsFailed: boolean) {
    this.#parts = parts;
    this.#skipsFailed = skipsFailed;
  }

  /** Returns the place of the item of its key that has succeeded last before it, if there is one. */
  settled(place: Place, end: KeyedEnd): Place | undefined {
    const { boxes, queue, endings } = this.#parts;
    const key = boxes.headed(place);
    const { head, last } = key;
    const wasRunning = key.row.state === RUNNING;
    if (isInside(place)) this.#countEnd(end, wasRunning);
    if (end.kind === "failed" && this.#parks(key, end)) {
      key.why = `${end.class}: ${end.message}`.slice(0, WHY_CHARACTERS);
      boxes.step(key, { type: "item.failed" });
      return last;
    }
    if (end.kind === "done" && (end.left?.stateVersion ?? 0) > 0) key.last = place;
    queue.remove(key);
    if (!wasRunning) boxes.pending--;
    if (head !== undefined) this.#heard(key, head, end);
    boxes.step(key, { type: "item.settled" });
    boxes.endHead(key);
    endings.leaveIfOver(key);
    return last;
  }

  /** Nothing waits behind an invocation. */
  #parks({ text }: Key, { sparesKey }: Extract<KeyedEnd, { kind: "failed" }>): boolean {
    return !sparesKey && !this.#skipsFailed && invocationOf(text) === undefined;
  }

  #heard(key: Key, head: Letter, end: KeyedEnd): void {
    const { asking } = this.#parts;
    if (end.kind === "done") asking.heard(key, head.item?.origin ?? head.origin);
    else if (end.class !== "cancelled") asking.passedOver(key, head, end.message);
    if (end.kind === "done" && end.left !== undefined) {
      this.#commit(key, end.left, end.commit);
      if (end.left.asks !== undefined) asking.carryOut(key, head, end.left.asks);
    }
    if (key.isLane) asking.invocationEnded(key, head, end);
  }

  #countEnd(end: KeyedEnd, wasRunning: boolean): void {
    this.#parts.rows.countInside((inside) => {
      if (wasRunning) inside.running--;
      if (end.kind === "done") inside.done++;
      else inside.failedByClass[end.class]++;
    });
  }

  #commit(key: Key, { state, stateVersion = 0, heardBy }: LeftState, commit: number): void {
    const { memory, rows, warmth } = this.#parts;
    if (state === "kept" || (state === "removed" && !key.hasState)) return;
    key.commit = commit;
    key.hasState = state !== "removed";
    key.stateVersion = key.hasState ? stateVersion : 0;
    if (state === "removed") memory.dropState(key);
    // A copy: what keeps the state must not keep the whole message that it came in.
    else memory.keepState(key, new Uint8Array(state));
    rows.touchState(key);
    warmth.committed(key, heardBy);
  }
}
