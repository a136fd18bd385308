// A local run as its coordinator meets it: what was recorded of it is held against the ledger before anybody may change it, and its
// end is shown to those who follow before the coordinator leaves.
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import type { RunStatus } from "../../client/run-status.ts";
import type { RunningServer } from "../../transport/server.ts";
import { forgetFinished, refuseFewerThanRecorded } from "./run-record.ts";

/** Followers that do not wait at the coordinator ask again within this time: programs of 0.1, and those who look at numbers. */
const FOLLOWED_MS = 2_500;
/** A follower that asks for ever is not waited for any longer. */
const FOLLOWED_PATIENCE_MS = 5_000;
const FOLLOWED_POLL_MS = 20;

/** A database on this machine may be of a local run, which has recorded what is in it. */
export async function settleLocalRun(path: string, status: () => Promise<RunStatus>): Promise<void> {
  await refuseFewerThanRecorded(path, async () => {
    const { done, setAside } = await status();
    return done + setAside;
  });
  // Once calls are taken, anybody may change what was recorded.
  await forgetFinished(path);
}

/**
 * A local run's coordinator leaves as soon as its run is over, and no other comes after it: those who follow the run are given the time
 * to ask once more. They go away when they have seen the end.
 */
export async function untilEndIsSeen(
  server: RunningServer,
  status: () => Promise<RunStatus>,
  clock: Clock,
): Promise<void> {
  const run = await status().catch(() => undefined);
  if (run?.state !== "complete" && run?.state !== "cancelled") return;
  const endMs = clock.monotonicMs() + FOLLOWED_PATIENCE_MS;
  while (server.hasCalled("operator", FOLLOWED_MS) && clock.monotonicMs() < endMs)
    await sleep(clock, FOLLOWED_POLL_MS);
}

/** `done` as the database has it; nothing for one that is no directory. Throws store_lost, as `refuseFewerThanRecorded` does. */
export async function refuseFewerThanRecordedIn(path: string | undefined, done: number): Promise<void> {
  if (path !== undefined) await refuseFewerThanRecorded(path, async () => done);
}
