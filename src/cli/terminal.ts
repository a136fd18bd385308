// The one door for what others wrote (outputs, logs, names, messages) on its way out of the process. A terminal is given text
// of which it obeys nothing; a file, a pipe and a program get the bytes as they are.
import { printableLines } from "../base/safe-text.ts";

/** `content` as `stream` is to be given it: whole lines, or all that there is. */
export function shownOn(stream: { readonly isTTY?: boolean }, content: string): string;
export function shownOn(
  stream: { readonly isTTY?: boolean },
  content: string | Uint8Array,
): string | Uint8Array;
export function shownOn(
  stream: { readonly isTTY?: boolean },
  content: string | Uint8Array,
): string | Uint8Array {
  if (stream.isTTY !== true) return content;
  return printableLines(typeof content === "string" ? content : Buffer.from(content).toString("utf8"));
}
