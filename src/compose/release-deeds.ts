// The beginning of a release as a command does it: refused before anything is written, and in a local run with the candidate's manifest put
// where its workers find it.
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { failure, RolloutError } from "../base/errors.ts";
import { loadManifest } from "../config/manifest.ts";
import type { ReleaseOrder } from "../config/release-file.ts";
import { linkVersion, versionsOfLocalRun } from "./local-run/linked-version.ts";
import type { CreatedRelease, Releases } from "./releases.ts";

/** Workers look for versions each second, and are heard a moment later; a backend need not be open for that. */
const WORKER_WAIT_MS = 30_000;
const ASK_AGAIN_MS = 500;

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
