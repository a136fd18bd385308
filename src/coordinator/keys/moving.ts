// Keys on their way from one run to another: told with all that is theirs, and taken as they were told. A telling is complete only while
// nothing of the key is with a worker, which is for the one who asks to see to.
//
// Keeps true: a key is taken whole, once: what has taken it is known by a mark in its row, and one that is there for another reason is
// refused.
import type { Origin } from "../ledger/origin.ts";
import type { ItemRecord } from "../ledger/records.ts";
import { Actor } from "./actor.ts";
import type { Live, Parent } from "./actor.ts";
import type { RoomParts } from "./endings.ts";
import { RUNNING } from "./key.ts";
import type { Key } from "./key.ts";
import type { TimerRecord } from "./timer-record.ts";
import { Timer } from "./timers.ts";

/** The part of a key that only an actor has. */
export interface MovedActor {
  readonly parent: Parent | undefined;
  readonly nextNumber: number;
  readonly isFinal: boolean;
  readonly live: readonly Live[];
  readonly timers: readonly Omit<TimerRecord, "key">[];
}

/** A key as the room tells it; its items and its state are in the store. */
export interface ToldKey {
  readonly text: string;
  readonly partition: number;
  readonly isPaused: boolean;
  readonly hasState: boolean;
  readonly actor: MovedActor | undefined;
  /** Sequences of items before this one are of an actor that was stopped. */
  readonly since: number;
}

/** Why a key cannot be told: an item of it is with a worker, waits after a failure, or has failed and keeps it. */
export type Unmovable = "running" | "failed";

export interface MovedItem extends Pick<ItemRecord, "id" | "payload" | "label"> {
  readonly priority: number;
  readonly origin: Origin | undefined;
}

/** A key to take. */
export interface MovedKey {
  readonly text: string;
  readonly isPaused: boolean;
  readonly state: Uint8Array | undefined;
  readonly stateVersion: number;
  /** In order. */
  readonly items: readonly MovedItem[];
  readonly actor: MovedActor | undefined;
  /** Names what is taken: the same once more is known. */
  readonly mark: string;
}

export type TakenVerdict = "taken" | "known" | "there";

export function toldKey({ text, partition, row, hasState, actor }: Key): ToldKey | Unmovable {
  const { isPaused, hasFailed, isDelayed } = row.context;
  if (hasFailed) return "failed";
  if (row.state === RUNNING || isDelayed) return "running";
  const told = { text, partition, isPaused, hasState, since: actor?.since ?? 0 };
  if (actor === undefined) return { ...told, actor };
  const { parent, nextNumber, isFinal, live, timers, retirement } = actor;
  const armed = [...timers.values(), ...(retirement === undefined ? [] : [retirement])];
  return {
    ...told,
    actor: {
      ...{ parent, nextNumber, isFinal, live: [...live.values()].map((one) => ({ ...one })) },
      timers: armed.map(({ key: _, ...timer }) => timer),
    },
  };
}

export class Moving {
  readonly #parts: RoomParts;
  readonly #ensure: (text: string) => Key;

  constructor(parts: RoomParts, ensure: (text: string) => Key) {
    [this.#parts, this.#ensure] = [parts, ensure];
  }

  verdictOf({ text, mark }: Pick<MovedKey, "text" | "mark">): TakenVerdict {
    const key = this.#parts.table.get(text);
    if (key === undefined) return "taken";
    return key.mark === mark ? "known" : "there";
  }

  /** Its items are ordered, and added in the same turn. `commit` is one that no state has. */
  take(moved: MovedKey, commit: number): void {
    const { rows, memory, warmth, boxes, orders } = this.#parts;
    const key = this.#ensure(moved.text);
    key.mark = moved.mark;
    if (moved.state !== undefined) {
      key.commit = commit;
      key.hasState = true;
      key.stateVersion = moved.stateVersion;
      memory.keepState(key, new Uint8Array(moved.state));
      rows.touchState(key);
      warmth.committed(key, undefined);
    }
    if (moved.actor !== undefined) this.#takeActor(key, moved.actor, moved.items);
    if (moved.isPaused) boxes.step(key, { type: "key.paused" });
    rows.touch(key);
    for (const { origin, ...item } of moved.items) {
      const added = { ...item, payload: new Uint8Array(item.payload), key: moved.text, label: item.label };
      orders.push({ kind: "add", item: { ...added, ...(origin && { origin }) } });
    }
  }

  #takeActor(
    key: Key,
    { parent, nextNumber, isFinal, live, timers }: MovedActor,
    items: readonly MovedItem[],
  ): void {
    const { rows, nextSequence } = this.#parts;
    rows.touchInside();
    const actor = (key.actor = new Actor());
    actor.parent = parent;
    actor.nextNumber = nextNumber;
    actor.isFinal = isFinal;
    actor.since = nextSequence();
    for (const one of live) actor.live.set(one.id, { ...one });
    for (const { origin } of items) if (origin?.kind === "timer") actor.fired.set(origin.id, origin.number);
    for (const record of timers) {
      const timer = new Timer({ ...record, event: new Uint8Array(record.event), key: key.text });
      if (timer.id === "") actor.retirement = timer;
      else actor.timers.set(timer.id, timer);
      this.#parts.timers.arm(timer);
      rows.putTimer(key, timer);
    }
  }
}
