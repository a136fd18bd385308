// One value: from what a file, a variable or a flag says to what the program uses, or a refusal that says what is
// allowed. Nothing is clamped or guessed.
import { isAbsolute, resolve } from "node:path";
import { unreachable } from "../base/assert.ts";
import { isUlid } from "../base/ids.ts";
import { isHost, parseAddress } from "../base/address.ts";
import { parseDurationMs } from "./duration.ts";
import { parseFailuresAllowed } from "./failures-allowed.ts";
import type { ValueRule } from "./value-rule.ts";
import { parseSizeBytes } from "./size.ts";

export type ParsedValue = number | boolean | string | readonly string[];

export interface ValueContext {
  /** The directory for relative paths. */
  readonly directory: string;
  /** Names that a list of topics may hold. */
  readonly topics: readonly string[];
}

const PATH_MAX_CHARS = 4_096;

/** Undefined when the setting does not allow `raw`. Text is also taken for integers, booleans and lists, as variables and flags give it. */
export function parseValue(setting: ValueRule, raw: unknown, context: ValueContext): ParsedValue | undefined {
  switch (setting.kind) {
    case "duration":
      return inRange(
        asText(raw, parseDurationMs),
        parseDurationMs(setting.min),
        parseDurationMs(setting.max),
      );
    case "size":
      return inRange(asText(raw, parseSizeBytes), parseSizeBytes(setting.min), parseSizeBytes(setting.max));
    case "integer":
      return inRange(parseInteger(raw), setting.min, setting.max);
    case "boolean":
      return parseBoolean(raw);
    case "failures":
      // A number in the file is meant as it is written.
      return asText(typeof raw === "number" ? String(raw) : raw, (text) =>
        parseFailuresAllowed(text) === undefined ? undefined : text,
      );
    case "choice":
      return asText(raw, (text) => (setting.choices.includes(text) ? text : undefined));
    case "ulid":
      return asText(raw, (text) => (isUlid(text) ? text : undefined));
    case "path":
      return asText(raw, (text) => parsePath(text, context.directory));
    case "address":
      return asText(raw, (text) => parseAddressText(text, setting.portZero));
    case "list":
      return parseList(raw, (text) => parseEntry(setting.of, text, context));
    default:
      return unreachable(setting, "kind of setting");
  }
}

/** Allowed values of the setting, in the words of a hint. */
export function describeAllowed(setting: ValueRule, topics: readonly string[]): string {
  switch (setting.kind) {
    case "duration":
      return `a duration from "${setting.min}" to "${setting.max}", such as "${setting.default ?? setting.min}"`;
    case "size":
      return `a size from "${setting.min}" to "${setting.max}", such as "${setting.default ?? setting.min}"`;
    case "integer":
      return `a whole number from ${setting.min} to ${setting.max}`;
    case "boolean":
      return "true or false";
    case "failures":
      return 'a whole number from 1, a percentage such as "5%", or none';
    case "choice":
      return setting.choices.join(", ");
    case "ulid":
      return "a ULID (26 characters, upper case), such as `rollout init` makes";
    case "path":
      return "a path";
    case "address":
      return setting.portZero
        ? "host:port, with IPv6 in brackets"
        : "host:port with a port above 0, IPv6 in brackets";
    case "list":
      return describeList(setting.of, topics);
    default:
      return unreachable(setting, "kind of setting");
  }
}

function asText<Value>(raw: unknown, parse: (text: string) => Value | undefined): Value | undefined {
  return typeof raw === "string" ? parse(raw) : undefined;
}

function inRange(
  value: number | undefined,
  min: number | undefined,
  max: number | undefined,
): number | undefined {
  if (value === undefined || min === undefined || max === undefined) return undefined;
  return value >= min && value <= max ? value : undefined;
}

function parseInteger(raw: unknown): number | undefined {
  const value = typeof raw === "string" && /^-?\d{1,15}$/.test(raw) ? Number(raw) : raw;
  return typeof value === "number" && Number.isSafeInteger(value) ? value : undefined;
}

function parseBoolean(raw: unknown): boolean | undefined {
  if (typeof raw === "boolean") return raw;
  return raw === "true" || raw === "false" ? raw === "true" : undefined;
}

function parsePath(text: string, directory: string): string | undefined {
  if (text === "" || text.length > PATH_MAX_CHARS || text.includes("\0")) return undefined;
  return isAbsolute(text) ? text : resolve(directory, text);
}

function parseAddressText(text: string, portZero: boolean): string | undefined {
  const address = parseAddress(text);
  return address !== undefined && (portZero || address.port > 0) ? text : undefined;
}

type EntryKind = Extract<ValueRule, { readonly kind: "list" }>["of"];

function describeList(of: EntryKind, topics: readonly string[]): string {
  if (of === "path") return "a list of paths";
  return of === "host" ? "a list of DNS names and IP addresses" : `a list of ${topics.join(", ")}`;
}

function parseEntry(of: EntryKind, text: string, context: ValueContext): string | undefined {
  if (of === "path") return parsePath(text, context.directory);
  const allowed = of === "host" ? isHost(text) : context.topics.includes(text);
  return allowed ? text : undefined;
}

function parseList(raw: unknown, parse: (text: string) => string | undefined): readonly string[] | undefined {
  const entries: unknown = typeof raw === "string" ? raw.split(",").map((entry) => entry.trim()) : raw;
  if (!Array.isArray(entries)) return undefined;
  const texts = entries
    .map((entry: unknown) => asText(entry, parse))
    .filter((entry): entry is string => entry !== undefined);
  return texts.length === entries.length ? texts : undefined;
}
