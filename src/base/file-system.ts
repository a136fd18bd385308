// Files and directories, where Node's own functions for them fall short. A file is written whole: beside its place under a name of its
// own, and given its name when all of it is there.
//
// Keeps true: under the file's name a reader meets the old content or the new one, whole, whenever the process dies.
import { link, open, rename, rm, mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { errnoOf } from "./errors.ts";

export interface Replacement {
  /** The path under which it is written: in the same directory, and of no other writer. */
  readonly temporary: string;
  readonly mode?: number;
  /** After a loss of power: with `name` the new content is there, with `content` the old or the new, with `nothing` perhaps neither. */
  readonly synced: "name" | "content" | "nothing";
}

/** Rejects as the file system does; nothing is left beside the file then. */
export async function replaceFile(
  file: string,
  content: string | Uint8Array,
  how: Replacement,
): Promise<void> {
  await writeBeside(content, how, () => rename(how.temporary, file));
  if (how.synced === "name") await syncDirectory(dirname(file));
}

/**
 * The same for a file that must not be there yet. False when it is there already: of several processes that try at once, one
 * succeeds.
 */
export async function createFile(
  file: string,
  content: string | Uint8Array,
  how: Replacement,
): Promise<boolean> {
  const isNew = await writeBeside(content, how, async () => {
    try {
      await link(how.temporary, file);
      return true;
    } catch (error) {
      if (errnoOf(error) === "EEXIST") return false;
      throw error;
    } finally {
      await rm(how.temporary, { force: true });
    }
  });
  if (how.synced === "name") await syncDirectory(dirname(file));
  return isNew;
}

/** For a file that was written bit by bit and is on disk: it takes its place, also after a loss of power. Rejects as rename does. */
export async function placeFile(temporary: string, file: string): Promise<void> {
  await rename(temporary, file);
  await syncDirectory(dirname(file));
}

/** The names in it are there after a loss of power too. Where directories cannot be synced, nothing is promised. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, "r").catch(() => undefined);
  await handle?.sync().catch(() => undefined);
  await handle?.close();
}

async function writeBeside<Result>(
  content: string | Uint8Array,
  { temporary, mode, synced }: Replacement,
  place: () => Promise<Result>,
): Promise<Result> {
  try {
    const handle = await open(temporary, "w", mode);
    try {
      await handle.writeFile(content);
      if (synced !== "nothing") await handle.sync();
    } finally {
      await handle.close();
    }
    return await place();
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}

// A directory with its parents. Not mkdir's own `recursive`: where nothing can be made, as in /proc, Node's never returns.

/** Makes what is missing, for this user alone unless `mode` says else; what is there is left as it is. Rejects as mkdir does. */
export async function makeDirectory(path: string, mode = 0o700): Promise<void> {
  if (!(await isThere(dirname(path)))) await makeDirectory(dirname(path), mode);
  try {
    await mkdir(path, mode);
  } catch (error) {
    if (errnoOf(error) !== "EEXIST" || !(await stat(path)).isDirectory()) throw error;
  }
}

/** Whether something is there. Rejects when the system does not tell. */
export async function isThere(path: string): Promise<boolean> {
  return (await ifThere(stat(path))) !== undefined;
}

/** The file or directory that is asked for; undefined when it is not there. Rejects when the system does not tell. */
export function ifThere<Found>(asked: Promise<Found>): Promise<Found | undefined> {
  return asked.catch((error: unknown) => {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  });
}
