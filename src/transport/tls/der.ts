// DER, as far as certificates of our own making need it: values written, and values that are known to be well-formed taken apart.
const BOOLEAN = 0x01;
export const INTEGER = 0x02;
export const BIT_STRING = 0x03;
export const OCTET_STRING = 0x04;
const SEQUENCE = 0x30;
const SET = 0x31;
const OBJECT_IDENTIFIER = 0x06;
const PRINTABLE_STRING = 0x13;
const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;
/** Lengths below it are their own byte. */
const LONG_LENGTH = 0x80;
/** From then on a time has four digits of a year. */
const GENERALIZED_FROM = "2050";
const COMMON_NAME = "2.5.4.3";

/** A value of this tag, its content in pieces. */
export function derOf(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([Buffer.of(tag), derLength(length), ...parts]);
}

export const TRUE = derOf(BOOLEAN, Buffer.of(0xff));

export function sequence(...parts: readonly Uint8Array[]): Buffer {
  return derOf(SEQUENCE, ...parts);
}

/** Dots and numbers. */
export function objectIdentifier(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number);
  return derOf(OBJECT_IDENTIFIER, Buffer.from([40 * first + second, ...rest].flatMap(inSevens)));
}

/** A name that is one common name, of letters, digits and spaces. */
export function commonName(text: string): Buffer {
  return sequence(
    derOf(SET, sequence(objectIdentifier(COMMON_NAME), derOf(PRINTABLE_STRING, Buffer.from(text, "latin1")))),
  );
}

/** A moment in ISO 8601, in UTC; parts of a second are left out. */
export function time(iso: string): Buffer {
  const digits = `${iso.slice(0, "2026-11-18T14:05:06".length).replaceAll(/\D/g, "")}Z`;
  return digits < GENERALIZED_FROM
    ? derOf(UTC_TIME, Buffer.from(digits.slice(2), "latin1"))
    : derOf(GENERALIZED_TIME, Buffer.from(digits, "latin1"));
}

export interface DerValue {
  /** Tag and length included. */
  readonly whole: Buffer;
  readonly content: Buffer;
}

/** The values in `content`, one after the other. For bytes that somebody has found well-formed. */
export function derValues(content: Buffer): DerValue[] {
  const values: DerValue[] = [];
  for (let at = 0; at < content.length;) {
    const short = content.readUInt8(at + 1);
    const extra = short < LONG_LENGTH ? 0 : short - LONG_LENGTH;
    const length = extra === 0 ? short : content.readUIntBE(at + 2, extra);
    const start = at + 2 + extra;
    const end = start + length;
    values.push({ whole: content.subarray(at, end), content: content.subarray(start, end) });
    at = end;
  }
  return values;
}

function derLength(length: number): Buffer {
  if (length < LONG_LENGTH) return Buffer.of(length);
  const bytes = Buffer.from(
    length.toString(16).padStart(2 * Math.ceil(length.toString(16).length / 2), "0"),
    "hex",
  );
  return Buffer.concat([Buffer.of(LONG_LENGTH + bytes.length), bytes]);
}

/** Seven bits in a byte, the highest first; all bytes but the last have the eighth. */
function inSevens(number: number): number[] {
  const low = number & 0x7f;
  return number < 0x80 ? [low] : [...inSevens(Math.floor(number / 0x80)).map((byte) => byte | 0x80), low];
}
