// The feed as lines, however its bytes were cut, and how long to wait before it is opened again.
import type { PageNews } from "../../page-messages.ts";

export class FeedLines {
  readonly #decoder = new TextDecoder();
  #rest = "";

  /** The news that are whole by now. Throws when a line is no JSON: the feed is then opened again. */
  take(bytes: Uint8Array): PageNews[] {
    const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split("\n");
    this.#rest = lines.pop() ?? "";
    return lines.flatMap((line) => (line.trim() === "" ? [] : [JSON.parse(line) as PageNews]));
  }
}

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;

/** Twice as long after each failure, less a random part, so that many pages do not come back at once. `chance`: from 0 to 1. */
export function waitBefore(attempt: number, chance: number): number {
  const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempt);
  return Math.round(longest * (0.5 + chance / 2));
}
