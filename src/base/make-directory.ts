// A directory with its parents. Not mkdir's own `recursive`: where nothing can be made, as in /proc, Node's never returns.
import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { errnoOf } from "./errors.ts";

/** Makes what is missing, for this user alone unless `mode` says else; what is there is left as it is. Rejects as mkdir does. */
export async function makeDirectory(path: string, mode = 0o700): Promise<void> {
  if (!(await isThere(dirname(path)))) await makeDirectory(dirname(path), mode);
  try {
    await mkdir(path, mode);
  } catch (error) {
    if (errnoOf(error) !== "EEXIST" || !(await stat(path)).isDirectory()) throw error;
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return false;
    throw error;
  }
}
