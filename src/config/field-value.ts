// One value of a manifest: from the file's text to the backend's value. A kind that settings have too is read as theirs.
import { Buffer } from "node:buffer";
import type { FieldRule, JsonObject } from "./manifest-fields.ts";
import { describeAllowed, parseValue } from "./value.ts";
import type { ParsedValue } from "./value.ts";

export type FieldValue = ParsedValue | JsonObject;

const COMMAND_WORDS_MAX = 1_024;
const WORD_BYTES_MAX = 128 * 1_024;
const ENTRIES_MAX = 256;
/** The name of a variable or a header. */
const ENTRY_NAME = /^[A-Za-z_][A-Za-z0-9_-]*$/;
const JSON_DEPTH_MAX = 16;

/** Undefined when the rule does not allow `raw`. A relative path is one of `directory`. */
export function parseField(rule: FieldRule, raw: unknown, directory: string): FieldValue | undefined {
  switch (rule.kind) {
    case "text":
      return isText(raw, rule.maxBytes) && raw !== "" && !/\p{Cc}/u.test(raw) ? raw : undefined;
    case "boolean":
      return typeof raw === "boolean" ? raw : undefined;
    case "command":
      return isCommand(raw) ? raw : undefined;
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
    case "command":
      return `a list of texts, such as ["python3", "infer.py"]`;
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

function isCommand(raw: unknown): raw is readonly string[] {
  if (!Array.isArray(raw) || raw.length === 0 || raw.length > COMMAND_WORDS_MAX) return false;
  return raw[0] !== "" && raw.every((word) => isText(word, WORD_BYTES_MAX));
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
  if (typeof raw === "number") return Number.isFinite(raw);
  const inner = Array.isArray(raw) ? raw : isRecord(raw) ? Object.values(raw) : undefined;
  return inner?.every((value: unknown) => isJson(value, depth + 1)) ?? false;
}
