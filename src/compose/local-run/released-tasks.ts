// Tasks that a local run has come to by releases, as its database has them: a run of one of these goes on in its directory.
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { failure, RolloutError } from "../../base/errors.ts";
import type { Task } from "../../config/task.ts";
import type { Releases } from "../../coordinator/release/releases.ts";
import { replayReleases } from "../../coordinator/release/replay-releases.ts";
import { openLevelStore } from "../../storage/level/level-store.ts";
import { DATABASE } from "./run-record.ts";

interface Place {
  readonly path: string;
  readonly holderName: string;
  readonly clock: Clock;
}

/**
 * Whether items of that task are the run's, whose own task is told as `found`. Throws release_of_task for the candidate of a release that
 * is not over.
 */
export async function hasComeTo(
  place: Place,
  task: Pick<Task, "digest" | "summary">,
  found: string,
): Promise<boolean> {
  const releases = await readReleases(place);
  const release = releases?.triedBy(task.digest);
  if (release !== undefined) throw failure("release_of_task", { task: found, other: task.summary, release });
  return releases?.hasReached(task.digest) === true;
}

/** Undefined for a database that cannot be read: that is left to those who know it. */
async function readReleases({ path, holderName, clock }: Place): Promise<Releases | undefined> {
  try {
    const store = await openLevelStore({ path: join(path, DATABASE), holderName, clock });
    try {
      return await replayReleases(store, { nowMs: clock.monotonicMs(), trials: () => 0 });
    } finally {
      await store.close();
    }
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    return undefined;
  }
}
