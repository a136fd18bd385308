// How an input names its items itself: the `id` or `custom_id` of a line that is a JSON object. It goes with the result.
import { LIMITS } from "../config/limits.ts";

const NAMES = ["id", "custom_id"] as const;
/** Most lines of most files have neither: they are not parsed. */
const MARKS = NAMES.map((name) => Buffer.from(`"${name}"`));

/** Empty when the line has none, or a longer one than is kept. A number is written as it stands there. */
export function labelOf(payload: Uint8Array): string {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  if (!MARKS.some((mark) => bytes.includes(mark))) return "";
  const line = parseObject(bytes.toString("utf8"));
  const label = NAMES.map((name) => textOf(line?.[name])).find((text) => text !== undefined) ?? "";
  return Buffer.byteLength(label) > LIMITS.itemTextBytes ? "" : label;
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value.toWellFormed();
  return value instanceof NumberText ? value.text : undefined;
}

/** 12345678901234567890 is not the number that JavaScript takes it for. */
class NumberText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

// The third parameter is newer than the library's types.
const parse = JSON.parse as (
  text: string,
  revive: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
) => unknown;

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = parse(text, (_, inner, { source }) =>
      typeof inner === "number" ? new NumberText(source ?? String(inner)) : inner,
    );
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
