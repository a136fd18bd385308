// Tasks that a local run has come to by releases, as its database has them: a run of one of these goes on in its directory.
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Clock } from "../../base/clock.ts";
import { failure, RolloutError } from "../../base/errors.ts";
import type { Task } from "../../config/task.ts";
import { releaseKey, releaseRecord, releasesRecord } from "../../coordinator/release/records.ts";
import type { SubmitRequestSchema } from "../../gen/rollout/v1/run_pb.ts";
import { RELEASES_KEY } from "../../storage/keys.ts";
import { openLevelStore } from "../../storage/level/level-store.ts";
import { readRecord } from "../../storage/records.ts";
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
  if (releases === undefined) return false;
  const { digests, live } = releases;
  const isAsked = (digest: Uint8Array): boolean => Buffer.compare(digest, task.digest) === 0;
  if (live !== undefined && isAsked(live.digest))
    throw failure("release_of_task", { task: found, other: task.summary, release: live.id });
  return digests.some(isAsked);
}

/**
 * The same of a run that goes on, asked of its coordinator by a submission of nothing. Also false where it cannot say so. Throws
 * release_of_task.
 */
export async function isTaken(
  submit: (request: MessageInitShape<typeof SubmitRequestSchema>) => Promise<unknown>,
  { digest: taskDigest, plugin, summary: taskSummary }: Pick<Task, "digest" | "plugin" | "summary">,
): Promise<boolean> {
  try {
    await submit({ taskDigest, plugin, taskSummary, dryRun: true });
    return true;
  } catch (error) {
    if (!(error instanceof RolloutError) || error.code === "release_of_task") throw error;
    return false;
  }
}

interface ReleasedTasks {
  /** Tasks that completed releases have brought. */
  readonly digests: readonly Uint8Array[];
  /** The release that is not over, and the task that it tries. */
  readonly live: { readonly id: string; readonly digest: Uint8Array } | undefined;
}

/** Undefined where there have been none, and for a database that cannot be read: that is left to those who know it. */
async function readReleases({ path, holderName, clock }: Place): Promise<ReleasedTasks | undefined> {
  try {
    const store = await openLevelStore({ path: join(path, DATABASE), holderName, clock });
    try {
      const releases = await readRecord(store, RELEASES_KEY, releasesRecord);
      if (releases === undefined) return undefined;
      const { latest: id, digests } = releases;
      const latest = await readRecord(store, releaseKey(id), releaseRecord);
      const isLive = latest !== undefined && latest.endedAtMs === null;
      return { digests, live: isLive ? { id, digest: latest.candidate.digest } : undefined };
    } finally {
      await store.close();
    }
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    return undefined;
  }
}
