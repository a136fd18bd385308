// Attempts as a worker has them when it was given them.
import type { Assigned } from "../../src/worker/work/backlog.ts";
import { attemptKey } from "../../src/worker/work/backlog.ts";
import { itemId } from "./scripted-coordinator.ts";

/** The first attempt of item `number`, whose payload is its number. */
export function assignedItem(number: number, parts: Partial<Assigned> = {}): Assigned {
  const { attempt = 1, epoch = 1n } = parts;
  const id = itemId(number);
  return {
    key: attemptKey(id, attempt, epoch),
    itemId: id,
    attempt,
    epoch,
    payload: Uint8Array.of(number),
    checkpoint: new Uint8Array(0),
    priority: 0,
    alone: false,
    plugin: "mock",
    version: "",
    timeoutMs: 0,
    ...parts,
  };
}
