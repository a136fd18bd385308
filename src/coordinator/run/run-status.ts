// The run in numbers, for people. Nothing of it costs more than a walk over the workers.
import { LIMITS } from "../../config/limits.ts";
import type { LedgerExtent, RunView, WorkerCounts } from "../turn/run-view.ts";
import { meaningOf } from "./run.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import { isHeard, isTrusted, workerStateOf } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";

/** Items in quarantine that are named. */
const SET_ASIDE_SHOWN = 100;

export function viewOf(state: CoordinatorState, turn: Turn): RunView {
  const { run, task, ledger, counters, pulse } = state;
  const { tally } = ledger;
  const { name, phase } = meaningOf(state);
  return {
    state: name,
    phase,
    pauseReason: run.context.pauseReason,
    task,
    pending: tally.pending,
    delayed: tally.count("delayed"),
    running: tally.count("running"),
    executing: countExecuting(state),
    done: tally.count("done"),
    failed: tally.count("failed"),
    setAside: ledger.setAside.size,
    setAsideItems: [...ledger.setAside.values()].slice(0, SET_ASIDE_SHOWN),
    failedByClass: tally.failedByClass,
    failureMessages: ledger.failureMessages.top(LIMITS.failureMessagesShown),
    finishedPerSecond: pulse.read(turn.nowMs),
    ...counters,
    workers: countWorkers(state),
  };
}

/** Items that become final in this turn stand in a record that is written with it. */
export function extentOf(state: CoordinatorState, turn: Turn): LedgerExtent {
  const { tally, setAside } = state.ledger;
  const { phase } = meaningOf(state);
  return {
    setAside,
    phase,
    isOver: phase === "complete" || (phase === "cancelled" && tally.count("running") === 0),
    nextSequence: tally.nextSequence,
    priorities: [...tally.cursors.keys()].sort((one, other) => other - one),
    nextCompletion: tally.nextCompletion + (turn.completed.length > 0 ? 1 : 0),
  };
}

/** By what the workers have said of their load. */
function countExecuting({ workers }: CoordinatorState): number {
  let executing = 0;
  for (const row of workers.values())
    if (isHeard(row)) executing += Math.min(row.held.size, Math.round(row.load * row.slots));
  return executing;
}

function countWorkers({ workers, enrolment }: CoordinatorState): WorkerCounts {
  const counts = { ready: 0, draining: 0, suspected: 0, failed: 0, cordoned: 0, revoked: 0 };
  for (const row of workers.values()) {
    const kind = kindOf(row, enrolment.revoked.has(row.id));
    if (kind !== undefined) counts[kind]++;
  }
  return counts;
}

function kindOf(row: WorkerRow, isRevoked: boolean): keyof WorkerCounts | undefined {
  const { lifecycle, liveness } = workerStateOf(row);
  if (isRevoked && lifecycle !== "Gone") return "revoked";
  if (liveness === "Suspected") return "suspected";
  if (liveness === "Failed") return "failed";
  if (lifecycle === "Draining") return "draining";
  if (lifecycle !== "Ready") return undefined;
  return isTrusted(row) ? "ready" : "cordoned";
}
