// Names of things. A ULID (128 bits: 48 of time, 80 of chance) is 26 characters of Crockford's base 32 for people and
// 16 bytes on the wire. Each kind has a type of its own, so that one cannot be passed where another is meant.
import { assert } from "./assert.ts";
import type { Clock } from "./clock.ts";
import type { Random } from "./random.ts";

declare const brand: unique symbol;
type Branded<Base, Name extends string> = Base & { readonly [brand]: Name };

export type RunId = Branded<string, "RunId">;
export type WorkerId = Branded<string, "WorkerId">;
/** One start of a worker process. Newer ones sort after older ones of the same worker. */
export type IncarnationId = Branded<string, "IncarnationId">;
/** The scope of epochs: made with a store, carried by every message, so that epochs of two stores never meet. */
export type StoreId = Branded<string, "StoreId">;
/** One number for each leadership of a store; it only grows. The first is 0. */
export type Epoch = Branded<number, "Epoch">;

type UlidKind = RunId | WorkerId | IncarnationId | StoreId;

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const CHARACTERS = 26;
export const ULID_BYTES = 16;
const ULID_PATTERN = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

/** True for the one canonical form: upper case, 26 characters, no more than 128 bits. */
export function isUlid(text: string): boolean {
  return ULID_PATTERN.test(text);
}

/** A new id of the caller's kind: `newUlid<WorkerId>(clock, random)`. */
export function newUlid<Kind extends UlidKind>(clock: Clock, random: Random): Kind {
  const bytes = new Uint8Array(ULID_BYTES);
  let timeMs = Math.floor(clock.wallMs());
  for (let at = 5; at >= 0; at--) {
    bytes[at] = timeMs % 256;
    timeMs = Math.floor(timeMs / 256);
  }
  bytes.set(random.bytes(10), 6);
  return ulidFromBytes<Kind>(bytes);
}

/** Text to wire. The text must be canonical. */
export function ulidToBytes(id: UlidKind): Uint8Array {
  assert(isUlid(id), `not a ULID: ${id}`);
  const bytes = new Uint8Array(ULID_BYTES);
  let value = 0n;
  for (const character of id) value = (value << 5n) | BigInt(ALPHABET.indexOf(character));
  for (let at = ULID_BYTES - 1; at >= 0; at--) {
    bytes[at] = Number(value & 255n);
    value >>= 8n;
  }
  return bytes;
}

/** Wire to text. The caller has checked the length: bytes from a peer go through `parseUlidBytes`. */
export function ulidFromBytes<Kind extends UlidKind>(bytes: Uint8Array): Kind {
  assert(bytes.length === ULID_BYTES, "a ULID is 16 bytes");
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  let text = "";
  for (let at = 0; at < CHARACTERS; at++) {
    text = ALPHABET.charAt(Number(value & 31n)) + text;
    value >>= 5n;
  }
  return text as Kind;
}

/** Bytes from a peer: undefined when they are no ULID. */
export function parseUlidBytes<Kind extends UlidKind>(bytes: Uint8Array): Kind | undefined {
  return bytes.length === ULID_BYTES ? ulidFromBytes<Kind>(bytes) : undefined;
}

/** Text from a person or a file: undefined when it is no ULID. */
export function parseUlid<Kind extends UlidKind>(text: string): Kind | undefined {
  return isUlid(text) ? (text as Kind) : undefined;
}

export function epoch(value: number): Epoch {
  assert(Number.isSafeInteger(value) && value >= 0, `not an epoch: ${value}`);
  return value as Epoch;
}
