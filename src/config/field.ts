// Fields of files that users write beside the configuration, such as manifests: kinds of values that settings do not have, and those of
// settings, which are read as theirs. Nothing is clamped or guessed.
import { Buffer } from "node:buffer";
import type { JsonObject } from "../base/exact-json.ts";
import { parsePercent } from "./percent.ts";
import { asText, describeAllowed, inRange, parseValue } from "./value.ts";
import type { ParsedValue, ValueRule } from "./value.ts";

/** The form of a field, and its default. */
export type FieldRule = { readonly required?: true } & (
  | ValueRule
  | { readonly kind: "text"; readonly default?: string; readonly maxBytes: number }
  /** `"1%"` is 0.01. Where a difference is meant, a number between 0 and 1 is taken too. */
  | { readonly kind: "percent"; readonly default?: string; readonly orNumber?: true }
  | { readonly kind: "number"; readonly default?: number; readonly above?: number }
  /** The lowest and the highest of some numbers. */
  | { readonly kind: "range"; readonly default?: readonly [number, number] }
  /** A program and its arguments. */
  | { readonly kind: "command"; readonly default?: readonly string[] }
  /** Names of machines, each with a number of slots if that is another one than the others have. */
  | { readonly kind: "hosts"; readonly default?: readonly string[] }
  /** Names and texts. */
  | { readonly kind: "texts"; readonly default: Readonly<Record<string, string>> }
  /** Names and anything that JSON has. */
  | { readonly kind: "object"; readonly default: JsonObject }
);

export type FieldValue = ParsedValue | JsonObject | readonly [number, number];

const COMMAND_WORDS_MAX = 1_024;
const WORD_BYTES_MAX = 128 * 1_024;
const ENTRIES_MAX = 256;
/** The name of a variable or a header. */
const ENTRY_NAME = /^[A-Za-z_][A-Za-z0-9_-]*$/;
const HOSTS_MAX = 1_000;
const HOST_BYTES_MAX = 512;
/** `host`, `user@host`, `ssh://user@host:port`, an address; with `=SLOTS`. It is a word of a command line, and never an option of it. */
const HOST = /^[\w[][\w.@:%/[\]+~-]*(?:=\d{1,4})?$/;
const JSON_DEPTH_MAX = 16;

/** Undefined when the rule does not allow `raw`. A relative path is one of `directory`. */
export function parseField(rule: FieldRule, raw: unknown, directory: string): FieldValue | undefined {
  switch (rule.kind) {
    case "text":
      return isText(raw, rule.maxBytes) && raw !== "" && !/\p{Cc}/u.test(raw) ? raw : undefined;
    case "boolean":
      return typeof raw === "boolean" ? raw : undefined;
    case "percent":
      return rule.orNumber === true && isNumber(raw) ? inRange(raw, 0, 1) : asText(raw, parsePercent);
    case "number":
      return isNumber(raw) && raw > (rule.above ?? -Infinity) ? raw : undefined;
    case "range":
      return isRange(raw) ? raw : undefined;
    case "command":
      return isCommand(raw) ? raw : undefined;
    case "hosts":
      return isHosts(raw) ? raw : undefined;
    case "texts":
      return isTexts(raw) ? raw : undefined;
    case "object":
      return isJson(raw, 0) && isRecord(raw) ? raw : undefined;
    case "integer":
      // Variables and flags are text, a manifest is not.
      return typeof raw === "number" ? parseValue(rule, raw, { directory, topics: [] }) : undefined;
    default:
      return parseValue(rule, raw, { directory, topics: [] });
  }
}

/** Allowed values of the rule, in the words of a hint. */
export function describeField(rule: FieldRule): string {
  switch (rule.kind) {
    case "text":
      return `a text of 1 to ${rule.maxBytes} bytes on one line`;
    case "percent":
      return `a share such as "1%"${rule.orNumber === true ? ", or a number from 0 to 1" : ""}`;
    case "number":
      return rule.above === undefined ? "a number" : `a number above ${rule.above}`;
    case "range":
      return "two numbers, the lower one first, such as [0, 1]";
    case "command":
      return `a list of texts, such as ["python3", "infer.py"]`;
    case "hosts":
      return `a list of 1 to ${HOSTS_MAX} names as ssh knows them, each with its slots if need be, such as ["a", "user@b", "c=16"]`;
    case "texts":
      return `a table of names and texts, such as { NAME = "value" }`;
    case "object":
      return `a table of texts, numbers, booleans, lists and tables`;
    default:
      return describeAllowed(rule, []);
  }
}

function isText(raw: unknown, maxBytes: number): raw is string {
  return typeof raw === "string" && Buffer.byteLength(raw) <= maxBytes && !raw.includes("\0");
}

function isNumber(raw: unknown): raw is number {
  return typeof raw === "number" && Number.isFinite(raw);
}

function isRange(raw: unknown): raw is readonly [number, number] {
  if (!Array.isArray(raw) || raw.length !== 2) return false;
  const [low, high] = raw.filter(isNumber);
  return low !== undefined && high !== undefined && low < high;
}

function isCommand(raw: unknown): raw is readonly string[] {
  if (!Array.isArray(raw) || raw.length === 0 || raw.length > COMMAND_WORDS_MAX) return false;
  return raw[0] !== "" && raw.every((word) => isText(word, WORD_BYTES_MAX));
}

function isHosts(raw: unknown): raw is readonly string[] {
  if (!Array.isArray(raw) || raw.length === 0 || raw.length > HOSTS_MAX) return false;
  return raw.every((host) => isText(host, HOST_BYTES_MAX) && HOST.test(host));
}

function isTexts(raw: unknown): raw is Readonly<Record<string, string>> {
  if (!isRecord(raw)) return false;
  const entries = Object.entries(raw);
  return (
    entries.length <= ENTRIES_MAX &&
    entries.every(([name, text]) => ENTRY_NAME.test(name) && isText(text, WORD_BYTES_MAX))
  );
}

function isRecord(raw: unknown): raw is JsonObject {
  return typeof raw === "object" && raw !== null && !Array.isArray(raw) && !(raw instanceof Date);
}

/** TOML also has dates and infinities, which JSON has not. */
function isJson(raw: unknown, depth: number): boolean {
  if (depth > JSON_DEPTH_MAX) return false;
  if (typeof raw === "string" || typeof raw === "boolean") return true;
  if (typeof raw === "number") return isNumber(raw);
  const inner = Array.isArray(raw) ? raw : isRecord(raw) ? Object.values(raw) : undefined;
  return inner?.every((value: unknown) => isJson(value, depth + 1)) ?? false;
}
