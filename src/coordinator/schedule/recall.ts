// Recalls. While a run is paused, items that workers have not started are to wait with the coordinator; items that a cancelled
// run has given out are settled, and killed where they run.
import { ENDS } from "../workers/attempt-end.ts";
import { noteRecalled } from "../workers/hand-back.ts";
import type { Failure, RunningItem } from "../ledger/ledger.ts";
import { settleItem } from "../items/transitions.ts";
import type { NamedAttempt } from "../turn/session-frame.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";

const CALLS_RECALLED_EVERY_MS = 5_000;
const CANCELLED: Failure = { class: "cancelled", message: "the run was cancelled" };

export function recallBacklogs({ workers }: CoordinatorState, turn: Turn): void {
  for (const row of workers.values()) recallBacklog(row, turn);
}

/** Everything is recalled: the worker knows what it has started, and hands back the rest. */
export function recallBacklog({ session, held }: WorkerRow, turn: Turn): void {
  // A worker that waits for its verdict is sent the recall with it.
  if (session?.isReconciled !== true || held.size === 0) return;
  // A worker that calls says what it has with each call: a recall that is repeated must not make it call again at once.
  if (session.takesOneFrame && turn.nowMs - session.recalledAtMs < CALLS_RECALLED_EVERY_MS) return;
  session.recalledAtMs = turn.nowMs;
  const items = [...held.values()];
  noteRecalled(items, turn);
  turn.send(session.port, { kind: "release", attempts: items.map(named) });
}

/** Every item that a worker has fails as cancelled, all of them in one turn: a cancelled run has nothing in flight. */
export function cancelHeld({ workers, ledger }: CoordinatorState, turn: Turn): void {
  for (const { session, held } of workers.values()) {
    const items = [...held.values()];
    held.clear();
    for (const item of items)
      settleItem(ledger, turn, item, { type: "item.cancelled" }, CANCELLED, ENDS.cancelled);
    // One that waits for its verdict is told by it.
    if (session?.isReconciled === true && items.length > 0)
      turn.send(session.port, { kind: "drop", attempts: items.map(named) });
  }
}

function named({ id, row }: RunningItem): NamedAttempt {
  return { id, attempt: row.context.attempt };
}
