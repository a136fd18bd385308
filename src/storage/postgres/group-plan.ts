// A plan for a group of batches: one fence and one set of writes where that is the same as one batch after the other, else single
// steps, to be decided with the rows in hand.
import type { Batch, Expectation } from "../store.ts";

/**
 * `fenced`: all batches expect the same rows, each to be there, and none changes them: they share a statement.
 * `own`: one batch that changes what it expects to be there.
 * `steps`: something is expected to be absent, or twice.
 */
export type Shape =
  | { readonly kind: "fenced"; readonly fence: string }
  | { readonly kind: "own" }
  | { readonly kind: "steps" };

const shapes = new WeakMap<Batch, Shape>();

export function shapeOf(batch: Batch): Shape {
  const known = shapes.get(batch);
  if (known !== undefined) return known;
  const shape = findShape(batch);
  shapes.set(batch, shape);
  return shape;
}

/** Whether the two may be of one group. */
export function mayShare(first: Batch, next: Batch): boolean {
  const [one, other] = [shapeOf(first), shapeOf(next)];
  if (one.kind === "fenced") return other.kind === "fenced" && one.fence === other.fence;
  return one.kind === "steps" && other.kind === "steps";
}

function findShape({ expect, puts, deletes }: Batch): Shape {
  const keys = new Set(expect.map(({ key }) => key));
  if (keys.size < expect.length || expect.some(({ value }) => value === null)) return { kind: "steps" };
  const changes = puts.some(({ key }) => keys.has(key)) || deletes.some((key) => keys.has(key));
  if (changes) return { kind: "own" };
  return { kind: "fenced", fence: expect.map(fenceOf).sort().join(" ") };
}

/** Names the key with its bytes. */
export function fenceOf({ key, value }: Expectation): string {
  return `${key}=${value === null ? "" : Buffer.from(value).toString("base64")}`;
}

/** By key, the value after all of them; null: it is gone. */
export type Writes = Map<string, Uint8Array | null>;

export function applyTo(writes: Writes, batch: Batch): void {
  for (const key of batch.deletes) writes.set(key, null);
  for (const { key, value } of batch.puts) writes.set(key, value);
}

export function mergedWrites(group: readonly Batch[]): Writes {
  const writes: Writes = new Map();
  for (const batch of group) applyTo(writes, batch);
  return writes;
}

export interface SplitWrites {
  readonly deletes: readonly string[];
  readonly keys: readonly string[];
  readonly values: readonly Uint8Array[];
}

/** No key stands in both: the order of the two parts of a statement does not matter. */
export function split(writes: Writes): SplitWrites {
  const deletes: string[] = [];
  const keys: string[] = [];
  const values: Uint8Array[] = [];
  for (const [key, value] of writes) {
    if (value === null) deletes.push(key);
    else {
      keys.push(key);
      values.push(value);
    }
  }
  return { deletes, keys, values };
}
