// The end of what an attempt wrote to its standard error: as much as is kept of it.

/** @internal */
export const LOG_TAIL_BYTES = 64 * 1_024;

/** How far into the rest a cut may move to begin with a whole line. */
const LINE_SEARCH_BYTES = 4 * 1_024;
/** Over so many chunks, they are made one: a thousand chunks of one byte cost a thousand objects. */
const CHUNKS_MAX = 64;
const NEWLINE = 0x0a;

export class LogTail {
  #chunks: Uint8Array[] = [];
  /** The length of all chunks. */
  #bytes = 0;
  #isCut = false;

  /** The chunk is kept, not copied. */
  push(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#chunks.length > CHUNKS_MAX || this.#bytes > 2 * LOG_TAIL_BYTES) this.#compact();
  }

  /** The last `LOG_TAIL_BYTES` at most; where more came before, it begins with a whole line, or at least a whole character. */
  bytes(): Uint8Array {
    this.#compact();
    const [all = new Uint8Array(0)] = this.#chunks;
    return this.#isCut ? all.subarray(startOfText(all)) : all;
  }

  #compact(): void {
    const all = Buffer.concat(this.#chunks);
    this.#isCut ||= all.length > LOG_TAIL_BYTES;
    // A copy: a view would keep what was cut off.
    const kept = all.length > LOG_TAIL_BYTES ? Buffer.from(all.subarray(-LOG_TAIL_BYTES)) : all;
    this.#chunks = [kept];
    this.#bytes = kept.length;
  }
}

function startOfText(bytes: Uint8Array): number {
  const newline = bytes.subarray(0, LINE_SEARCH_BYTES).indexOf(NEWLINE);
  if (newline >= 0) return newline + 1;
  let start = 0;
  // A character of UTF-8 has at most three bytes after its first.
  while (start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return start;
}
