// Work that is with nobody: given in an answer that was lost to a worker that goes on beating and does not ask again, or to a process
// whose next one beats and has not asked yet. Neither states in a hello what it has, so the beats are what there is to go by.
import { ENDS } from "./attempt-end.ts";
import { giveUp } from "./hand-back.ts";
import { endSessionOf, takeBackOlder } from "../session/session.ts";
import { isHeard, isItsOwn } from "../turn/state.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";

/** Of failure timeouts, for a new process to state what it has: a worker that is only slow is suspected before. */
const STATEMENT_FACTOR = 2;

/** Called at each scan. */
export function takeBackUnreceived(state: CoordinatorState, turn: Turn, row: WorkerRow): void {
  if (row.held.size === 0 || !isHeard(row) || row.lastBeatMs === undefined) return;
  takeBackUnacknowledged(state, turn, row, row.lastBeatMs);
  const patienceMs = STATEMENT_FACTOR * state.liveness.coordinatorFailureTimeoutMs;
  const isUnstated = row.session === undefined && turn.nowMs - row.movedAtMs > patienceMs;
  if (isUnstated) takeBackOlder(state, turn, row);
}

/**
 * What a beat does not acknowledge a failure timeout after it was given has not arrived. On a stream it is on its way as long as
 * the stream is; of a call the answer is forgotten, so that it does not come when the call is repeated.
 */
function takeBackUnacknowledged(
  state: CoordinatorState,
  turn: Turn,
  row: WorkerRow,
  heardAtMs: number,
): void {
  const { ackedAssignment: acked, session } = row;
  if (acked === undefined || session?.takesOneFrame === false) return;
  const patienceMs = state.liveness.coordinatorFailureTimeoutMs;
  const lost = [...row.held.values()].filter(
    (item) => isItsOwn(row, item) && item.number > acked && heardAtMs - item.receivedFromMs > patienceMs,
  );
  if (lost.length === 0) return;
  endSessionOf(row, turn);
  for (const item of lost) giveUp(state, turn, row, item, ENDS.left);
}
