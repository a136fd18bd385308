// The positional fields of a record: what may stand in them, and reading them back by position and type.
//
// Keeps true: a field that was never written, or is of another type, is refused by position and never becomes
// undefined in the middle of the program.
import { assert } from "../base/assert.ts";

/** Plain data. There is no undefined in it: msgpack would quietly turn it into null. */
export type Field =
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | readonly Field[]
  | { readonly [name: string]: Field };

export type Tuple = readonly Field[];

/** Thrown by `Fields` and caught by `decodeRecord`, which turns it into a value; it never leaves the storage layer. */
export class Malformed extends Error {
  override readonly name = "Malformed";
}

/** A tuple as it was read. Each accessor names a position and the one type that may stand there. */
export class Fields {
  readonly #values: readonly unknown[];

  constructor(values: readonly unknown[]) {
    this.#values = values;
  }

  get length(): number {
    return this.#values.length;
  }

  text(at: number): string {
    const value = this.#values[at];
    return typeof value === "string" ? value : this.refuse(at, "is no text");
  }

  number(at: number): number {
    const value = this.#values[at];
    return typeof value === "number" ? value : this.refuse(at, "is no number");
  }

  /** A whole number that is exact. */
  integer(at: number): number {
    const value = this.number(at);
    return Number.isSafeInteger(value) ? value : this.refuse(at, "is no whole number");
  }

  boolean(at: number): boolean {
    const value = this.#values[at];
    return typeof value === "boolean" ? value : this.refuse(at, "is no boolean");
  }

  bytes(at: number): Uint8Array {
    const value = this.#values[at];
    return value instanceof Uint8Array ? value : this.refuse(at, "is not binary");
  }

  /** A tuple in the tuple. */
  tuple(at: number): Fields {
    const value: unknown = this.#values[at];
    return Array.isArray(value) ? new Fields(value) : this.refuse(at, "is no tuple");
  }

  /** A list of texts. */
  texts(at: number): string[] {
    const list = this.tuple(at);
    return Array.from({ length: list.length }, (_, index) => list.text(index));
  }

  /** A list of tuples. */
  tuples(at: number): Fields[] {
    const list = this.tuple(at);
    return Array.from({ length: list.length }, (_, index) => list.tuple(index));
  }

  /** Plain data of any shape, null included. For snapshots, whose shape their chart checks. */
  plain(at: number): unknown {
    const value = this.#values[at];
    return value === undefined ? this.refuse(at, "is missing") : value;
  }

  /** True when null was written there; for optional fields: `fields.isNull(2) ? undefined : fields.text(2)`. */
  isNull(at: number): boolean {
    return this.plain(at) === null;
  }

  /** Ends the decoding: the record is reported as corrupt by its key. `why` follows "field N". */
  refuse(at: number, why: string): never {
    throw new Malformed(`field ${at} ${why}`);
  }
}

/** The tuple as msgpack-lite needs it; asserts that it is plain data. */
export function wireTuple(tuple: Tuple): unknown[] {
  return tuple.map(wireField);
}

// msgpack-lite writes a Buffer as binary, and a Uint8Array as an extension of its own that no other library reads.
function wireField(field: Field): unknown {
  switch (typeof field) {
    case "string":
    case "boolean":
      return field;
    case "number":
      // One beyond them would be written as it is, and refused by whoever reads it: a row that no leader can read.
      if (!Number.isFinite(field) || (Number.isInteger(field) && !Number.isSafeInteger(field)))
        assert(false, `a record holds numbers that are finite and exact, not ${field}`);
      return field;
    case "object":
      break;
    default:
      assert(false, `a record cannot hold ${typeof field}`);
  }
  if (field === null || Buffer.isBuffer(field)) return field;
  if (field instanceof Uint8Array) return Buffer.from(field.buffer, field.byteOffset, field.byteLength);
  if (isList(field)) return field.map(wireField);
  const prototype: unknown = Object.getPrototypeOf(field);
  assert(prototype === Object.prototype || prototype === null, "a record holds plain data, no instances");
  return Object.fromEntries(Object.entries(field).map(([name, inner]) => [name, wireField(inner)]));
}

function isList(field: Field): field is readonly Field[] {
  return Array.isArray(field);
}
