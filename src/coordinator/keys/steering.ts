// The acts of operators on keys: one is paused and let go on, freed of the item that parks it, or forgotten.
import { IDLE } from "./key.ts";
import type { Key, KeyAction, SteerVerdict } from "./key.ts";
import type { KeyCounts } from "./key-counts.ts";
import type { KeyMemory } from "./key-memory.ts";
import type { KeyQueue } from "./key-queue.ts";
import type { KeyRows } from "./key-rows.ts";
import type { KeyTable } from "./key-table.ts";
import type { Mailboxes } from "./mailboxes.ts";
import type { Warmth } from "./warmth.ts";

/** The parts of the room that an operator's act changes. */
interface Parts {
  readonly table: KeyTable;
  readonly rows: KeyRows;
  readonly counts: KeyCounts;
  readonly memory: KeyMemory;
  readonly warmth: Warmth;
  readonly queue: KeyQueue;
  readonly boxes: Mailboxes;
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
    if (key === undefined) return "unknown";
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
        if (!hasFailed) return "notFailed";
        this.#skip(key);
        return "done";
      case "retire":
        if (key.row.state !== IDLE.state) return "notIdle";
        this.#retire(key);
        return "done";
    }
  }

  #skip(key: Key): void {
    const { boxes } = this.#parts;
    boxes.step(key, { type: "key.skipped" });
    key.why = "";
    boxes.endHead(key);
  }

  /** All that parked before failed items were skipped. */
  skipAll(): void {
    if (this.#hasSkipped) return;
    this.#hasSkipped = true;
    const { counts, table } = this.#parts;
    if (counts.parked === 0) return;
    for (const key of table) if (key.row.context.hasFailed) this.#skip(key);
  }

  #retire(key: Key): void {
    const { boxes, counts, memory, warmth, rows, table } = this.#parts;
    boxes.step(key, { type: "key.retired" });
    counts.went(key.row);
    for (const part of [memory, warmth]) part.forget(key);
    rows.retire(key);
    table.remove(key);
  }
}
