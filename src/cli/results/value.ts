// An output, or an input, within a line of a file. It is taken over as it is: JSON stays the text that it was, because
// reading and printing it again would round 12345678901234567890; what is no JSON is a text, and what is no text base64.
import { isUtf8 } from "node:buffer";

/** Bytes, as they are understood. `text` of JSON is one line. */
export type Value =
  | { readonly kind: "json"; readonly text: string }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "binary"; readonly base64: string };

export function valueOf(bytes: Uint8Array): Value {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!isUtf8(buffer)) return { kind: "binary", base64: buffer.toString("base64") };
  const text = buffer.toString("utf8");
  return isJson(text) ? { kind: "json", text: onOneLine(text) } : { kind: "text", text };
}

/** A field of an object of JSON, with its comma before it: `,"output":…`, or `,"output_base64":"…"`. */
export function jsonField(name: string, bytes: Uint8Array): string {
  const value = valueOf(bytes);
  switch (value.kind) {
    case "json":
      return `,"${name}":${value.text}`;
    case "text":
      return `,"${name}":${JSON.stringify(value.text)}`;
    case "binary":
      return `,"${name}_base64":"${value.base64}"`;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** In JSON an ending of a line stands only between tokens, where a space says the same. */
function onOneLine(json: string): string {
  return json.trim().replace(/[\r\n]+/g, " ");
}
