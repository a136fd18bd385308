// Bytes as Postgres takes and gives them. Many of them go as one parameter in the binary form of an array, which costs a copy; the
// driver's own form is text and costs ten times as much. They come back as text, the only form that the driver reads.

const BYTEA_OID = 17;
const HEADER_BYTES = 20;
const EMPTY_HEADER_BYTES = 12;

export function bytesOfKey(key: string): Buffer {
  // Keys are ASCII; the end of a range may be any character behind them.
  return Buffer.from(key, "utf8");
}

export function keyOfBytes(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}

export function keyArray(keys: readonly string[]): Buffer {
  return byteaArray(keys.map(bytesOfKey));
}

/** The value of a `bytea[]` parameter. */
export function byteaArray(items: readonly Uint8Array[]): Buffer {
  if (items.length === 0) return header(EMPTY_HEADER_BYTES, 0);
  const bytes = items.reduce((sum, item) => sum + 4 + item.length, HEADER_BYTES);
  const array = header(bytes, 1);
  array.writeInt32BE(items.length, 12);
  // The first index.
  array.writeInt32BE(1, 16);
  let at = HEADER_BYTES;
  for (const item of items) {
    at = array.writeInt32BE(item.length, at);
    array.set(item, at);
    at += item.length;
  }
  return array;
}

function header(bytes: number, dimensions: number): Buffer {
  const array = Buffer.allocUnsafe(bytes);
  array.writeInt32BE(dimensions, 0);
  // No nulls.
  array.writeInt32BE(0, 4);
  array.writeInt32BE(BYTEA_OID, 8);
  return array;
}

/** A column of a row as the driver gives it: bytea in the form that `bytea_output` says, `hex` or the older `escape`. */
export function parseColumn(oid: number, text: string): Uint8Array | string {
  if (oid !== BYTEA_OID) return text;
  // The older form doubles every backslash, so that it never begins like the other.
  return text.startsWith("\\x") ? Buffer.from(text.slice(2), "hex") : unescaped(text);
}

function unescaped(text: string): Uint8Array {
  const bytes = text.replaceAll(/\\(\\|[0-7]{3})/g, (_, escaped: string) =>
    escaped === "\\" ? escaped : String.fromCharCode(Number.parseInt(escaped, 8)),
  );
  return Buffer.from(bytes, "latin1");
}
