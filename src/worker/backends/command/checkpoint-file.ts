// The file through which a command and the attempt after it speak: it holds the last checkpoint at the start of an attempt, and
// what the command leaves there is the next one.
//
// Keeps true: no other attempt's file has this path, and nobody else has its directory while the attempt runs, so that a command can write a
// new file and rename it.
import { constants } from "node:fs";
import { open, writeFile } from "node:fs/promises";
import { errnoOf } from "../../../base/errors.ts";

export class CheckpointFile {
  /** For the command. There is no file where there is no checkpoint. */
  readonly path: string;
  readonly #before: Uint8Array;

  private constructor(path: string, before: Uint8Array) {
    this.path = path;
    this.#before = before;
  }

  /** Rejects as the file system does. */
  static async create(path: string, checkpoint: Uint8Array): Promise<CheckpointFile> {
    if (checkpoint.length > 0) await writeFile(path, checkpoint, { mode: 0o600 });
    return new CheckpointFile(path, checkpoint);
  }

  /** The checkpoint that the command left; undefined when it is not new. One byte over `maxBytes` at most, of a longer one too. */
  async read(maxBytes: number): Promise<Uint8Array | undefined> {
    const bytes = await readStart(this.path, maxBytes + 1);
    return bytes === undefined || bytes.length === 0 || bytes.equals(this.#before) ? undefined : bytes;
  }
}

/** Undefined when there is no file that can be read. */
async function readStart(path: string, maxBytes: number): Promise<Buffer | undefined> {
  try {
    // Not waiting: opening a pipe would wait for somebody to write to it.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      if (!(await file.stat()).isFile()) return undefined;
      const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0);
      return Buffer.from(buffer.subarray(0, bytesRead));
    } finally {
      await file.close();
    }
  } catch (error) {
    // A command may leave anything there; what is not a file is no checkpoint.
    if (errnoOf(error) !== undefined) return undefined;
    throw error;
  }
}
