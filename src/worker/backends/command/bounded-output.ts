// What a child writes to its standard output, up to a limit.
import type { Readable } from "node:stream";

const NEWLINE = 0x0a;

export class BoundedOutput {
  readonly #limit: number;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #isOver = false;

  /** `onOver` is called once, as soon as it is clear; nothing is kept then. */
  constructor(stream: Readable, limit: number, onOver: () => void) {
    this.#limit = limit;
    stream.on("data", (chunk: Buffer) => {
      if (this.#isOver) return;
      this.#chunks.push(chunk);
      this.#bytes += chunk.length;
      // One byte more may be the newline that is no part of it.
      if (this.#bytes <= limit + 1) return;
      this.#isOver = true;
      this.#chunks = [];
      onOver();
    });
  }

  get isOver(): boolean {
    return this.#isOver || this.bytes().length > this.#limit;
  }

  /** All of it, without the one newline with which programs end what they print. */
  bytes(): Uint8Array {
    if (this.#chunks.length !== 1) this.#chunks = [Buffer.concat(this.#chunks)];
    const [all = Buffer.alloc(0)] = this.#chunks;
    return all.at(-1) === NEWLINE ? all.subarray(0, -1) : all;
  }
}
