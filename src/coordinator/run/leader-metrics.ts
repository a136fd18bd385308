// A leader in numbers for monitoring, read from its state when somebody asks. It costs a walk over the workers.
import type { Exposition } from "../../observe/metrics/exposition.ts";
import { LIFECYCLES, LIVENESSES } from "../turn/input.ts";
import { isHeard, isTrusted, workerStateOf } from "../turn/state.ts";
import type { CoordinatorState } from "../turn/state.ts";
import { addFleetMetrics } from "./fleets.ts";
import { meaningOf } from "./run.ts";
import { countExecuting } from "./run-status.ts";

/** `waitingInputs`: those that no turn has taken yet. `nowMs` is monotonic. */
export function addLeaderMetrics(
  state: CoordinatorState,
  { waitingInputs, nowMs }: { readonly waitingInputs: number; readonly nowMs: number },
  exposition: Exposition,
): void {
  addItems(state, exposition);
  addWorkers(state, exposition);
  addFleetMetrics(state, nowMs, exposition);
  const { meter } = state.ledger;
  exposition.addHistogram("rollout_turn_duration_seconds", meter.turnDuration);
  exposition.addHistogram("rollout_turn_inputs", meter.turnInputs);
  exposition.add("rollout_inbox_inputs", waitingInputs);
  exposition.add("rollout_inbox_refused_total", meter.inboxRefused);
}

function addItems(state: CoordinatorState, exposition: Exposition): void {
  const { ledger, counters } = state;
  const { tally, meter, setAside } = ledger;
  const { phase, isPaused } = meaningOf(state);
  const [delayed, running] = [tally.count("delayed"), tally.count("running")];
  const executing = countExecuting(state);
  exposition.addEach("rollout_items", "state", {
    pending: tally.pending - delayed,
    ...{ delayed, running },
    done: tally.count("done"),
    failed: tally.count("failed"),
    set_aside: setAside.size,
  });
  exposition.addEach("rollout_items_finished_total", "class", meter.itemsFinished);
  exposition.addState("rollout_run_state", "state", isPaused ? "paused" : phase);
  exposition.add("rollout_attempts_started_total", meter.attemptsStarted);
  exposition.addEach("rollout_attempts_ended_total", "class", meter.attemptsEnded);
  exposition.add("rollout_attempts_reassigned_total", counters.reassigned);
  exposition.add("rollout_stale_reports_total", counters.staleReports);
  exposition.add("rollout_conflicts_total", counters.conflicts);
  exposition.addHistogram("rollout_dispatch_latency_seconds", meter.dispatchLatency);
  for (const outcome of ["success", "other"] as const)
    exposition.addHistogram("rollout_item_duration_seconds", meter.itemDuration[outcome], { outcome });
  exposition.add("rollout_states_sent_total", state.keys.warmth.statesSent);
  exposition.add("rollout_states_saved_total", state.keys.warmth.statesSaved);
  exposition.add("rollout_items_executing", executing);
  // The workers' word of what executes is older than the ledger's of what they have.
  exposition.add("rollout_items_waiting_at_workers", Math.max(0, running - executing));
}

function addWorkers(state: CoordinatorState, exposition: Exposition): void {
  const { meter } = state.ledger;
  const counts = new Map<string, number>();
  let [slots, sessions, cordoned] = [0, 0, 0];
  for (const row of state.workers.values()) {
    const { lifecycle, liveness } = workerStateOf(row);
    const key = `${liveness} ${lifecycle}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    if (row.session !== undefined) sessions++;
    if (!isHeard(row)) continue;
    slots += row.slots;
    if (!isTrusted(row)) cordoned++;
  }
  for (const liveness of LIVENESSES)
    for (const lifecycle of LIFECYCLES)
      exposition.add("rollout_workers", counts.get(`${liveness} ${lifecycle}`) ?? 0, {
        liveness: LIVENESS[liveness],
        state: LIFECYCLE[lifecycle],
      });
  exposition.add("rollout_workers_cordoned", cordoned);
  exposition.add("rollout_worker_failures_total", meter.workerFailures);
  exposition.add("rollout_worker_drains_total", meter.workerDrains);
  exposition.add("rollout_slots", slots);
  exposition.add("rollout_sessions", sessions);
  exposition.add("rollout_steals_total", meter.steals);
  exposition.add("rollout_items_stolen_total", meter.itemsStolen);
}

const LIVENESS = { Alive: "alive", Suspected: "suspected", Failed: "failed", Removed: "removed" } as const;
const LIFECYCLE = { Init: "init", Ready: "ready", Draining: "draining", Gone: "gone" } as const;
