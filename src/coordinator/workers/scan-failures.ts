// Silence, judged. A worker is suspected when its beat is late by more than the skew budget, and failed when it is late by
// more than that and by more than the failure timeout. The scan forgives this process the time in which it did not run
// itself: whoever was not heard because nobody listened is not late.
import { forgiveDelay, takeBackOverdue, takeBackRemains, takeBackUnreceived } from "./take-back.ts";
import { lossBySilence } from "./outage.ts";
import { move } from "./registry.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import { workerStateOf } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";

/** Twice per interval, so that a missed beat is noticed within two intervals. */
export function scanIntervalMs({ liveness }: Pick<CoordinatorState, "liveness">): number {
  return liveness.heartbeatIntervalMs / 2;
}

/** The caller has read what had arrived before it asks for a scan. */
export function onScan(state: CoordinatorState, turn: Turn): void {
  forgiveOwnLateness(state, turn.nowMs);
  turn.countsLosses = lossBySilence(state, turn.nowMs) === "lost";
  // A worker that is forgotten leaves the map, which a Map's own iteration allows.
  for (const row of state.workers.values()) {
    judge(state, turn, row);
    takeBackRemains(state, turn, row);
    takeBackUnreceived(state, turn, row);
    takeBackOverdue(state, turn, row);
  }
}

function judge(state: CoordinatorState, turn: Turn, row: WorkerRow): void {
  const { clockSkewBudgetMs, coordinatorFailureTimeoutMs, removeAfterMs } = state.liveness;
  const lateMs = turn.nowMs - row.dueAtMs;
  if (lateMs <= clockSkewBudgetMs) return;
  if (isOver(row)) {
    if (turn.nowMs - row.movedAtMs > removeAfterMs) move(state, turn, row, { type: "worker.expired" });
    return;
  }
  move(state, turn, row, { type: "beat.overdue" });
  if (lateMs > coordinatorFailureTimeoutMs) move(state, turn, row, { type: "beat.timedOut" });
}

/** Failed, or left: there is nothing to wait for but being forgotten. */
function isOver(row: WorkerRow): boolean {
  const { liveness } = workerStateOf(row);
  return liveness === "Failed" || liveness === "Removed";
}

/**
 * Time in which this process did not run is nobody's lateness. When exactly it stood still between two scans is not known, so
 * a worker is forgiven all of it, but for what it was heard after.
 */
function forgiveOwnLateness(state: CoordinatorState, nowMs: number): void {
  const intervalMs = scanIntervalMs(state);
  const missedMs = nowMs - state.lastScanMs - intervalMs;
  state.lastScanMs = nowMs;
  if (missedMs <= intervalMs) return;
  for (const row of state.workers.values()) {
    row.dueAtMs += Math.min(missedMs, nowMs - (row.lastBeatMs ?? -Infinity));
    row.movedAtMs += Math.min(missedMs, nowMs - row.movedAtMs);
    forgiveDelay(row, missedMs, nowMs);
  }
}
