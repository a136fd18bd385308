// The shape of JSON: names, nesting and types of what was seen, without the values.

const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;
const ULID = /^[0-9A-HJKMNP-TV-Z]{26}$/;
const SHA256 = /^[0-9a-f]{64}$/;

/** One type for all of the values: fields that only some objects have are optional, other differences are a union. */
export function shapeOf(values: readonly unknown[], indent = ""): string {
  const scalars = values.filter((value) => typeof value !== "object" || value === null).map(scalarOf);
  const arrays = values.filter((value) => Array.isArray(value));
  const objects = values.filter((value) => isObject(value));
  const shapes = [
    ...new Set(scalars.toSorted()),
    ...(arrays.length === 0 ? [] : [arrayShape(arrays.flat(), indent)]),
    ...(objects.length === 0 ? [] : [objectShape(objects, indent)]),
  ];
  return shapes.join(" | ");
}

export function jsonLines(text: string): unknown[] {
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => JSON.parse(line) as unknown);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function scalarOf(value: unknown): string {
  if (value === null) return "null";
  if (typeof value !== "string") return typeof value;
  if (TIME.test(value)) return "time";
  if (ULID.test(value)) return "ulid";
  return SHA256.test(value) ? "sha256" : "string";
}

function arrayShape(elements: readonly unknown[], indent: string): string {
  return elements.length === 0 ? "[]" : `[${shapeOf(elements, indent)}, …]`;
}

function objectShape(objects: readonly Readonly<Record<string, unknown>>[], indent: string): string {
  const inner = `${indent}  `;
  // The order of the objects means nothing; the order in an object is kept.
  const orders = [...new Set(objects.map((object) => JSON.stringify(Object.keys(object))))].toSorted();
  const names = [...new Set(orders.flatMap((order) => JSON.parse(order) as string[]))];
  const fields = names.map((name) => {
    const having = objects.filter((object) => name in object);
    const shape = shapeOf(
      having.map((object) => object[name]),
      inner,
    );
    return `${inner}${name}${having.length < objects.length ? "?" : ""}: ${shape}\n`;
  });
  return fields.length === 0 ? "{}" : `{\n${fields.join("")}${indent}}`;
}
