// Where a run is stopped from spending more: so many failures, so much time, counted from its first submission or from when a
// person has last let it go on. Reaching one pauses the run and says why; nothing is killed.
import { unreachable } from "../base/assert.ts";
import { formatDuration } from "../config/duration.ts";
import { formatFailuresAllowed } from "../config/failures-allowed.ts";
import type { CoordinatorState } from "./state.ts";
import type { Turn } from "./turn.ts";

/** A share is judged when so many items are final: of the first item that fails, all have failed. */
const SHARE_OF_AT_LEAST = 20;

/** Why the run is to be paused, in words; undefined while no limit is reached. */
export function reachedLimit(state: CoordinatorState, turn: Turn): string | undefined {
  return tooManyFailures(state) ?? tooMuchTime(state, turn);
}

function tooManyFailures({
  limits: { maxFails },
  ledger: { tally },
  countedFrom,
}: CoordinatorState): string | undefined {
  if (maxFails === undefined) return undefined;
  const failed = tally.failures - countedFrom.failures;
  const setting = `run.max_fails is ${formatFailuresAllowed(maxFails)}`;
  switch (maxFails.kind) {
    case "count":
      return failed >= maxFails.count ? `${items(failed)} failed, and ${setting}` : undefined;
    case "share": {
      const final = failed + tally.count("done") - countedFrom.done;
      const isReached = final >= SHARE_OF_AT_LEAST && failed * 100 >= maxFails.percent * final;
      return isReached ? `${failed} of ${items(final)} failed, and ${setting}` : undefined;
    }
    default:
      return unreachable(maxFails, "limit of failures");
  }
}

/** By the wall clock, so that a restart does not begin anew; the time before the first submission does not count. */
function tooMuchTime(
  { limits: { timeLimitMs }, task, countedFrom }: CoordinatorState,
  turn: Turn,
): string | undefined {
  if (timeLimitMs === undefined || task === null) return undefined;
  if (turn.wallMs - countedFrom.wallMs < timeLimitMs) return undefined;
  const limit = formatDuration(timeLimitMs);
  return `it began or was resumed ${limit} ago, and run.time_limit is ${limit}`;
}

function items(count: number): string {
  return count === 1 ? "1 item" : `${count} items`;
}
