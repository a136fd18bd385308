// The acts of operators on keys: one is paused and let go on, freed of the item that parks it, or forgotten.
import { IDLE } from "./key.ts";
import type { Key, KeyAction, SteerVerdict } from "./key.ts";
import type { KeyQueue } from "./key-queue.ts";
import type { KeyTable } from "./key-table.ts";
import type { Asking } from "./asking.ts";
import type { Endings } from "./endings.ts";
import { actionLane } from "./lanes.ts";
import type { Mailboxes } from "./mailboxes.ts";

/** The parts of the room that an operator's act changes. */
interface Parts {
  readonly table: KeyTable;
  readonly queue: KeyQueue;
  readonly boxes: Mailboxes;
  readonly endings: Endings;
  readonly asking: Asking;
}

export class Steering {
  readonly #parts: Parts;
  #hasSkipped = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  steer(text: string, action: KeyAction): SteerVerdict {
    const { table, boxes, queue } = this.#parts;
    const key = table.get(text);
    // Its actions outlive an actor.
    if (key === undefined) return action === "skip" ? this.#skipAction(text, "unknown") : "unknown";
    const { isPaused, hasFailed } = key.row.context;
    switch (action) {
      case "pause":
        boxes.step(key, { type: "key.paused" });
        queue.remove(key);
        return "done";
      case "resume":
        if (hasFailed) return "headFailed";
        if (isPaused) boxes.step(key, { type: "key.resumed" });
        boxes.look(key);
        return "done";
      case "skip":
        if (!hasFailed) return this.#skipAction(text, "notFailed");
        this.#skip(key);
        return "done";
      case "retire":
        if (key.row.state !== IDLE.state) return "notIdle";
        this.#parts.endings.remove(key);
        return "done";
    }
  }

  #skip(key: Key): void {
    const { asking, boxes, endings } = this.#parts;
    if (key.head !== undefined) asking.passedOver(key, key.head, key.why);
    boxes.step(key, { type: "key.skipped" });
    key.why = "";
    boxes.endHead(key);
    endings.leaveIfOver(key);
  }

  /** An actor that nothing parks may have a named action that parks the others. */
  #skipAction(text: string, otherwise: SteerVerdict): SteerVerdict {
    const lane = this.#parts.table.get(actionLane(text));
    if (lane?.row.context.hasFailed !== true) return otherwise;
    this.#skip(lane);
    return "done";
  }

  /** All that parked before failed items were skipped. */
  skipAll(): void {
    if (this.#hasSkipped) return;
    this.#hasSkipped = true;
    const { table } = this.#parts;
    const failed = [...table].filter(({ row }) => row.context.hasFailed);
    for (const key of failed) this.#skip(key);
  }
}
