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
/** Character code → value. */
const VALUES = Uint8Array.from({ length: 128 }, (_, code) =>
  Math.max(0, ALPHABET.indexOf(String.fromCharCode(code))),
);
export const ULID_BYTES = 16;
const ULID_PATTERN = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

/** True for the one canonical form: upper case, 26 characters, no more than 128 bits. */
export function isUlid(text: string): boolean {
  return ULID_PATTERN.test(text);
}

/** A new id of the caller's kind: `newUlid<WorkerId>(clock, random)`. */
export function newUlid<Kind extends UlidKind>(clock: Pick<Clock, "wallMs">, random: Random): Kind {
  const bytes = new Uint8Array(ULID_BYTES);
  let timeMs = Math.floor(clock.wallMs());
  for (let at = 5; at >= 0; at--) {
    bytes[at] = timeMs % 256;
    timeMs = Math.floor(timeMs / 256);
  }
  bytes.set(random.bytes(10), 6);
  return textOf<Kind>(bytes);
}

/** Ids of workers and stores come again with each row and message: those of late are remembered. */
const REMEMBERED_MAX = 1_024;
const remembered = new Map<string, Uint8Array>();
/** The last one of each last byte: to make a key of the bytes would cost what it saves. */
const rememberedTexts: { readonly bytes: Uint8Array; readonly text: string }[] = [];

/** Text to wire. The text must be canonical. The bytes are everybody's: do not change them. */
export function ulidToBytes(id: UlidKind): Uint8Array {
  const known = remembered.get(id);
  if (known !== undefined) return known;
  if (remembered.size >= REMEMBERED_MAX) remembered.clear();
  const bytes = bytesOf(id);
  remembered.set(id, bytes);
  return bytes;
}

function bytesOf(id: UlidKind): Uint8Array {
  assert(isUlid(id), `not a ULID: ${id}`);
  const bytes = new Uint8Array(ULID_BYTES);
  // 26 characters hold 130 bits: the first one gives only its lower 3.
  let [held, heldBits, at] = [0, -2, 0];
  for (let position = 0; position < CHARACTERS; position++) {
    held = (held << 5) | (VALUES[id.charCodeAt(position)] ?? 0);
    heldBits += 5;
    if (heldBits < 8) continue;
    heldBits -= 8;
    bytes[at++] = held >>> heldBits;
    held &= (1 << heldBits) - 1;
  }
  return bytes;
}

/** When an id was made, by its maker's clock: milliseconds since 1970. */
export function ulidTimeMs(id: UlidKind): number {
  return ulidToBytes(id)
    .subarray(0, 6)
    .reduce((timeMs, byte) => timeMs * 256 + byte, 0);
}

/** Wire to text. The caller has checked the length: bytes from a peer go through `parseUlidBytes`. */
export function ulidFromBytes<Kind extends UlidKind>(bytes: Uint8Array): Kind {
  assert(bytes.length === ULID_BYTES, "a ULID is 16 bytes");
  const place = bytes[ULID_BYTES - 1] ?? 0;
  const known = rememberedTexts[place];
  if (known !== undefined && isSame(known.bytes, bytes)) return known.text as Kind;
  const text = textOf<Kind>(bytes);
  rememberedTexts[place] = { bytes: Uint8Array.from(bytes), text };
  return text;
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  for (let at = 0; at < ULID_BYTES; at++) if (one[at] !== other[at]) return false;
  return true;
}

function textOf<Kind extends UlidKind>(bytes: Uint8Array): Kind {
  let text = "";
  let [held, heldBits] = [0, 2];
  for (const byte of bytes) {
    held = (held << 8) | byte;
    heldBits += 8;
    while (heldBits >= 5) {
      heldBits -= 5;
      text += ALPHABET.charAt(held >>> heldBits);
      held &= (1 << heldBits) - 1;
    }
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
