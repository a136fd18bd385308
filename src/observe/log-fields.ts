// Fields of a log call, as they may be written. Only plain data passes; everything else is named by its kind, so that a key,
// a socket or a request that was logged by mistake shows nothing. Secrets are recognised by their name and by their look.
import { RolloutError, describeError, errnoOf } from "../base/errors.ts";
import { REDACTED, redactSecrets } from "../base/safe-text.ts";

export type LogFields = Readonly<Record<string, unknown>>;

type Plain = string | number | boolean | null | readonly Plain[] | { readonly [key: string]: Plain };

const SECRET_NAME =
  /authorization|password|passwd|passphrase|secret|token|cookie|credential|private_?key|key_?pem|api_?key/i;
const DEPTH_MAX = 3;
const ENTRIES_MAX = 64;
const TEXT_MAX_CHARS = 4_096;

/** The fields as plain data without secrets. `withStack`: an error under `err` shows where it was thrown. */
export function safeFields(fields: LogFields, withStack: boolean): Record<string, Plain> {
  const safe: Record<string, Plain> = {};
  for (const [name, value] of Object.entries(fields).slice(0, ENTRIES_MAX)) {
    if (value !== undefined) safe[name] = safeValue(name, value, DEPTH_MAX, withStack);
  }
  return safe;
}

/** A message or value as it may be written: no secrets, and not without end. */
export function safeText(text: string): string {
  const redacted = redactSecrets(text);
  return redacted.length > TEXT_MAX_CHARS ? `${redacted.slice(0, TEXT_MAX_CHARS)}…` : redacted;
}

function safeValue(name: string, value: unknown, depthLeft: number, withStack: boolean): Plain {
  if (SECRET_NAME.test(name)) return REDACTED;
  switch (typeof value) {
    case "string":
      return safeText(value);
    case "number":
    case "boolean":
      return value;
    case "bigint":
      return value.toString();
    case "object":
      return value === null ? null : safeObject(value, depthLeft, withStack);
    default:
      return `[${typeof value}]`;
  }
}

function safeObject(value: object, depthLeft: number, withStack: boolean): Plain {
  if (value instanceof Error) return safeError(value, withStack);
  if (value instanceof Uint8Array) return `[${value.length} bytes]`;
  if (depthLeft === 0) return "[…]";
  if (Array.isArray(value)) {
    return value
      .slice(0, ENTRIES_MAX)
      .map((entry: unknown) => safeValue("", entry, depthLeft - 1, withStack));
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return `[${value.constructor.name}]`;
  const safe: Record<string, Plain> = {};
  for (const [name, entry] of Object.entries(value).slice(0, ENTRIES_MAX)) {
    if (entry !== undefined) safe[name] = safeValue(name, entry, depthLeft - 1, withStack);
  }
  return safe;
}

function safeError(error: Error, withStack: boolean): Plain {
  const code = error instanceof RolloutError ? error.code : (errnoOf(error) ?? error.name);
  const line = `${code}: ${safeText(describeError(error))}`;
  return withStack && error.stack !== undefined ? { error: line, stack: safeText(error.stack) } : line;
}
