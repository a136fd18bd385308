// Cuts what a child writes into lines.
//
// Keeps true: no more of a line is kept than it may be long (C8).

const NEWLINE = 0x0a;

export class LineReader {
  readonly #maxBytes: number;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that this chunk completes, without their endings. Undefined when one is too long: nothing is read after that. */
  push(chunk: Buffer): Buffer[] | undefined {
    const lines: Buffer[] = [];
    let at = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, at)) {
      this.#keep(chunk.subarray(at, end));
      at = end + 1;
      if (this.#bytes > this.#maxBytes) return undefined;
      const [only] = this.#chunks;
      lines.push(this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks));
      this.#chunks = [];
      this.#bytes = 0;
    }
    this.#keep(chunk.subarray(at));
    return this.#bytes > this.#maxBytes ? undefined : lines;
  }

  #keep(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#chunks.push(piece);
    this.#bytes += piece.length;
  }
}
