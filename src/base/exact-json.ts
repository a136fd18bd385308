// JSON read and written again without a change of its numbers: 12345678901234567890 stays what it is.

interface Source {
  readonly source?: string;
}

// Both are newer than the library's types.
const { parse, rawJSON, isRawJSON } = JSON as unknown as {
  readonly parse: (
    text: string,
    revive: (key: string, value: unknown, context: Source) => unknown,
  ) => unknown;
  readonly rawJSON: (text: string) => unknown;
  readonly isRawJSON: (value: unknown) => boolean;
};

/** A number that may not come out as it went in looks like this: long, with a fraction or an exponent, or a zero with a sign. */
const PERHAPS_INEXACT = /\d{16}|\d[.eE]|-0/;

/** Undefined when the text is not JSON. A number that would not come out as it went in is kept as its text. */
export function parseJson(text: string): unknown {
  try {
    // Most texts have none, and reviving each value takes several times as long as the rest.
    if (!PERHAPS_INEXACT.test(text)) return JSON.parse(text);
    return parse(text, (_key, value, { source }) =>
      typeof value === "number" && source !== undefined && String(value) !== source ? rawJSON(source) : value,
    );
  } catch {
    return undefined;
  }
}

/** The fields of the object that the text is; none when it is no object of JSON. Numbers are those that JavaScript has. */
export function jsonFields(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

/** For values that `parseJson` made, or parts of them. */
export function formatJson(value: unknown): string {
  return JSON.stringify(value);
}

export interface JsonObject {
  readonly [name: string]: unknown;
}

/** Whether it is a table: no list, and no number that is kept as its text. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isRawJSON(value);
}

/** A field of an object or an entry of a list; undefined when there is none. */
export function memberOf(value: unknown, name: string): unknown {
  if (Array.isArray(value))
    return /^(?:0|[1-9]\d{0,9})$/.test(name) ? (value[Number(name)] as unknown) : undefined;
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}
