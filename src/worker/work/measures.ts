// Numbers in outputs, for those who compare versions by them: the worker reads them, because a coordinator looks into no output.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { MeasureSchema } from "../../gen/rollout/v1/work_pb.ts";

/** Where a number stands in an output that is JSON. */
export interface NumberPointer {
  readonly name: string;
  /** By RFC 6901; empty: the output is the number. */
  readonly pointer: string;
}

export type Measure = Exclude<MessageInitShape<typeof MeasureSchema>, { readonly $typeName: string }>;

const MISSING: Measure = {};
const NOT_A_NUMBER: Measure = { notANumber: true };

/** One for each pointer, in their order. Total: an output that is no JSON has none of them. */
export function readMeasures(output: Uint8Array, pointers: readonly NumberPointer[]): Measure[] {
  const text = Buffer.from(output.buffer, output.byteOffset, output.byteLength).toString("utf8");
  const root = parsed(text) ?? parsed(withoutNaN(text));
  if (root === undefined) return pointers.map(() => MISSING);
  return pointers.map(({ pointer }) => {
    const found = at(root.value, pointer);
    if (found === undefined) return MISSING;
    return typeof found === "number" && Number.isFinite(found) ? { value: found } : NOT_A_NUMBER;
  });
}

function parsed(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

/** Some writers of JSON print numbers that it does not have, as Python's does: one of these is no number, and the others still count. */
function withoutNaN(text: string): string {
  return text.replaceAll(/"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b/g, (found) =>
    found.startsWith('"') ? found : "null",
  );
}

const INDEX = /^(?:0|[1-9]\d*)$/;

function at(root: unknown, pointer: string): unknown {
  if (pointer === "") return root;
  const [first, ...names] = pointer.split("/");
  if (first !== "") return undefined;
  let value = root;
  for (const name of names.map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))) {
    if (typeof value !== "object" || value === null) return undefined;
    if (Array.isArray(value) ? !INDEX.test(name) : !Object.hasOwn(value, name)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return value;
}
