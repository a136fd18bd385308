// Fields of a line that say which key its item has, and which event of the key it is: named by a member of the line's object, or by a JSON
// pointer. A line that does not say it is refused with the reason in words; nothing is guessed.
import { actorKey, addressFault, EVENT_FAULT, isEvent } from "../base/actor-address.ts";
import { formatJson, isJsonObject, memberOf, parseJson } from "../base/exact-json.ts";
import { printable } from "../base/safe-text.ts";
import { LIMITS } from "../config/limits.ts";

/** Where a line has them: each a member's name, or a JSON pointer, which begins with `/`. */
export interface ItemFields {
  readonly key: string;
  readonly eventId?: string | undefined;
}

/** The key of an item, and its event id; empty when it has none. */
export interface ItemNames {
  readonly key: string;
  readonly eventId: string;
}

export type Named = ItemNames | { readonly fault: string };

const KEY = "its key";
const EVENT_ID = "its event id";
const POINTER = /^(?:\/(?:[^~/]|~[01])*)+$/;

export function sameFields(one: ItemFields | undefined, other: ItemFields | undefined): boolean {
  return one?.key === other?.key && one?.eventId === other?.eventId;
}

/** In the words of a command line; empty for none. */
export function fieldsText(fields: ItemFields | undefined): string {
  if (fields === undefined) return "";
  const eventId = fields.eventId === undefined ? "" : ` --event-id-field ${printable(fields.eventId)}`;
  return ` with --key-field ${printable(fields.key)}${eventId}`;
}

/** Whether the text can name a field. */
export function isField(text: string): boolean {
  return text.startsWith("/") ? POINTER.test(text) : text !== "";
}

/** `line` is an item's JSON. */
export function namesIn(line: string, { key: keyField, eventId: eventField }: ItemFields): Named {
  const value = parseJson(line);
  const key = nameAt(value, keyField, KEY);
  if (typeof key !== "string") return key;
  const eventId = eventField === undefined ? "" : nameAt(value, eventField, EVENT_ID);
  return typeof eventId === "string" ? { key, eventId } : eventId;
}

/** The names of an event of an actor: `named` as the line has them, with the actor's whole key. `line` is JSON. */
export function eventNames(line: string, named: Named, types: readonly string[]): Named {
  if ("fault" in named) return named;
  if (!isEvent(parseJson(line))) return { fault: EVENT_FAULT };
  const key = actorKey(named.key, types);
  if (key === undefined) return { fault: addressFault(printable(named.key), types) };
  const whole = nameOf(key, KEY, KEY);
  return typeof whole === "string" ? { ...named, key } : whole;
}

/** The names of an item that a program has given. */
export function givenNames(key: unknown, eventId: unknown): Named {
  const keyText = nameOf(key, KEY, KEY);
  if (typeof keyText !== "string") return keyText;
  const eventText = eventId === undefined ? "" : nameOf(eventId, EVENT_ID, EVENT_ID);
  return typeof eventText === "string" ? { key: keyText, eventId: eventText } : eventText;
}

function nameAt(value: unknown, field: string, what: string): string | { readonly fault: string } {
  const shown = printable(field);
  let found = value;
  for (const name of stepsOf(field)) found = memberOf(found, name);
  if (found === undefined) return { fault: `it has no ${shown}, which is ${what}` };
  return nameOf(found, `${shown}, ${what},`, what);
}

function stepsOf(field: string): string[] {
  if (!field.startsWith("/")) return [field];
  const steps = field.slice(1).split("/");
  return steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function nameOf(value: unknown, shown: string, what: string): string | { readonly fault: string } {
  const text = textOf(value);
  if (text === undefined) return { fault: `${shown} is ${kindOf(value)}: it has to be a text or an integer` };
  const bytes = Buffer.byteLength(text);
  const limit = LIMITS.itemTextBytes;
  if (bytes < 1 || bytes > limit) return { fault: `${shown} has ${bytes} bytes: ${what} has 1 to ${limit}` };
  if (!text.isWellFormed() || printable(text) !== text)
    return { fault: `${shown} has characters that cannot be shown: ${printable(text).toWellFormed()}` };
  return text;
}

/** An integer is its digits, however many these are. */
function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "number") return Number.isInteger(value) ? digitsOf(String(value)) : undefined;
  return isNumberText(value) ? digitsOf(formatJson(value)) : undefined;
}

function digitsOf(text: string): string | undefined {
  return /^-?\d+$/.test(text) ? text : undefined;
}

/** A number that is kept as it was written. */
function isNumberText(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isJsonObject(value);
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "number" || isNumberText(value)) return "a number that is no integer";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
