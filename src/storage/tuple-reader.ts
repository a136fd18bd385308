// Tuples in msgpack, as records have them: the few forms of it that records are made of, without an object for the reading. Other forms
// are left to the library.
//
// Keeps true: what it reads is what the library would; bytes of a field are those of the record, not a copy.

/** A record that holds so much of other memory, or less, as it has itself is read where it lies. */
const ROOM_FACTOR = 2;

/** Undefined for bytes that it cannot read: those of another form, or too few. */
export function readTuple(record: Buffer, at: number): unknown[] | undefined {
  // A field that is kept for long keeps the whole memory alive that it lies in.
  const isAlone = record.buffer.byteLength <= ROOM_FACTOR * record.length;
  const reader = new TupleReader(isAlone ? record : Buffer.from(record), at);
  const tuple = reader.next();
  return reader.isLost || !Array.isArray(tuple) ? undefined : tuple;
}

class TupleReader {
  readonly #bytes: Buffer;
  #at: number;
  /** It has met a form that it does not know, or the end of the bytes. */
  isLost = false;

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes;
    this.#at = at;
  }

  next(): unknown {
    const form = this.#uint8();
    if (form <= 0x7f) return form;
    if (form >= 0xe0) return form - 0x100;
    if (form >= 0xa0 && form <= 0xbf) return this.#text(form & 0x1f);
    if (form >= 0x90 && form <= 0x9f) return this.#list(form & 0x0f);
    switch (form) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xc4:
        return this.#binary(this.#uint8());
      case 0xc5:
        return this.#binary(this.#uint16());
      case 0xc6:
        return this.#binary(this.#uint32());
      case 0xcb:
        return this.#double();
      case 0xcc:
        return this.#uint8();
      case 0xcd:
        return this.#uint16();
      case 0xce:
        return this.#uint32();
      case 0xd0:
        return (this.#uint8() << 24) >> 24;
      case 0xd1:
        return (this.#uint16() << 16) >> 16;
      case 0xd2:
        return this.#uint32() | 0;
      case 0xd9:
        return this.#text(this.#uint8());
      case 0xda:
        return this.#text(this.#uint16());
      case 0xdb:
        return this.#text(this.#uint32());
      case 0xdc:
        return this.#list(this.#uint16());
      default:
        this.isLost = true;
        return undefined;
    }
  }

  /** Passes over so many bytes and returns where they begin. Where there are fewer the reader is lost, and the result means nothing. */
  #pass(length: number): number {
    const start = this.#at;
    this.#at += length;
    if (this.#at <= this.#bytes.length) return start;
    this.isLost = true;
    this.#at = this.#bytes.length;
    return 0;
  }

  #list(length: number): unknown[] {
    const list: unknown[] = [];
    for (let at = 0; at < length && !this.isLost; at++) list.push(this.next());
    return list;
  }

  #binary(length: number): Buffer {
    const start = this.#pass(length);
    return this.#bytes.subarray(start, start + length);
  }

  #text(length: number): string {
    if (length === 0) return "";
    const start = this.#pass(length);
    return this.#bytes.toString("utf8", start, start + length);
  }

  #uint8(): number {
    return this.#bytes[this.#pass(1)] ?? 0;
  }

  #uint16(): number {
    const start = this.#pass(2);
    return this.isLost ? 0 : this.#bytes.readUInt16BE(start);
  }

  #uint32(): number {
    const start = this.#pass(4);
    return this.isLost ? 0 : this.#bytes.readUInt32BE(start);
  }

  #double(): number {
    const start = this.#pass(8);
    return this.isLost ? 0 : this.#bytes.readDoubleBE(start);
  }
}
