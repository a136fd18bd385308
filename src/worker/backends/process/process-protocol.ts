// The lines that a worker and a long-lived child exchange: a JSON object each. docs/backends/process.md is its description.
//
// Keeps true: no more of a line is kept than it may be long (C8).
import { formatJson, memberOf, parseJson } from "../../../base/exact-json.ts";
import type { ItemAttempt, KeyOfItem, StateChange } from "../backend.ts";

/** How a child wants payloads: as what their JSON means, or all as text. */
export type PayloadForm = "json" | "text";

export type ChildLine =
  /** `saves`: it can save what it has learned. */
  | { readonly kind: "ready"; readonly payload: PayloadForm; readonly saves: boolean }
  | {
      readonly kind: "result";
      readonly id: number;
      readonly output: Uint8Array;
      readonly state?: StateChange;
    }
  | { readonly kind: "error"; readonly id: number; readonly message: string }
  | { readonly kind: "cancelled"; readonly id: number }
  | { readonly kind: "checkpoint"; readonly id: number; readonly checkpoint: Uint8Array }
  | { readonly kind: "log"; readonly id: number; readonly chunk: Uint8Array }
  /** The answer to `save`: without a reason, what it has learned is saved. */
  | { readonly kind: "saved"; readonly failure: string | undefined }
  /** It takes no more items and wants to end. */
  | { readonly kind: "retire" };

export interface Hello {
  /** Items that it gets at once, at most. */
  readonly concurrency: number;
  readonly maxOutputBytes: number;
}

export function helloLine({ concurrency, maxOutputBytes }: Hello): string {
  return lineOf({ type: "hello", protocol: 1, concurrency, max_output_bytes: maxOutputBytes });
}

/** `id` names the attempt in everything that is said of it. */
export function itemLine(id: number, attempt: ItemAttempt, form: PayloadForm): string {
  const { itemId, checkpoint, env } = attempt;
  const head = JSON.stringify({
    type: "item",
    id,
    item: Buffer.from(itemId).toString("hex"),
    attempt: attempt.attempt,
    run: env["ROLLOUT_RUN_ID"],
    slot: Number(env["ROLLOUT_SLOT"]),
    checkpoint: checkpoint.length === 0 ? null : base64(checkpoint),
  });
  // JSON is put in as it is: parsed and printed again, numbers would change.
  const payload = dataMember("payload", attempt.payload, form);
  return `${head.slice(0, -1)},${attempt.keyed ? `${keyMembers(attempt.keyed)},` : ""}${payload}}\n`;
}

function keyMembers({ key, state }: KeyOfItem): string {
  const member = state === undefined ? `"state":null` : dataMember("state", state, "json");
  return `"key":${JSON.stringify(key)},${member}`;
}

export function cancelLine(id: number): string {
  return lineOf({ type: "cancel", id });
}

/** To a child that has said that it can, and that has no item. */
export function saveLine(timeLeftMs: number): string {
  return lineOf({ type: "save", time_left_ms: Math.floor(timeLeftMs) });
}

/** Undefined when the line is none of the protocol. */
export function readLine(line: Uint8Array): ChildLine | undefined {
  const text = decode(line);
  const message = text === undefined ? undefined : parseJson(text);
  const type = memberOf(message, "type");
  if (type === "ready") {
    const payload = memberOf(message, "payload") === "text" ? "text" : "json";
    return { kind: "ready", payload, saves: memberOf(message, "saves") === true };
  }
  if (type === "retire") return { kind: "retire" };
  if (type === "saved") return { kind: "saved", failure: undefined };
  if (type === "not_saved") return { kind: "saved", failure: messageOf(message) };
  const id = memberOf(message, "id");
  return typeof id === "number" ? readOfItem(type, id, message) : undefined;
}

function readOfItem(type: unknown, id: number, message: unknown): ChildLine | undefined {
  switch (type) {
    case "result": {
      const output = outputOf(message);
      return output && { kind: "result", id, output, ...stateOf(message) };
    }
    case "error":
      return { kind: "error", id, message: messageOf(message) };
    case "cancelled":
      return { kind: "cancelled", id };
    case "checkpoint": {
      const checkpoint = bytesOf(memberOf(message, "checkpoint"));
      return checkpoint && { kind: "checkpoint", id, checkpoint };
    }
    case "log":
    case "progress": {
      const said = memberOf(message, "message");
      const text = type === "log" && typeof said === "string" ? said : formatJson(message);
      return { kind: "log", id, chunk: Buffer.from(`${text}\n`) };
    }
    default:
      return undefined;
  }
}

function messageOf(message: unknown): string {
  const said = memberOf(message, "message");
  return typeof said === "string" ? said : "it gave no message";
}

/** The JSON of `output`, or the bytes of `output_base64`. */
function outputOf(message: unknown): Uint8Array | undefined {
  const output = memberOf(message, "output");
  return output === undefined ? bytesOf(memberOf(message, "output_base64")) : Buffer.from(formatJson(output));
}

/** The JSON of `state`, or the bytes of `state_base64`; null is no state. */
function stateOf(message: unknown): { readonly state?: StateChange } {
  const value = memberOf(message, "state");
  if (value === null) return { state: "removed" };
  const state =
    value === undefined ? bytesOf(memberOf(message, "state_base64")) : Buffer.from(formatJson(value));
  return state === undefined ? {} : { state };
}

function bytesOf(value: unknown): Uint8Array | undefined {
  return typeof value === "string" ? Buffer.from(value, "base64") : undefined;
}

function dataMember(name: "payload" | "state", bytes: Uint8Array, form: PayloadForm): string {
  const text = decode(bytes);
  if (text === undefined) return `"${name}_base64":"${base64(bytes)}"`;
  const isJson = form === "json" && parseJson(text) !== undefined;
  // Within JSON a line may be broken where there is white space, and only there.
  return `"${name}":${isJson ? text.replace(/[\r\n]/g, " ") : JSON.stringify(text)}`;
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });

function decode(bytes: Uint8Array): string | undefined {
  try {
    return UTF8.decode(bytes);
  } catch {
    return undefined;
  }
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

function lineOf(message: Readonly<Record<string, unknown>>): string {
  return `${JSON.stringify(message)}\n`;
}

const NEWLINE = 0x0a;

/** Cuts the output of a child into lines. */
export class LineReader {
  readonly #maxBytes: number;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that this chunk completes, without their endings. Undefined when one is too long: nothing is read after that. */
  push(chunk: Buffer): Buffer[] | undefined {
    const lines: Buffer[] = [];
    let at = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, at)) {
      this.#keep(chunk.subarray(at, end));
      at = end + 1;
      if (this.#bytes > this.#maxBytes) return undefined;
      const [only] = this.#chunks;
      lines.push(this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks));
      this.#chunks = [];
      this.#bytes = 0;
    }
    this.#keep(chunk.subarray(at));
    return this.#bytes > this.#maxBytes ? undefined : lines;
  }

  #keep(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#chunks.push(piece);
    this.#bytes += piece.length;
  }
}
