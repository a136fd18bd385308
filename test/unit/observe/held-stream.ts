// A stream whose reader takes one write at a time, when the test says so.
import { Writable } from "node:stream";

export class HeldStream extends Writable {
  readonly writes: string[] = [];
  #pending: ((error?: Error) => void)[] = [];

  constructor() {
    super({ decodeStrings: false, highWaterMark: 1 });
  }

  override _write(chunk: unknown, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.writes.push(String(chunk));
    this.#pending.push(done);
  }

  /** The reader takes what was written last. */
  release(): void {
    this.#pending.shift()?.();
  }

  /** The reader goes away. */
  breakWith(error: Error): void {
    this.#pending.shift()?.(error);
  }

  get text(): string {
    return this.writes.join("");
  }
}
