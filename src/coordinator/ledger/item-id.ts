// The id of an item: the SHA-256 of its content. The same line for the same task is the same item, however often and in
// whichever file it is submitted; equal lines of one submission are told apart by counting them.
import { createHash } from "node:crypto";

/** Changes when the recipe below does: ids of two recipes never meet. */
const FORMAT_TAG = "rollout item 1\0";
export const ITEM_ID_BYTES = 32;

export interface ItemContent {
  /** Digest of the task: plugin name, command, parameters. Not its version, nor timeouts or concurrency. */
  readonly taskDigest: Uint8Array;
  /** The line's exact bytes without its ending and outer white space. */
  readonly payload: Uint8Array;
  /** Empty when there is none. */
  readonly key: string;
  /** How many equal items came before in the same submission. */
  readonly sampleIndex: number;
}

/** Every field goes in behind its length, so that no two contents run together into the same bytes. */
export function itemIdOf({ taskDigest, payload, key, sampleIndex }: ItemContent): Uint8Array {
  const keyBytes = Buffer.from(key);
  const lengths = Buffer.allocUnsafe(16);
  lengths.writeUInt32BE(taskDigest.length, 0);
  lengths.writeUInt32BE(payload.length, 4);
  lengths.writeUInt32BE(keyBytes.length, 8);
  lengths.writeUInt32BE(sampleIndex, 12);
  return createHash("sha256")
    .update(FORMAT_TAG)
    .update(lengths)
    .update(taskDigest)
    .update(payload)
    .update(keyBytes)
    .digest();
}

/** The id as a key of a Map: one character a byte, the cheapest text there is for it. */
export function itemKeyOf(id: Uint8Array): string {
  return Buffer.from(id.buffer, id.byteOffset, id.byteLength).toString("latin1");
}

/** The id in keys of the store, and for people: 43 characters of base64url. */
export function itemIdText(id: Uint8Array): string {
  return Buffer.from(id.buffer, id.byteOffset, id.byteLength).toString("base64url");
}
