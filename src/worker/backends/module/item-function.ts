// A user's function executes items: the values that it is called with, and its result as bytes.
import type { JsonObject } from "../../../config/manifest-fields.ts";
import type { CodeOutcome } from "../code/code-messages.ts";
import { parseJsonText, tell } from "../code/serve-code.ts";
import type { CodeAttempt, Executing } from "../code/serve-code.ts";

/** Given to the function beside the item. */
export interface ItemContext {
  /** The item's id in hexadecimal. */
  readonly itemId: string;
  /** Counted from 1. */
  readonly attempt: number;
  /** The item's exact bytes. */
  readonly payload: Uint8Array;
  /** The manifest's `parameters`. */
  readonly parameters: JsonObject;
  /** Aborts when the attempt is not wanted any more, or its time is over: end soon, and save a checkpoint if it helps. */
  readonly signal: AbortSignal;
  /** The value that an earlier attempt saved last; undefined when there is none. */
  readonly checkpoint: unknown;
  /** Keeps a JSON value or bytes for the next attempt, should this one not come to its end. */
  readonly saveCheckpoint: (value: unknown) => void;
  /** A line for the log of the attempt; `console.log` does the same. */
  readonly log: (text: string) => void;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Executes an item, which is the JSON value of its line, or the line as a text when it is not JSON. The value that it returns is
 * the output: bytes as they are, nothing as `null`, anything else as JSON. An error that it throws fails the attempt.
 */
export type ItemFunction = (item: unknown, context: ItemContext) => unknown;

/** Before bytes in a checkpoint; JSON never begins with it. */
const BYTES_TAG = 0;

/** Throws when the export is no function. */
export async function loadItemFunction(exported: unknown, options: JsonObject): Promise<Executing> {
  if (typeof exported !== "function")
    throw new TypeError(`its export is ${describe(exported)}, not a function`);
  const execute = exported as ItemFunction;
  const parameters = (options["parameters"] ?? {}) as JsonObject;
  return async (attempt) => {
    const { payload } = attempt.message;
    const output: unknown = await execute(parseJsonText(payload), contextOf(attempt, parameters));
    return outcomeOf(output);
  };
}

function contextOf({ message, signal, saveCheckpoint }: CodeAttempt, parameters: JsonObject): ItemContext {
  const { itemId, attempt, payload, env, checkpoint } = message;
  return {
    itemId: Buffer.from(itemId).toString("hex"),
    attempt,
    payload,
    parameters,
    signal,
    checkpoint: checkpointValue(checkpoint),
    saveCheckpoint: (value) => saveCheckpoint(checkpointBytes(value)),
    log: (text) => tell(`${text}\n`),
    env,
  };
}

function outcomeOf(output: unknown): CodeOutcome {
  if (output instanceof Uint8Array) return { kind: "success", output };
  return { kind: "success", output: jsonBytes(output, "it returned") };
}

function checkpointBytes(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return Buffer.concat([Buffer.of(BYTES_TAG), value]);
  return jsonBytes(value, "the checkpoint is");
}

function checkpointValue(checkpoint: Uint8Array): unknown {
  if (checkpoint.length === 0) return undefined;
  return checkpoint[0] === BYTES_TAG ? checkpoint.subarray(1) : parseJsonText(checkpoint);
}

function jsonBytes(value: unknown, what: string): Uint8Array {
  if (typeof value === "function" || typeof value === "symbol")
    throw new TypeError(`${what} ${describe(value)}, which JSON has not`);
  return Buffer.from(JSON.stringify(value ?? null));
}

function describe(value: unknown): string {
  return value === null || value === undefined ? String(value) : `a ${typeof value}`;
}
