// The file through which a command and its key speak: at the start it holds the key's state, and what a command that succeeds leaves
// there is the state from then on.
import { open, writeFile } from "node:fs/promises";
import { constants } from "node:fs";
import { errnoOf } from "../../../base/errors.ts";
import { systemReason } from "../../../base/system-reason.ts";
import type { Outcome, StateChange } from "../backend.ts";

export class StateFile {
  /** For the command. There is no file where there is no state. */
  readonly path: string;
  readonly #before: Uint8Array | undefined;

  private constructor(path: string, before: Uint8Array | undefined) {
    this.path = path;
    this.#before = before;
  }

  /** `path` is of this attempt alone. Rejects as the file system does. */
  static async create(path: string, state: Uint8Array | undefined): Promise<StateFile> {
    if (state !== undefined) await writeFile(path, state, { mode: 0o600 });
    return new StateFile(path, state);
  }

  /** The success of a command that has left its state here, or why it is none. One byte over `maxBytes` at most is read. */
  async success(output: Uint8Array, maxBytes: number): Promise<Outcome> {
    try {
      const state = await this.#change(maxBytes);
      return { kind: "success", output, ...(state !== undefined && { state }) };
    } catch (error) {
      // To take it for removed would lose what the key has learned.
      return { kind: "error", message: `its state cannot be read: ${systemReason(error)}` };
    }
  }

  /** Undefined when it is as it was. */
  async #change(maxBytes: number): Promise<StateChange | undefined> {
    const bytes = await readStart(this.path, maxBytes + 1);
    if (bytes === undefined) return this.#before === undefined ? undefined : "removed";
    return this.#before !== undefined && bytes.equals(this.#before) ? undefined : bytes;
  }
}

/** Undefined when there is no file. */
async function readStart(path: string, maxBytes: number): Promise<Buffer | undefined> {
  try {
    // Not waiting: opening a pipe would wait for somebody to write to it.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      if (!(await file.stat()).isFile()) throw new Error("it is no file");
      const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0);
      return buffer.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
