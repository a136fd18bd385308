// Invariants of a coordinator's state, which hold between any two turns, whatever came before.
import { runsAlone } from "../../machines/work-item.ts";
import { assert } from "../../src/base/assert.ts";
import type { CoordinatorState } from "../../src/coordinator/turn/state.ts";
import { FAILED_ONCE_FACTOR, isHeard, isItsOwn, workerStateOf } from "../../src/coordinator/turn/state.ts";

/** Run after every step of every test. Throws for a state in which something else is true. */
export function sanityCheck(state: CoordinatorState): void {
  assert(state.workers.size <= state.workersMax, "C8: more workers than the maximum");
  assert(
    state.failedOnce.size <= FAILED_ONCE_FACTOR * state.workersMax,
    "C8: failures are remembered within bounds",
  );
  const { ledger } = state;
  let held = 0;
  for (const row of state.workers.values()) held += row.held.size;
  assert(held === ledger.running.size, "every running item is with exactly one worker");
  assert(ledger.tally.count("running") === ledger.running.size, "the ledger counts its running items");
  assert(ledger.tally.pending >= 0, "no item is in two places");
  assert(state.workersCount.count === state.workers.size, "the registry's count is the number of rows");
  for (const [id, row] of state.workers) {
    assert(row.id === id, "a row stands under its own id");
    assert(row.stored !== undefined, "every worker is in the store");
    const own = [...row.held.values()].filter((item) => isItsOwn(row, item));
    const isCompany = own.some((item) => runsAlone(item.row.context));
    assert(!isCompany || own.length === 1, "an item that runs alone is with a worker that has nothing else");
    const { lifecycle, liveness } = workerStateOf(row);
    assert(
      isHeard(row) || (row.held.size === 0 && row.session === undefined),
      "who is given up has nothing, and no session",
    );
    assert(
      (lifecycle === "Gone") === (liveness === "Removed"),
      "who has left is not watched, who is watched is here",
    );
    assert(
      liveness === "Failed" ? state.failedOnce.has(id) || row.lastBeatMs === undefined : true,
      "a failure was said",
    );
  }
}
