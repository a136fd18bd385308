// The messages between a worker and a process that executes a user's code, and their frames on the socket between them.
//
// Keeps true: one attempt at a time; every `execute` is answered by one `ended`, and every `save` by one `saved`, unless the process
// dies.
import { deserialize, serialize } from "node:v8";
import type { KeyOfItem, Outcome } from "../backend.ts";

/** The first message: what to load. */
export interface LoadMessage {
  readonly kind: "load";
  /** Absolute path of the file. */
  readonly module: string;
  /** Name of its export; or names of several. */
  readonly export: string | readonly string[];
  /** Settings that only one kind of code knows. */
  readonly options: Readonly<Record<string, unknown>>;
  /** A larger output is not sent. */
  readonly maxOutputBytes: number;
  readonly maxCheckpointBytes: number;
  readonly maxStateBytes: number;
}

export interface ExecuteMessage {
  readonly kind: "execute";
  readonly itemId: Uint8Array;
  readonly attempt: number;
  readonly payload: Uint8Array;
  /** Empty when there is none. */
  readonly checkpoint: Uint8Array;
  /** Undefined for an item without a key. */
  readonly keyed: KeyOfItem | undefined;
  readonly env: Readonly<Record<string, string>>;
}

export type ToCode =
  | LoadMessage
  | ExecuteMessage
  /** To code that can, and that executes nothing. */
  | { readonly kind: "save"; readonly timeLeftMs: number }
  /** Ends what it was asked for last. */
  | { readonly kind: "abort" };

/** How the code ended by itself. */
export type CodeOutcome =
  | Extract<Outcome, { readonly kind: "success" | "preempted" }>
  | Omit<Extract<Outcome, { readonly kind: "error" }>, "response">
  | { readonly kind: "too_large"; readonly message: string };

export type FromCode =
  /** `saves`: it can save what it has learned. */
  | { readonly kind: "ready"; readonly saves?: boolean }
  /** The file does not load, or exports nothing that can be executed. */
  | { readonly kind: "unusable"; readonly reason: string }
  | { readonly kind: "checkpoint"; readonly checkpoint: Uint8Array }
  | { readonly kind: "ended"; readonly outcome: CodeOutcome }
  /** The answer to `save`: without a reason, what it has learned is saved. */
  | { readonly kind: "saved"; readonly failure?: string }
  /** An error that nothing caught ends the process now. */
  | { readonly kind: "dying"; readonly reason: string };

/** A message has no more. Far above the limit of an output. */
const FRAME_MAX_BYTES = 64 * 1_024 * 1_024;
const LENGTH_BYTES = 4;

/** Length, then content. */
export function frameOf(message: ToCode | FromCode): Buffer {
  const content = serialize(message);
  const frame = Buffer.allocUnsafe(LENGTH_BYTES + content.length);
  frame.writeUInt32BE(content.length);
  content.copy(frame, LENGTH_BYTES);
  return frame;
}

/** Puts messages together again. Both ends are ours: what they say is not checked field by field. */
export class FrameReader<Message extends ToCode | FromCode> {
  #chunks: Buffer[] = [];
  #bytes = 0;

  /** The messages that are complete by now. Throws when it is no message at all. */
  take(chunk: Buffer): Message[] {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    const messages: Message[] = [];
    for (let frame = this.#next(); frame !== undefined; frame = this.#next())
      messages.push(deserialize(frame) as Message);
    return messages;
  }

  #next(): Buffer | undefined {
    if (this.#bytes < LENGTH_BYTES) return undefined;
    const [first = Buffer.alloc(0)] = this.#chunks;
    const start = first.length >= LENGTH_BYTES ? first : this.#join();
    const length = start.readUInt32BE();
    if (length > FRAME_MAX_BYTES) throw new RangeError("a message is longer than any may be");
    const end = LENGTH_BYTES + length;
    if (this.#bytes < end) return undefined;
    const all = this.#join();
    this.#chunks = [all.subarray(end)];
    this.#bytes -= end;
    return all.subarray(LENGTH_BYTES, end);
  }

  #join(): Buffer {
    const all = this.#chunks.length === 1 ? this.#chunks[0] : undefined;
    const joined = all ?? Buffer.concat(this.#chunks);
    this.#chunks = [joined];
    return joined;
  }
}
