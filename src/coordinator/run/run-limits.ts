// Where a run is stopped from spending more: so many failures, so much time, counted from its first submission or from when a
// person has last let it go on. Reaching one pauses the run and says why; nothing is killed.
import { unreachable } from "../../base/assert.ts";
import { formatDuration } from "../../config/duration.ts";
import { formatFailuresAllowed } from "../../config/failures-allowed.ts";
import type { FailureMessage } from "../ledger/failure-messages.ts";
import type { CoordinatorState } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";

/** A share is judged when so many items are final: of the first item that fails, all have failed. */
const SHARE_OF_AT_LEAST = 20;
/** When so many items are final and none is done, somebody looks before more is spent. */
const ALL_FAILED = 50;

/** Why the run is to be paused, in words; undefined while no limit is reached. */
export function reachedLimit(state: CoordinatorState, turn: Turn): string | undefined {
  return tooManyFailures(state) ?? nothingButFailures(state) ?? tooMuchTime(state, turn);
}

/** Asked once: a run that was let go on after so many failures goes on. */
function nothingButFailures({
  limits: { maxFails },
  ledger: { tally, failureMessages },
  countedFrom,
}: CoordinatorState): string | undefined {
  if (maxFails?.kind === "unlimited" || tally.failedAtFirst < ALL_FAILED) return undefined;
  if (countedFrom.failures >= ALL_FAILED) return undefined;
  return `the first ${ALL_FAILED} items to end have all failed${commonest(failureMessages.top(1), tally.count("failed"))}`;
}

function commonest([most]: readonly FailureMessage[], failed: number): string {
  if (most === undefined) return "";
  const share = most.items < failed ? `${most.items} of ${failed}` : "each";
  return `, ${share} with ${most.class}: ${most.message}`;
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
    case "unlimited":
      return undefined;
    default:
      return unreachable(maxFails, "limit of failures");
  }
}

/** A restart does not begin anew; the time before the first submission does not count. */
function tooMuchTime(
  { limits: { timeLimitMs }, task, countedFrom }: CoordinatorState,
  turn: Turn,
): string | undefined {
  if (timeLimitMs === undefined || task === null) return undefined;
  if (turn.steadyMs - countedFrom.wallMs < timeLimitMs) return undefined;
  const limit = formatDuration(timeLimitMs);
  return `it began or was resumed ${limit} ago, and run.time_limit is ${limit}`;
}

function items(count: number): string {
  return count === 1 ? "1 item" : `${count} items`;
}
