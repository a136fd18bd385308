// A further version for the workers of a local run: a link to its manifest in the directory that they watch.
import { lstat, mkdir, readlink, rename, rm, symlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { unwritable } from "../../base/system-reason.ts";
import { CONFIG_FILE_NAME } from "../../config/load.ts";
import type { Manifest } from "../../config/manifest.ts";
import { DATABASE, isOfLocalRun, PLUGINS } from "./run-record.ts";

const DIRECTORY_MODE = 0o700;

export interface LinkedVersion {
  readonly link: string;
  /** Takes it away again, unless it was there before. */
  undo(): Promise<void>;
}

/** The directory for versions of the local run whose configuration that is; undefined when it is of none. */
export async function versionsOfLocalRun(configFile: string): Promise<string | undefined> {
  const directory = dirname(configFile);
  const isLocal =
    basename(configFile) === CONFIG_FILE_NAME && (await isOfLocalRun(join(directory, DATABASE)));
  return isLocal ? join(directory, PLUGINS) : undefined;
}

/** One link for each version: a later one takes its place. Throws file_unwritable. */
export async function linkVersion(
  directory: string,
  { file, name, version }: Manifest,
): Promise<LinkedVersion> {
  const link = join(directory, `${name}-${version.replace(/[^\w.-]/g, "_")}.toml`);
  try {
    await mkdir(directory, { recursive: true, mode: DIRECTORY_MODE });
    if (
      (await lstat(link).catch(() => undefined))?.isSymbolicLink() === true &&
      (await readlink(link)) === file
    )
      return { link, undo: async () => {} };
    // In one step: a worker that looks meanwhile finds the one or the other.
    const made = `${link}.new`;
    await rm(made, { force: true });
    await symlink(file, made);
    await rename(made, link);
  } catch (error) {
    throw unwritable(link, error);
  }
  return { link, undo: () => rm(link, { force: true }) };
}
