// The beginning of a release as a command does it: refused before anything is written, and in a local run with the candidate's manifest put
// where its workers find it.
import { lstat, mkdir, readlink, rename, rm, symlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { failure, RolloutError } from "../base/errors.ts";
import { unwritable } from "../base/system-reason.ts";
import { CONFIG_FILE_NAME } from "../config/load.ts";
import { loadManifest } from "../config/manifest.ts";
import type { Manifest } from "../config/manifest.ts";
import type { ReleaseOrder } from "../config/release-file.ts";
import { DATABASE, isOfLocalRun, PLUGINS } from "./local-run/run-record.ts";
import type { CreatedRelease, Releases } from "./releases.ts";

/** Workers look for versions each second, and are heard a moment later; a backend need not be open for that. */
const WORKER_WAIT_MS = 30_000;
const ASK_AGAIN_MS = 500;
const DIRECTORY_MODE = 0o700;

export interface Beginning {
  readonly order: ReleaseOrder;
  readonly wait: boolean;
  readonly dryRun: boolean;
  /** The configuration of the run. */
  readonly configFile: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Throws what `Releases.create` throws, and `interrupted` when the signal aborts; nothing is begun then, and no link stays. */
export async function beginRelease(
  releases: Pick<Releases, "begin">,
  { order, wait, dryRun, configFile, clock, signal }: Beginning,
): Promise<CreatedRelease> {
  const versions = await versionsOfLocalRun(configFile);
  if (versions === undefined) return releases.begin(order, { wait, dryRun });
  // Its workers will have the candidate.
  const foreseen = await releases.begin(order, { wait: true, dryRun: true });
  if (dryRun) return foreseen;
  const linked = await linkVersion(versions, await loadManifest(order.manifestFile));
  const endMs = clock.monotonicMs() + WORKER_WAIT_MS;
  try {
    for (;;) {
      const created = await releases.begin(order, { wait }).catch((error: unknown) => {
        const isComing = error instanceof RolloutError && error.code === "release_no_worker";
        if (!isComing || clock.monotonicMs() >= endMs) throw error;
      });
      if (created !== undefined) return created;
      await sleep(clock, ASK_AGAIN_MS, signal);
      if (signal.aborted) throw failure("interrupted", {});
    }
  } catch (error) {
    await linked.undo();
    throw error;
  }
}

interface LinkedVersion {
  readonly link: string;
  /** Takes it away again, unless it was there before. */
  undo(): Promise<void>;
}

/** The directory for versions of the local run whose configuration that is; undefined when it is of none. */
async function versionsOfLocalRun(configFile: string): Promise<string | undefined> {
  const directory = dirname(configFile);
  const isLocal =
    basename(configFile) === CONFIG_FILE_NAME && (await isOfLocalRun(join(directory, DATABASE)));
  return isLocal ? join(directory, PLUGINS) : undefined;
}

/** One link for each version: a later one takes its place. Throws file_unwritable. */
async function linkVersion(directory: string, { file, name, version }: Manifest): Promise<LinkedVersion> {
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
