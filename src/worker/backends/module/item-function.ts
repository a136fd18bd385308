// A user's function executes items: the values that it is called with, and its result as bytes.
import type { JsonObject } from "../../../base/exact-json.ts";
import type { CodeOutcome } from "../code/code-messages.ts";
import { kindOf, parseJsonText, refuseUnlessFunction, tell } from "../code/serve-code.ts";
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
  /** The item's key; undefined when it has none. */
  readonly key: string | undefined;
  /** The state of its key, as the last item of the key left it; undefined when there is none. */
  readonly state: unknown;
  /** To be returned: the output, and a JSON value or bytes as the state of the key from now on. Nothing, or null: it has none. */
  readonly withState: (output: unknown, state: unknown) => unknown;
  /** A line for the log of the attempt; `console.log` does the same. */
  readonly log: (text: string) => void;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Executes an item, which is the JSON value of its line, or the line as a text when it is not JSON. The value that it returns is
 * the output: bytes as they are, nothing as `null`, anything else as JSON. An error that it throws fails the attempt.
 */
export type ItemFunction = (item: unknown, context: ItemContext) => unknown;

/** Before bytes in a checkpoint or a state; JSON never begins with it. */
const BYTES_TAG = 0;

class WithState {
  readonly output: unknown;
  readonly state: unknown;

  constructor(output: unknown, state: unknown) {
    this.output = output;
    this.state = state;
  }
}

const withState = (output: unknown, state: unknown): WithState => new WithState(output, state);

/** Throws when the export is no function. */
export async function loadItemFunction(exported: unknown, options: JsonObject): Promise<Executing> {
  refuseUnlessFunction("its export", exported);
  const execute = exported as ItemFunction;
  const parameters = (options["parameters"] ?? {}) as JsonObject;
  return async (attempt) => {
    const { payload } = attempt.message;
    const output: unknown = await execute(parseJsonText(payload), contextOf(attempt, parameters));
    return outcomeOf(output);
  };
}

function contextOf({ message, signal, saveCheckpoint }: CodeAttempt, parameters: JsonObject): ItemContext {
  const { itemId, attempt, payload, env, checkpoint, keyed } = message;
  return {
    itemId: Buffer.from(itemId).toString("hex"),
    attempt,
    payload,
    parameters,
    signal,
    checkpoint: checkpoint.length === 0 ? undefined : keptValue(checkpoint),
    saveCheckpoint: (value) => saveCheckpoint(keptBytes("the checkpoint is", value)),
    key: keyed?.key,
    state: keyed?.state && keptValue(keyed.state),
    withState,
    log: (text) => tell(`${text}\n`),
    env,
  };
}

function outcomeOf(returned: unknown): CodeOutcome {
  if (!(returned instanceof WithState)) return { kind: "success", output: outputBytes(returned) };
  const { output, state = null } = returned;
  const change = state === null ? "removed" : keptBytes("the state is", state);
  return { kind: "success", output: outputBytes(output), state: change };
}

function outputBytes(output: unknown): Uint8Array {
  return output instanceof Uint8Array ? output : jsonBytes(output, "it returned");
}

/** A checkpoint or a state. */
function keptBytes(what: string, value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return Buffer.concat([Buffer.of(BYTES_TAG), value]);
  return jsonBytes(value, what);
}

function keptValue(kept: Uint8Array): unknown {
  return kept[0] === BYTES_TAG ? kept.subarray(1) : parseJsonText(kept);
}

function jsonBytes(value: unknown, what: string): Uint8Array {
  if (typeof value === "function" || typeof value === "symbol")
    throw new TypeError(`${what} ${kindOf(value)}, which JSON cannot hold`);
  return Buffer.from(JSON.stringify(value ?? null));
}
