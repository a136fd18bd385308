// Checkpoints in a directory that all workers reach: on one machine, or on a file system that several mount. Each run has a directory of
// its own in it, and each worker files of its own names, so several write at once. The directory itself is the user's: where it has
// gone, as with a file system that is not mounted any more, it is not made anew.
//
// Keeps true: a reader meets a file whole, the one before or the new one; one that was written is there after a loss of power.
import { constants } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { errnoOf } from "../../base/errors.ts";
import { ifThere, replaceFile, syncDirectory } from "../../base/file-system.ts";
import type { CheckpointStore } from "./checkpoint-store.ts";

/** Nobody but this user may read what keys have learned. */
const DIRECTORY_MODE = 0o700;
const FILE_MODE = 0o600;

export class DirectoryStore implements CheckpointStore {
  readonly name: string;
  /** A name that no other writer of the directory has. */
  readonly #writer: string;

  constructor(directory: string, writer: string) {
    this.name = directory;
    this.#writer = writer;
  }

  async read(place: string, maxBytes: number): Promise<Uint8Array | undefined> {
    // No link, which may lead anywhere, and nothing that waits for somebody else, as opening a pipe does.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const file = await ifThere(open(join(this.name, place), flags));
    if (file === undefined) return undefined;
    try {
      const found = await file.stat();
      if (!found.isFile()) throw new Error("it is no file");
      if (found.size > maxBytes) throw new Error(`it has ${found.size} bytes, and ${maxBytes} are allowed`);
      return await file.readFile();
    } finally {
      await file.close();
    }
  }

  async write(place: string, bytes: Uint8Array): Promise<void> {
    const file = join(this.name, place);
    const how = { temporary: `${file}.${this.#writer}`, mode: FILE_MODE, synced: "name" } as const;
    try {
      await replaceFile(file, bytes, how);
    } catch (error) {
      if (errnoOf(error) !== "ENOENT" || !(await this.#makeRunDirectory(dirname(file)))) throw error;
      await replaceFile(file, bytes, how);
    }
  }

  /** False when the directory that it would be in is not there either. */
  async #makeRunDirectory(directory: string): Promise<boolean> {
    try {
      await mkdir(directory, DIRECTORY_MODE);
      await syncDirectory(this.name);
    } catch (error) {
      if (errnoOf(error) !== "EEXIST") return false;
    }
    return true;
  }
}
