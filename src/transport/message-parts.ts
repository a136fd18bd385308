// How many parts a message has, before it is decoded: each becomes an object, a hundred times larger than the two bytes that it may
// be on the wire, and four megabytes of them stop the one thread that everybody waits for. Counting makes no objects.
import type { DescMessage } from "@bufbuild/protobuf";

const [VARINT, FIXED_64, LENGTH, FIXED_32] = [0, 1, 2, 5];
/** In JSON every part stands behind one of these: `{`, `[`, `,`. */
const JSON_PARTS: ReadonlySet<number> = new Set([0x7b, 0x5b, 0x2c]);

/** Whether the message, in JSON, has more parts than `max`. */
export function hasMoreJsonParts(text: Uint8Array, max: number): boolean {
  let parts = 0;
  for (const byte of text) if (JSON_PARTS.has(byte) && ++parts > max) return true;
  return false;
}

/**
 * Whether the message has more fields than `max`, those of the messages in it included. A malformed message is counted up to
 * its fault: decoding goes no further either.
 */
export function hasMoreParts(type: DescMessage, message: Uint8Array, max: number): boolean {
  // A field has two bytes at least, so most messages need no look.
  return message.length > 2 * max && new PartCount(message, max).isOver(type);
}

class PartCount {
  readonly #bytes: Uint8Array;
  readonly #max: number;
  #at = 0;
  #parts = 0;

  constructor(bytes: Uint8Array, max: number) {
    this.#bytes = bytes;
    this.#max = max;
  }

  isOver(type: DescMessage): boolean {
    this.#count(type, this.#bytes.length);
    return this.#parts > this.#max;
  }

  #count(type: DescMessage, end: number): void {
    while (this.#at < end && ++this.#parts <= this.#max) {
      const tag = this.#varint();
      const wireType = tag & 7;
      if (wireType === VARINT) this.#varint();
      else if (wireType === FIXED_64) this.#at += 8;
      else if (wireType === FIXED_32) this.#at += 4;
      else if (wireType === LENGTH) {
        const length = this.#varint();
        const inner = messagesIn(type).get(tag >>> 3);
        if (inner === undefined) this.#at += length;
        else this.#count(inner, Math.min(end, this.#at + length));
      }
    }
  }

  /** Exact up to 32 bits, which is all that tags and lengths may have. */
  #varint(): number {
    let value = 0;
    for (let shift = 0; this.#at < this.#bytes.length; shift += 7) {
      const byte = this.#bytes[this.#at++] ?? 0;
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    return value >>> 0;
  }
}

const known = new WeakMap<DescMessage, ReadonlyMap<number, DescMessage>>();

/** By their numbers, the fields that hold messages. */
function messagesIn(type: DescMessage): ReadonlyMap<number, DescMessage> {
  const found = known.get(type);
  if (found !== undefined) return found;
  const fields = new Map<number, DescMessage>();
  for (const field of type.fields) if (field.message !== undefined) fields.set(field.number, field.message);
  known.set(type, fields);
  return fields;
}
