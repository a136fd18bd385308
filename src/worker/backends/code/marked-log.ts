// The standard error of a process that executes one attempt after the other: which bytes are whose. The process writes a
// mark after each attempt, which is found here and left out.
import type { Readable } from "node:stream";

export class MarkedLog {
  #mark: Buffer = Buffer.alloc(0);
  #onChunk: (chunk: Buffer) => void = () => {};
  /** The end of what has come, when it may be the beginning of the mark. */
  #held: Buffer = Buffer.alloc(0);
  #found: PromiseWithResolvers<void> = Promise.withResolvers();

  constructor(stream: Readable) {
    stream.on("data", (chunk: Buffer) => this.#take(chunk));
    stream.on("close", () => this.#end());
  }

  /** Output belongs to one attempt from now on, until the mark. Output that came before is nobody's. */
  begin(mark: string, onChunk: (chunk: Buffer) => void): void {
    this.#mark = Buffer.from(mark);
    this.#held = Buffer.alloc(0);
    this.#onChunk = onChunk;
    this.#found = Promise.withResolvers();
  }

  /** Resolves when the mark has come, or nothing will come any more. */
  complete(): Promise<void> {
    return this.#found.promise;
  }

  /** Output is nobody's from now on. */
  stop(): void {
    this.#say(this.#held);
    this.#held = Buffer.alloc(0);
    this.#onChunk = () => {};
    this.#mark = Buffer.alloc(0);
  }

  #take(chunk: Buffer): void {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const at = this.#mark.length === 0 ? -1 : bytes.indexOf(this.#mark);
    if (at === -1) {
      const kept = this.#beginningOfMark(bytes);
      this.#say(bytes.subarray(0, bytes.length - kept));
      this.#held = bytes.subarray(bytes.length - kept);
      return;
    }
    this.#say(bytes.subarray(0, at));
    this.#held = Buffer.alloc(0);
    this.stop();
    this.#found.resolve();
  }

  /** How many of the last bytes are the first ones of the mark. */
  #beginningOfMark(bytes: Buffer): number {
    for (let length = Math.min(this.#mark.length - 1, bytes.length); length > 0; length--)
      if (bytes.subarray(bytes.length - length).equals(this.#mark.subarray(0, length))) return length;
    return 0;
  }

  #end(): void {
    this.stop();
    this.#found.resolve();
  }

  #say(bytes: Buffer): void {
    if (bytes.length > 0) this.#onChunk(bytes);
  }
}
