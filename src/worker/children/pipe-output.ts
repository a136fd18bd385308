// One output of a command. A short command that says little has ended before a loop would have read any of it: all of it
// is in the pipe then, and taken in one go. The output of others is read as it comes.
//
// Keeps true: whatever a command can write before it is read as it comes fits in the pipe, or the command waits.
import { closeSync, readSync } from "node:fs";
import { Socket } from "node:net";
import { Readable } from "node:stream";
import { errnoOf } from "../../base/errors.ts";

/** A pipe holds so much, as Linux makes them. */
export const PIPE_BYTES = 64 * 1_024;
/** More than a pipe holds was written by somebody who still writes. */
const AT_ONCE_MAX_BYTES = 16 * PIPE_BYTES;

export class PipeOutput extends Readable {
  /** Undefined once somebody else closes it. */
  #descriptor: number | undefined;
  #socket: Socket | undefined;
  #firstBytes: Buffer | undefined;
  #bytes = 0;

  /** `descriptor`: of the end that is read, not blocking; it is closed with this. */
  constructor(descriptor: number) {
    super();
    this.#descriptor = descriptor;
    this.on("error", () => undefined);
  }

  /** The first piece that came; undefined when none has. */
  get firstBytes(): Buffer | undefined {
    return this.#firstBytes;
  }

  /** How much has come. */
  get bytes(): number {
    return this.#bytes;
  }

  /** From now on it is read as it comes. Idempotent. */
  follow(): void {
    const descriptor = this.#descriptor;
    if (descriptor === undefined) return;
    this.#descriptor = undefined;
    this.#socket = new Socket({ fd: descriptor, readable: true, writable: false });
    this.#socket.on("error", (error) => this.destroy(error));
    this.#socket.on("data", (chunk: Buffer) => {
      if (!this.#take(chunk)) this.#socket?.pause();
    });
    this.#socket.on("end", () => this.push(null));
  }

  /**
   * The command has ended. Takes what is there, by way of `room`; what others who have the pipe still write is read as it comes.
   * Idempotent.
   */
  finish(room: Buffer): void {
    while (this.#descriptor !== undefined) {
      const read = this.#bytes < AT_ONCE_MAX_BYTES ? readNow(this.#descriptor, room) : "later";
      if (read === "later") return this.follow();
      if (read === 0) {
        this.#close();
        this.push(null);
      } else this.#take(Buffer.from(room.subarray(0, read)));
    }
  }

  override _read(): void {
    this.#socket?.resume();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#close();
    this.#socket?.destroy();
    done(error);
  }

  #take(chunk: Buffer): boolean {
    this.#firstBytes ??= chunk;
    this.#bytes += chunk.length;
    return this.push(chunk);
  }

  #close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }
}

/** The number of bytes, 0 at the end; `later` when there is nothing for now. */
function readNow(descriptor: number, room: Buffer): number | "later" {
  try {
    return readSync(descriptor, room);
  } catch (error) {
    if (errnoOf(error) === "EAGAIN") return "later";
    return 0;
  }
}
