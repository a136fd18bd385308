// The lines of an input, as bytes: nothing is parsed and printed again, so what is an item's payload is exactly what stood in
// the file, without the line's ending and outer white space. Empty lines are no items, and a mark of UTF-8 at the start is no part of one.
import { isUtf8 } from "node:buffer";
import { failure } from "../base/errors.ts";
import { eventNames, namesIn } from "./item-fields.ts";
import type { ItemFields } from "./item-fields.ts";
import { jsonFaultAt } from "./json-fault.ts";

export type InputKind = "json" | "text";

export interface InputOptions {
  /** How messages name the input. */
  readonly name: string;
  /** `json`: each line has to be a JSON value. `text`: any line. */
  readonly kind: InputKind;
  readonly lineBytesMax: number;
  /** Fields that each line has to have. */
  readonly fields?: ItemFields | undefined;
  /** The types of actors that each line is an event for; undefined when it is none. */
  readonly actorTypes?: readonly string[] | undefined;
}

const NEWLINE = 0x0a;
/** U+FEFF. */
const MARK = [0xef, 0xbb, 0xbf];
const JSON_DEPTH_MAX = 64;

/** Throws input_invalid, key_invalid or item_too_large, naming the line. Holds one line and one chunk in memory. */
export async function* inputLines(
  chunks: AsyncIterable<Uint8Array>,
  options: InputOptions,
): AsyncGenerator<Uint8Array> {
  let rest: Uint8Array = new Uint8Array();
  let number = 0;
  for await (const chunk of chunks) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
      number++;
      const line = checked(bytes.subarray(start, end), number, options);
      if (line !== undefined) yield line;
      start = end + 1;
    }
    rest = bytes.subarray(start);
    if (rest.length > options.lineBytesMax) throw tooLong(number + 1, rest.length, options);
  }
  const last = checked(rest, number + 1, options);
  if (last !== undefined) yield last;
}

function checked(line: Uint8Array, number: number, options: InputOptions): Uint8Array | undefined {
  const trimmed = trim(number === 1 ? withoutMark(line) : line);
  if (trimmed.length === 0) return undefined;
  if (trimmed.length > options.lineBytesMax) throw tooLong(number, trimmed.length, options);
  if (options.kind === "json")
    refuseUnlessJson(trimmed, { number, before: trimmed.byteOffset - line.byteOffset }, options);
  return trimmed;
}

/** `before` counts the spaces that the line begins with. */
function refuseUnlessJson(
  line: Uint8Array,
  { number, before }: { readonly number: number; readonly before: number },
  { name, fields, actorTypes }: InputOptions,
): void {
  const refusal = (reason: string, cause?: unknown): Error =>
    failure("input_invalid", { file: name, line: number, reason }, cause);
  const bytes = Buffer.from(line.buffer, line.byteOffset, line.byteLength);
  const text = bytes.toString("utf8");
  const columnAt = (at: number): number => before + Array.from(text.slice(0, at)).length + 1;
  // As JSON it would become another text, with a mark in place of what cannot be read.
  if (!isUtf8(bytes)) throw refusal(`it is not UTF-8 at column ${columnAt(firstUnreadable(bytes, text))}`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const at = jsonFaultAt(text);
    throw refusal(`it is not JSON${at === undefined ? "" : ` at column ${columnAt(at)}`}`, error);
  }
  if (depthOf(value) > JSON_DEPTH_MAX) throw refusal(`it is nested deeper than ${JSON_DEPTH_MAX} levels`);
  const named = fields && namesIn(text, fields);
  const names = named && actorTypes ? eventNames(text, named, actorTypes) : named;
  if (names !== undefined && "fault" in names)
    throw failure("key_invalid", { file: name, line: number, reason: names.fault });
}

/** Where the text has a mark for bytes that are no character. Counts UTF-16 units. */
function firstUnreadable(bytes: Buffer, text: string): number {
  const again = Buffer.from(text);
  const same = again.findIndex((byte, at) => byte !== bytes[at]);
  return again.subarray(0, same).toString("utf8").length;
}

/** Breadth first, so that a hostile line cannot exhaust the stack. */
function depthOf(value: unknown): number {
  let level: unknown[] = [value];
  for (let depth = 0; ; depth++) {
    const below = level.flatMap((item): unknown[] =>
      typeof item === "object" && item !== null ? Object.values(item) : [],
    );
    if (below.length === 0 || depth > JSON_DEPTH_MAX) return depth;
    level = below;
  }
}

/** Some editors begin a file with a mark that says no more than that it is UTF-8. */
function withoutMark(line: Uint8Array): Uint8Array {
  return MARK.every((byte, at) => line[at] === byte) ? line.subarray(MARK.length) : line;
}

function trim(line: Uint8Array): Uint8Array {
  let [start, end] = [0, line.length];
  while (start < end && isSpace(line[start])) start++;
  while (end > start && isSpace(line[end - 1])) end--;
  return line.subarray(start, end);
}

/** Space, tab, carriage return, vertical tab and form feed. */
function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || (byte !== undefined && byte >= 0x09 && byte <= 0x0d);
}

function tooLong(number: number, bytes: number, { name, lineBytesMax }: InputOptions): Error {
  return failure("item_too_large", { file: name, line: number, bytes, limit: lineBytesMax });
}
