// A directory that will hold databases, whether it is there already or will be made.
import { access, constants, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { errnoOf, RolloutError } from "../../base/errors.ts";
import { systemReason } from "../../base/system-reason.ts";
import type { StatFs } from "../../storage/level/directory.ts";
import { refuseNetworkFileSystem } from "../../storage/level/directory.ts";

export type Place =
  | {
      readonly kind: "usable";
      /** The directory itself, or the first one above it that is there. */
      readonly nearest: string;
      readonly isThere: boolean;
    }
  /** Never one of a database: that it is on a network file system is thrown as store_unusable. */
  | { readonly kind: "unusable"; readonly reason: string };

/** Throws store_unusable for what LevelDB cannot be on. */
export async function examinePlace(path: string, statFs: StatFs): Promise<Place> {
  try {
    const nearest = await nearestThere(path);
    const isDirectory = (await stat(nearest)).isDirectory();
    if (!isDirectory && nearest === path)
      return { kind: "unusable", reason: "it is a file, not a directory" };
    if (!isDirectory) return { kind: "unusable", reason: `${nearest} is a file, not a directory` };
    await refuseNetworkFileSystem(nearest, statFs);
    await access(nearest, constants.R_OK | constants.W_OK | constants.X_OK);
    return { kind: "usable", nearest, isThere: nearest === path };
  } catch (error) {
    if (error instanceof RolloutError) throw error;
    return { kind: "unusable", reason: systemReason(error) };
  }
}

async function nearestThere(path: string): Promise<string> {
  try {
    await access(path);
    return path;
  } catch (error) {
    const errno = errnoOf(error);
    if (errno !== "ENOENT" && errno !== "ENOTDIR") throw error;
    return nearestThere(dirname(path));
  }
}
