// Fills an item into a template: `{}` is the item, `{.field}` and `{.field.inner}` what it holds. Everything else stays.
import { formatJson, isJsonObject, memberOf } from "../../../base/exact-json.ts";

/** The item lacks what the template names. */
export class MissingField extends Error {
  readonly field: string;

  constructor(field: string) {
    super(`the item has no field ${field}`);
    this.field = field;
  }
}

const PLACEHOLDER = /\{((?:\.[\w-]+)*)\}/g;
const WHOLE = /^\{((?:\.[\w-]+)*)\}$/;

/**
 * A text that is one placeholder becomes the value itself, whatever it is; within a longer text, and in a list or table,
 * placeholders become text: a string as it is, anything else as JSON. Throws MissingField.
 */
export function fillValue(template: unknown, item: unknown): unknown {
  if (typeof template === "string") {
    const whole = WHOLE.exec(template)?.[1];
    return whole === undefined ? fillText(template, item) : fieldOf(item, whole);
  }
  if (Array.isArray(template)) return template.map((one) => fillValue(one, item));
  if (!isJsonObject(template)) return template;
  return Object.fromEntries(Object.entries(template).map(([name, value]) => [name, fillValue(value, item)]));
}

/** Throws MissingField. */
export function fillText(template: string, item: unknown, encode = (text: string): string => text): string {
  return template.replace(PLACEHOLDER, (_whole, path: string) => encode(textOf(fieldOf(item, path))));
}

function fieldOf(item: unknown, path: string): unknown {
  let value = item;
  for (const name of path.split(".").slice(1)) value = memberOf(value, name);
  if (value === undefined) throw new MissingField(path.slice(1));
  return value;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : formatJson(value);
}
