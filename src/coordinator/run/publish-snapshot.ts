// The snapshot that a leader publishes to those that follow it, and what of it no other row has: the usage of each worker.
import type { WorkerId } from "../../base/ids.ts";
import { snapshotEntry } from "../lead/coordinator-snapshot.ts";
import type { Usage } from "../lead/coordinator-snapshot.ts";
import { UNTOLD } from "../ledger/records.ts";
import type { Report } from "../turn/session-frame.ts";
import type { CoordinatorState } from "../turn/state.ts";
import { countsOf } from "./run-status.ts";
import type { Turn } from "../turn/turn.ts";

const NOTHING: Usage = { done: 0, failed: 0, executedMs: 0 };
/** Outcomes that an attempt has by its own doing. */
const FAILURES: ReadonlySet<string> = new Set(["error", "timeout", "crash", "crash_shared", "too_large"]);

/** An attempt of this worker has ended, and its report was taken. */
export function countUsage(
  usage: Map<WorkerId, Usage>,
  worker: WorkerId,
  { outcome, execution = UNTOLD }: Report,
): void {
  const before = usage.get(worker) ?? NOTHING;
  usage.set(worker, {
    done: before.done + (outcome.kind === "success" ? 1 : 0),
    failed: before.failed + (FAILURES.has(outcome.kind) ? 1 : 0),
    executedMs: before.executedMs + execution.durationMs,
  });
}

/** Last in a turn, when all else in it is decided: the batch has both. */
export function publishSnapshot(state: CoordinatorState, turn: Turn): void {
  if (!turn.publishes) return;
  const { epoch, usage, keys } = state;
  const { tally, setAside } = state.ledger;
  const { cursors, nextSequence, nextCompletion } = tally.numbers;
  // As the leader's own status tells them.
  const { pending, running: inFlight, done, failed } = countsOf(tally, setAside, keys.rows.inside);
  const counts = { pending, inFlight, done, failed };
  const number = ++state.published;
  state.ledger.meter.publishedAtMs = turn.nowMs;
  turn.put(snapshotEntry({ epoch, number, cursors, nextSequence, nextCompletion, ...counts, usage }));
}
