// Workers that go down together. A worker that dies may have died of what it executed; when at least half of them go down
// within a failure timeout, the cause is a machine, a network or somebody's hand, and no item is to blame.
import type { CoordinatorState, Restart, WorkerRow } from "../turn/state.ts";
import { isDraining, workerStateOf } from "../turn/state.ts";

/** Why a worker does not have any more what it had begun. `preempted`: it was leaving. */
export type Loss = "lost" | "lostWithMany" | "preempted";

const REPEATED_WITHIN_MS = 60_000;

/** To be called before anything of the new process is taken over. */
export function restartOf(row: WorkerRow, nowMs: number): Restart {
  const { restart, lastBeatMs } = row;
  const beforeMs = restart?.atMs ?? -Infinity;
  return {
    atMs: nowMs,
    wasHeard: lastBeatMs !== undefined,
    isRepeated: nowMs - beforeMs < REPEATED_WITHIN_MS,
    wasDraining: isDraining(row),
  };
}

/**
 * The loss that the end of a worker's older process is to its items; undefined while others may still turn out to have gone
 * with it.
 */
export function lossByRestart(
  state: Pick<CoordinatorState, "workers" | "liveness">,
  { restart }: WorkerRow,
  nowMs: number,
): Loss | undefined {
  if (restart?.wasDraining === true) return "preempted";
  if (restart?.wasHeard !== true) return "lostWithMany";
  if (restart.isRepeated) return "lost";
  const { down, watched } = countDown(state, restart.atMs, nowMs);
  if (areMany(down, watched)) return "lostWithMany";
  const isKnown = watched === 1 || nowMs - restart.atMs > state.liveness.coordinatorFailureTimeoutMs;
  return isKnown ? "lost" : undefined;
}

/** The loss that it is to items when a worker reaches the failure timeout at this moment. */
export function lossBySilence(
  state: Pick<CoordinatorState, "workers" | "liveness">,
  nowMs: number,
): Exclude<Loss, "preempted"> {
  const { down, watched } = countDown(state, nowMs - state.liveness.coordinatorFailureTimeoutMs, nowMs);
  return areMany(down, watched) ? "lostWithMany" : "lost";
}

function areMany(down: number, watched: number): boolean {
  return down > 1 && down * 2 >= watched;
}

/** How many went down around a moment, of how many that were there. */
function countDown(
  {
    workers,
    liveness: { clockSkewBudgetMs, coordinatorFailureTimeoutMs },
  }: Pick<CoordinatorState, "workers" | "liveness">,
  aroundMs: number,
  nowMs: number,
): { down: number; watched: number } {
  const isThen = (atMs: number): boolean => Math.abs(atMs - aroundMs) <= coordinatorFailureTimeoutMs;
  let [down, watched] = [0, 0];
  for (const row of workers.values()) {
    const { liveness } = workerStateOf(row);
    if (liveness === "Removed") continue;
    const hasFailedThen = liveness === "Failed" && isThen(row.movedAtMs - coordinatorFailureTimeoutMs);
    if (liveness === "Failed" && !hasFailedThen) continue;
    watched++;
    // Silence counts from where it is suspected: of workers that fall silent together one is always the first to fail.
    const isSilent = nowMs - row.dueAtMs > clockSkewBudgetMs;
    if (hasFailedThen || isSilent || (row.restart !== undefined && isThen(row.restart.atMs))) down++;
  }
  return { down, watched };
}
