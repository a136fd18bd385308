// The bytes of a value: [record kind u8][record version u8][crc32 u32][body], the body being a positional tuple in
// msgpack. The checksum covers the key too, so that a value under the wrong key is noticed.
//
// Keeps true: what decodes was written by `encodeRecord` for this key. Anything else is a value that says what is wrong
// with which key; nothing is skipped, and no field is read that is not there.
import { crc32 } from "node:zlib";
import msgpack from "msgpack-lite";
import { assert } from "../base/assert.ts";
import { failure } from "../base/errors.ts";
import { Fields, Malformed, wireTuple } from "./fields.ts";
import type { Tuple } from "./fields.ts";
import { readTuple } from "./tuple-reader.ts";

/** How one kind of record is written and read. One definition per kind, beside the code that owns the record. */
export interface RecordType<T> {
  /** From `RECORD_KIND`, 1 to 255. */
  readonly kind: number;
  /** For messages: "worker", "lease". */
  readonly name: string;
  /** The version that `encode` writes, 1 to 255; 1 unless said. A change of the tuple is a new version. */
  readonly version?: number;
  encode(value: T): Tuple;
  /** Reads the tuple of `version`. Refuses by `fields.refuse`; any other throw is a programmer error. */
  decode(fields: Fields): T;
  /** `migrations[n]` makes the tuple of version n + 1 from that of version n. Every older version has one. */
  readonly migrations?: Readonly<Record<number, (older: Fields) => Tuple>>;
}

/** Why a record is not served. */
export type Damage =
  | { readonly kind: "corrupt"; readonly key: string; readonly reason: string }
  /** Written by a newer rollout. */
  | { readonly kind: "newer"; readonly key: string; readonly found: number; readonly known: number };

export type Decoded<T> = { readonly kind: "ok"; readonly value: T } | Damage;

const FIRST_VERSION = 1;
const KIND_AT = 0;
const VERSION_AT = 1;
const CHECKSUM_AT = 2;
const BODY_AT = 6;

interface BodyEncoder {
  write(value: unknown): void;
  /** The bytes written since the last call. */
  read(): Uint8Array;
}

// One for all records: `msgpack.encode` fills two kilobytes with zeros for each. Its types leave the constructor out.
const { Encoder } = msgpack as unknown as { readonly Encoder: new () => BodyEncoder };
let encoder = new Encoder();

/** The bytes to put under `key`. */
export function encodeRecord<T>(type: RecordType<T>, key: string, value: T): Uint8Array {
  const body = encodeBody(wireTuple(type.encode(value)));
  const bytes = Buffer.allocUnsafe(BODY_AT + body.length);
  bytes[KIND_AT] = type.kind;
  bytes[VERSION_AT] = type.version ?? FIRST_VERSION;
  bytes.set(body, BODY_AT);
  bytes.writeUInt32BE(checksum(key, bytes), CHECKSUM_AT);
  return bytes;
}

/** Valid until the next call. */
function encodeBody(tuple: readonly unknown[]): Uint8Array {
  try {
    encoder.write(tuple);
    return encoder.read();
  } catch (error) {
    // Half a body would stand before the next one.
    encoder = new Encoder();
    throw error;
  }
}

/** Total: every sequence of bytes gives an answer. */
export function decodeRecord<T>(type: RecordType<T>, key: string, bytes: Uint8Array): Decoded<T> {
  const damage = findDamage(type, key, bytes);
  if (damage !== undefined) return damage;
  try {
    return { kind: "ok", value: type.decode(currentFields(type, bytes)) };
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    return { kind: "corrupt", key, reason: `not a ${type.name} record: ${error.message}` };
  }
}

/** Kind, version and checksum only, a tenth of the work of decoding: for walking over a whole store. */
export function findDamage(type: RecordType<unknown>, key: string, bytes: Uint8Array): Damage | undefined {
  const corrupt = (reason: string): Damage => ({ kind: "corrupt", key, reason });
  if (bytes.length <= BODY_AT) return corrupt(`${bytes.length} bytes are too few for a record`);
  if (checksum(key, bytes) !== recordChecksum(bytes)) return corrupt("the checksum does not match");
  const [kind, version] = bytes;
  if (kind !== type.kind)
    return corrupt(`a record of kind ${kind} where kind ${type.kind} (${type.name}) belongs`);
  if (version === undefined || version === 0) return corrupt("a record of version 0");
  const { version: known = FIRST_VERSION } = type;
  if (version > known) return { kind: "newer", key, found: version, known };
  return undefined;
}

/** The checksum that a record carries; what a segment's sum is made of. */
export function recordChecksum(bytes: Uint8Array): number {
  assert(bytes.length > BODY_AT, "not a record: too short for a checksum");
  return view(bytes).readUInt32BE(CHECKSUM_AT);
}

/** The value, or store_corrupt or store_newer thrown. `location` is the store's, for the message. */
export function okOrFailure<T>(location: string, decoded: Decoded<T>): T {
  switch (decoded.kind) {
    case "ok":
      return decoded.value;
    case "corrupt":
      throw failure("store_corrupt", { path: location, key: decoded.key, reason: decoded.reason });
    case "newer":
      throw failure("store_newer", {
        path: location,
        key: decoded.key,
        found: decoded.found,
        known: decoded.known,
      });
  }
}

function currentFields<T>(type: RecordType<T>, bytes: Uint8Array): Fields {
  const record = view(bytes);
  const body: unknown = readTuple(record, BODY_AT) ?? msgpack.decode(record.subarray(BODY_AT));
  if (!Array.isArray(body)) throw new Malformed("its body is no tuple");
  let fields = new Fields(body);
  const written = bytes[VERSION_AT] ?? 0;
  for (let version = written; version < (type.version ?? FIRST_VERSION); version++) {
    const migrate = type.migrations?.[version];
    assert(migrate !== undefined, `the ${type.name} record has a migration from version ${version}`);
    fields = new Fields(migrate(fields));
  }
  return fields;
}

/** Over key, kind, version and body. All but the body are a few bytes, for which a call out of JavaScript costs more than they do. */
function checksum(key: string, bytes: Uint8Array): number {
  let sum = -1;
  for (let at = 0; at < key.length; at++) sum = crcStep(sum, key.charCodeAt(at));
  for (let at = KIND_AT; at < CHECKSUM_AT; at++) sum = crcStep(sum, bytes[at] ?? 0);
  return crc32(bytes.subarray(BODY_AT), ~sum >>> 0);
}

/** The effect of a byte on a CRC-32 that is under way, by byte. */
const CRC_TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte;
  for (let bit = 0; bit < 8; bit++) sum = (sum & 1) === 1 ? 0xedb88320 ^ (sum >>> 1) : sum >>> 1;
  return sum;
});

function crcStep(sum: number, byte: number): number {
  return (CRC_TABLE[(sum ^ byte) & 0xff] ?? 0) ^ (sum >>> 8);
}

/** The same memory as a Buffer. */
function view(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
