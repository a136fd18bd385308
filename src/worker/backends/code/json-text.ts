// Bytes as the value that they mean to a user's code.

/** The JSON value; the text itself when it is not JSON. */
export function parseJsonText(bytes: Uint8Array): unknown {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
