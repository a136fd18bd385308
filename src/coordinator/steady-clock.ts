// The time by which waits and limits count: the leader's monotonic clock, read as wall time, because what is stored has to mean
// something to the next leader. A wall clock that is set in the meantime moves none of them.
//
// Keeps true: it never runs backwards within a leadership, and never behind what earlier leaders have written by more than they
// can have meant.
import { dueOfDelayed } from "./ledger/place.ts";
import { DELAY_MAX_MS } from "./items/pending-rows.ts";
import type { CoordinatorState } from "./turn/state.ts";
import type { Turn } from "./turn/turn.ts";

/** The steady time of a turn. The first one of a leadership takes the wall clock's. */
export function steadyMsOf(state: CoordinatorState, nowMs: number, wallMs: number): number {
  // A clock that was put back since does not make the run any younger than at its beginning.
  state.steadyOffsetMs ??= Math.max(wallMs, state.countedFrom.wallMs) - nowMs;
  return nowMs + state.steadyOffsetMs;
}

/** What waits for longer than anything ever waits was written by a clock that was ahead: this one follows it. */
export function followDelays(state: CoordinatorState, turn: Turn): void {
  const next = state.ledger.delayed.peek();
  if (next === undefined) return;
  const aheadMs = dueOfDelayed(next.key) - turn.steadyMs - DELAY_MAX_MS;
  if (aheadMs > 0) state.steadyOffsetMs = turn.steadyMs - turn.nowMs + aheadMs;
}
