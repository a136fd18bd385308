// The part of DER that reading a certificate needs: elements with a tag of one byte and a length that is said in the
// shortest way. Any other encoding is refused, so that no two readers can see different things in it.

export interface DerElement {
  readonly tag: number;
  readonly content: Uint8Array;
}

const LONG_TAG = 0x1f;
const LONG_LENGTH = 0x80;
/** Three bytes of length are 16 MiB, more than any certificate has. */
const LENGTH_MAX_BYTES = 3;

/** The elements one behind the other that these bytes are, without a rest. Throws for everything else. */
export function derElements(bytes: Uint8Array): DerElement[] {
  const elements: DerElement[] = [];
  for (let at = 0; at < bytes.length;) {
    const tag = byteAt(bytes, at);
    if ((tag & LONG_TAG) === LONG_TAG) throw new RangeError("a tag of more than one byte");
    const { length, next } = lengthAt(bytes, at + 1);
    if (next + length > bytes.length) throw new RangeError("an element longer than what holds it");
    elements.push({ tag, content: bytes.subarray(next, next + length) });
    at = next + length;
  }
  return elements;
}

/** The elements within the single one that these bytes are, which has this tag. Throws for everything else. */
export function derContent(bytes: Uint8Array, tag: number): DerElement[] {
  const [element, ...more] = derElements(bytes);
  if (element?.tag !== tag || more.length > 0) throw new RangeError("not one element of this tag");
  return derElements(element.content);
}

function lengthAt(bytes: Uint8Array, at: number): { readonly length: number; readonly next: number } {
  const first = byteAt(bytes, at);
  if (first < LONG_LENGTH) return { length: first, next: at + 1 };
  const count = first - LONG_LENGTH;
  if (count === 0 || count > LENGTH_MAX_BYTES) throw new RangeError("a length without an end, or too long");
  let length = 0;
  for (let index = 1; index <= count; index++) length = length * 256 + byteAt(bytes, at + index);
  const shortest = count === 1 ? LONG_LENGTH : 256 ** (count - 1);
  if (length < shortest) throw new RangeError("a length that is not said in the shortest way");
  return { length, next: at + 1 + count };
}

function byteAt(bytes: Uint8Array, at: number): number {
  const byte = bytes[at];
  if (byte === undefined) throw new RangeError("the bytes end within an element");
  return byte;
}
