// Batches of a store in few words, for tests.
import type { Batch, Entry } from "../../src/storage/store.ts";

/** A batch that writes nothing, expects nothing and is flushed, but for what `parts` say. */
export function batchOf(parts: Partial<Batch>): Batch {
  return { puts: [], deletes: [], expect: [], durability: "flush", ...parts };
}

export function bytesOf(text: string): Uint8Array {
  return Buffer.from(text);
}

export function textOf(value: Uint8Array | undefined): string | undefined {
  return value === undefined ? undefined : Buffer.from(value).toString();
}

export function putOf(key: string, text: string): Entry {
  return { key, value: bytesOf(text) };
}

/** The range of every key that the port allows. */
export const EVERYTHING = { from: "!", to: "\u007f", limit: 100_000 } as const;
