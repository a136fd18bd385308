// The file through which a command and the attempt after it speak: it holds the last checkpoint at the start of an attempt, and
// what the command leaves there is the next one.
//
// Keeps true: an attempt has a directory of its own, so that a command can write a new file and rename it, and what it leaves
// there is gone with the attempt.
import { constants } from "node:fs";
import { mkdir, open, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "../../../base/errors.ts";

export class CheckpointFile {
  /** For the command. There is no file where there is no checkpoint. */
  readonly path: string;
  readonly #directory: string;
  readonly #before: Uint8Array;

  private constructor(directory: string, before: Uint8Array) {
    this.#directory = directory;
    this.path = join(directory, "checkpoint");
    this.#before = before;
  }

  /** `directory` is made, and has to be of this attempt alone. Rejects as the file system does. */
  static async create(directory: string, checkpoint: Uint8Array): Promise<CheckpointFile> {
    const file = new CheckpointFile(directory, checkpoint);
    // Files that an attempt of the same name left here when it was killed with its worker are not this one's.
    await rm(directory, { recursive: true, force: true });
    await mkdir(directory, { mode: 0o700 });
    if (checkpoint.length > 0) await writeFile(file.path, checkpoint, { mode: 0o600 });
    return file;
  }

  /** The checkpoint that the command left; undefined when it is not new. One byte over `maxBytes` at most, of a longer one too. */
  async read(maxBytes: number): Promise<Uint8Array | undefined> {
    const bytes = await readStart(this.path, maxBytes + 1);
    return bytes === undefined || bytes.length === 0 || bytes.equals(this.#before) ? undefined : bytes;
  }

  /** Idempotent. */
  async remove(): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true });
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
