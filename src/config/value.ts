// One value: from what a file, a variable or a flag says to what the program uses, or a refusal that says what is
// allowed. Nothing is clamped or guessed.
import { isAbsolute, resolve } from "node:path";
import { unreachable } from "../base/assert.ts";
import { isUlid } from "../base/ids.ts";
import { isHost, parseAddress } from "../base/address.ts";
import { parseDurationMs } from "./duration.ts";
import type { Setting } from "./schema.ts";
import { parseSizeBytes } from "./size.ts";

export type ParsedValue = number | string | readonly string[];

export interface ValueContext {
  /** What a relative path is relative to. */
  readonly directory: string;
  /** Names that a list of topics may hold. */
  readonly topics: readonly string[];
}

const PATH_MAX_CHARS = 4_096;

/** Undefined when the setting does not allow `raw`. Text is also taken for integers and lists, as variables and flags give it. */
export function parseValue(setting: Setting, raw: unknown, context: ValueContext): ParsedValue | undefined {
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
    case "choice":
      return asText(raw, (text) => (setting.choices.includes(text) ? text : undefined));
    case "ulid":
      return asText(raw, (text) => (isUlid(text) ? text : undefined));
    case "path":
      return asText(raw, (text) => parsePath(text, context.directory));
    case "address":
      return asText(raw, (text) => parseAddressText(text, setting.portZero));
    case "list":
      return parseList(raw, (text) => (setting.of === "host" ? isHost(text) : context.topics.includes(text)));
    default:
      return unreachable(setting, "kind of setting");
  }
}

/** What the setting allows, in the words of a hint. */
export function describeAllowed(setting: Setting, topics: readonly string[]): string {
  switch (setting.kind) {
    case "duration":
      return `a duration from "${setting.min}" to "${setting.max}", such as "${setting.default ?? setting.min}"`;
    case "size":
      return `a size from "${setting.min}" to "${setting.max}", such as "${setting.default}"`;
    case "integer":
      return `a whole number from ${setting.min} to ${setting.max}`;
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
      return setting.of === "host"
        ? "a list of DNS names and IP addresses"
        : `a list of ${topics.join(", ")}`;
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

function parsePath(text: string, directory: string): string | undefined {
  if (text === "" || text.length > PATH_MAX_CHARS || text.includes("\0")) return undefined;
  return isAbsolute(text) ? text : resolve(directory, text);
}

function parseAddressText(text: string, portZero: boolean): string | undefined {
  const address = parseAddress(text);
  return address !== undefined && (portZero || address.port > 0) ? text : undefined;
}

function parseList(raw: unknown, allows: (text: string) => boolean): readonly string[] | undefined {
  const entries: unknown = typeof raw === "string" ? raw.split(",").map((entry) => entry.trim()) : raw;
  if (!Array.isArray(entries)) return undefined;
  const texts = entries.filter((entry): entry is string => typeof entry === "string" && allows(entry));
  return texts.length === entries.length ? texts : undefined;
}
