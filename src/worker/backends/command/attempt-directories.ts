// The directories in which commands leave files. An attempt has one to itself, and one in which it has left nothing is the next one's: to
// make and remove a directory for each would take longer than a short command does.
//
// Keeps true: nobody is given a directory that somebody has, or that an attempt has left something in.
import { readdirSync, statSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "../../../base/errors.ts";
import { makeDirectory } from "../../../base/file-system.ts";
import { keepDirectoryPrivate } from "../../../base/trusted-place.ts";

export class AttemptDirectories {
  readonly #base: string;
  #made = 0;
  /** When something came into one last, or went: as long as it is taken. */
  readonly #changedAtMs = new Map<string, number>();
  readonly #free: string[] = [];
  #prepared: Promise<void> | undefined;

  /** `base` is absolute and of these alone: emptied at the first, removed at the end. */
  constructor(base: string) {
    this.#base = base;
  }

  /** An empty one, which is the caller's until it gives it back. Rejects as the file system does. */
  async take(): Promise<string> {
    for (let free = this.#free.pop(); free !== undefined; free = this.#free.pop())
      if (this.#note(free)) return free;
    this.#prepared ??= this.#prepare();
    await this.#prepared.catch((error: unknown) => {
      this.#prepared = undefined;
      throw error;
    });
    const directory = join(this.#base, String(++this.#made));
    await mkdir(directory, { mode: 0o700 }).catch(async (error: unknown) => {
      if (errnoOf(error) !== "ENOENT") throw error;
      // Somebody has removed the place for all.
      await makeDirectory(this.#base);
      await mkdir(directory, { mode: 0o700 });
    });
    this.#note(directory);
    return directory;
  }

  /** Removes it with all that is in it; an empty one is kept. Rejects as the file system does. */
  async giveBack(directory: string): Promise<void> {
    const changedAtMs = this.#changedAtMs.get(directory);
    this.#changedAtMs.delete(directory);
    // Times are those of the kernel's ticks: what came at the start of the attempt may have left the same one.
    const isUnchanged = changedAtMs !== undefined && changeOf(directory) === changedAtMs;
    if (isUnchanged && readdirSync(directory).length === 0) this.#free.push(directory);
    else await rm(directory, { recursive: true, force: true });
  }

  /** False when it is not there any more. */
  #note(directory: string): boolean {
    const changedAtMs = changeOf(directory);
    if (changedAtMs !== undefined) this.#changedAtMs.set(directory, changedAtMs);
    return changedAtMs !== undefined;
  }

  async close(): Promise<void> {
    await rm(this.#base, { recursive: true, force: true });
  }

  async #prepare(): Promise<void> {
    await rm(this.#base, { recursive: true, force: true });
    await makeDirectory(join(this.#base, ".."));
    await keepDirectoryPrivate(join(this.#base, ".."));
    await mkdir(this.#base, { mode: 0o700 });
  }
}

/** Undefined when it is not there. The kernel has it in memory, so this waits for no disk. */
function changeOf(directory: string): number | undefined {
  return statSync(directory, { throwIfNoEntry: false })?.mtimeMs;
}
