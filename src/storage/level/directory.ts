// The directory of a database before LevelDB sees it: made when it is missing, refused when it cannot be what it must be.
//
// Keeps true: LevelDB is opened only on a local file system, and never on a directory that it would take for a new
// database although one was there.
import { access, constants, open, readdir, readFile, realpath, statfs } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { describeError, errnoOf, failure, RolloutError } from "../../base/errors.ts";
import { isThere, makeDirectory } from "../../base/file-system.ts";
import { systemReason } from "../../base/system-reason.ts";
import { keepTreePrivate } from "../../base/trusted-place.ts";
import { WITNESS_FILE } from "./commit-index.ts";

/** Injected in tests: which file system a path is on, and how full it is. */
export type StatFs = (path: string) => Promise<FileSystemStat>;

export interface FileSystemStat {
  /** The magic number of `man 2 statfs`. */
  readonly type: bigint;
  /** Blocks that this user may still fill. */
  readonly bavail: bigint;
  readonly bsize: bigint;
}

export const systemStatFs: StatFs = (path) => statfs(path, { bigint: true });

/** Their locks or their fsync do not hold what LevelDB needs. Numbers from linux/magic.h and the projects' own headers. */
const NETWORK_FILE_SYSTEMS: ReadonlyMap<bigint, string> = new Map([
  [0x6969n, "NFS"],
  [0x517bn, "SMB"],
  [0xff534d42n, "CIFS"],
  [0xfe534d42n, "SMB2"],
  [0x00c36400n, "Ceph"],
  [0x0bd00bd0n, "Lustre"],
  [0x47504653n, "GPFS"],
  [0x5346414fn, "AFS"],
  [0x6b414653n, "AFS"],
  [0x01021997n, "9p"],
  [0x65735546n, "FUSE"],
]);

const ON_LOCAL_DISK = "use a directory on a local disk";

/** Makes the directory (mode 700) and its parents, and gives its real path. Throws store_unusable, and not_trusted. */
export async function prepareDirectory(path: string, statFs: StatFs): Promise<string> {
  try {
    await refuseNetworkFileSystem(path, statFs);
    await makeDirectory(resolve(path));
    const real = await realpath(path);
    // Nothing is changed in a directory of something else, which is refused when it is to be opened.
    if (isOwn(await readdir(real))) await keepTreePrivate(resolve(path));
    await access(real, constants.R_OK | constants.W_OK | constants.X_OK);
    return real;
  } catch (error) {
    throw unusable(path, error);
  }
}

/** A system error as store_unusable; what is of the table already stays as it is. */
export function unusable(path: string, error: unknown): RolloutError {
  if (error instanceof RolloutError) return error;
  const errno = errnoOf(error);
  const reason = errno === "EEXIST" ? "it is a file, not a directory" : systemReason(error);
  return failure("store_unusable", { path, reason, advice: ADVICE[errno ?? ""] ?? ANOTHER_DIRECTORY }, error);
}

/**
 * LevelDB could not open or make its files there: the driver gives a text and no errno, so the disk and the descriptors are looked at.
 * `needed` bytes or more have to be free.
 */
export async function unopened(
  path: string,
  error: unknown,
  { statFs, needed }: { readonly statFs: StatFs; readonly needed: number },
): Promise<RolloutError> {
  if (error instanceof RolloutError || errnoOf(error) !== undefined) return unusable(path, error);
  const free = await freeBytes(path, statFs);
  const errno = free !== undefined && free < needed ? "ENOSPC" : await refusalToOpen(path);
  const advice = ADVICE[errno ?? ""] ?? ANOTHER_DIRECTORY;
  return failure("store_unusable", { path, reason: describeError(error), advice }, error);
}

async function refusalToOpen(path: string): Promise<string | undefined> {
  return open(path, "r").then(
    async (handle) => {
      await handle.close();
      return undefined;
    },
    (error: unknown) => errnoOf(error),
  );
}

const ANOTHER_DIRECTORY = "correct that, or use another directory";

const ADVICE: Readonly<Record<string, string>> = {
  EEXIST: "use the path of a directory, or of nothing yet",
  ENOTDIR: "use the path of a directory, or of nothing yet",
  EACCES: "use a directory that this user may write to",
  EPERM: "use a directory that this user may write to",
  EROFS: "use a directory on a disk that can be written",
  ENOSPC: "free space, then start again",
  EDQUOT: "free space, then start again",
  EMFILE: "raise the limit on open files (ulimit -n), then start again",
  ENFILE: "close files of other processes, then start again",
};

/**
 * LevelDB takes a directory without the file CURRENT for a new database and deletes the tables that lie in it; and when
 * CURRENT leads nowhere, it says no more than that a file cannot be opened. Throws store_broken when there was a
 * database, store_unusable when something else is in there.
 */
export async function refuseUnlessDatabaseOrEmpty(path: string): Promise<void> {
  const names = await readdir(path);
  const broken = (reason: string): RolloutError =>
    failure("store_broken", { path, key: "its file CURRENT", reason });
  if (names.includes("CURRENT")) {
    const manifest = (await readFile(join(path, "CURRENT"), "latin1")).trimEnd();
    if (names.includes(manifest)) return;
    throw broken("it names a file that is not there");
  }
  if (names.some((name) => name === WITNESS_FILE || /\.(ldb|sst|log)$/.test(name))) {
    throw broken("it is missing");
  }
  const foreign = names.find(isForeign);
  if (foreign === undefined) return;
  throw failure("store_unusable", {
    path,
    reason: `it holds ${foreign}, which is not of a database`,
    advice: "use an empty directory, or one that is not there yet",
  });
}

/** True for the files of a database, and for none at all. */
function isOwn(names: readonly string[]): boolean {
  return names.includes("CURRENT") || names.includes(WITNESS_FILE) || !names.some(isForeign);
}

function isForeign(name: string): boolean {
  return !/^(LOCK|LOG|LOG\.old|MANIFEST-\d+|\d+\.dbtmp)$/.test(name);
}

/** Bytes that this user may still write there; undefined when it cannot be found out. */
export async function freeBytes(path: string, statFs: StatFs): Promise<number | undefined> {
  try {
    const { bavail, bsize } = await statFs(path);
    return Number(bavail * bsize);
  } catch {
    // It is asked for a better message only, about a disk that has just failed.
    return undefined;
  }
}

/** Throws store_unusable. */
export async function refuseNetworkFileSystem(path: string, statFs: StatFs): Promise<void> {
  const { type } = await statFs(await nearestExisting(resolve(path)));
  const name = NETWORK_FILE_SYSTEMS.get(BigInt.asUintN(32, type));
  if (name === undefined) return;
  const reason = `it is on a network file system (${name}), whose locks and syncs cannot be relied on`;
  throw failure("store_unusable", { path, reason, advice: ON_LOCAL_DISK });
}

async function nearestExisting(path: string): Promise<string> {
  return (await isThere(path)) ? path : nearestExisting(dirname(path));
}
