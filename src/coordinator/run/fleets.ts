// The run and its fleets: what the room of fleets is told of the run at each scan, and what operators ask of it. A run without fleets passes by.
import type { WorkerId } from "../../base/ids.ts";
import { FleetState } from "../../gen/rollout/v1/fleet_pb.ts";
import type { FleetSummary } from "../../gen/rollout/v1/fleet_pb.ts";
import type { Exposition } from "../../observe/metrics/exposition.ts";
import type { ShownFleet } from "../fleet/operator.ts";
import type { FleetRun, FleetWorker } from "../fleet/ports.ts";
import type { Input } from "../turn/input.ts";
import { constantOf } from "../turn/operator-message.ts";
import type { Filled } from "../turn/operator-message.ts";
import { isHeard, isOfUse, isTrusted, workerStateOf } from "../turn/state.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";
import { move } from "../workers/registry.ts";
import { countExecuting } from "./run-status.ts";
import { givesOutWork, meaningOf, onPause } from "./run.ts";

const NO_ALLOCATIONS = { requested: 0, queued: 0, booting: 0, joined: 0, ending: 0 };

type FleetInput = Extract<
  Input,
  { readonly kind: "fleetHeard" | "fleetsChanged" | "listFleets" | "steerFleet" }
>;

export function onFleet(state: CoordinatorState, turn: Turn, input: FleetInput): void {
  const { fleets } = state;
  switch (input.kind) {
    case "fleetHeard":
      return fleets?.onAnswer(turn, input.heard, runFor(state, turn));
    case "fleetsChanged":
      state.fleets ??= input.changed.empty;
      return state.fleets.configure(input.changed.settings);
    case "listFleets":
      return turn.answer(input.answer, fleets?.detailed(turn) ?? { fleets: [] });
    case "steerFleet": {
      const { decision, answer } = input;
      const fleet = decision.action === "end" ? decision.target : decision.fleet;
      const none = { kind: "refused", code: "fleet_unknown", params: { fleet, known: "none" } } as const;
      return turn.answer(answer, fleets?.steer(turn, input, runFor(state, turn)) ?? none);
    }
  }
}

/** For those who look at the run. */
export function fleetsOf({ fleets }: CoordinatorState, turn: Turn): Filled<FleetSummary>[] {
  return fleets?.shown(turn).map(fleetSummaryOf) ?? [];
}

export function fleetSummaryOf({ state, cost, ...fleet }: ShownFleet): Filled<FleetSummary> {
  return { ...fleet, state: FleetState[constantOf(state)], ...(cost !== undefined && { cost }) };
}

/** At each scan. */
export function lookAtFleets(state: CoordinatorState, turn: Turn): void {
  state.fleets?.onScan(turn, runFor(state, turn));
}

export function addFleetMetrics(state: CoordinatorState, nowMs: number, exposition: Exposition): void {
  const { fleets, steadyOffsetMs } = state;
  if (fleets !== undefined) return fleets.addMetrics(exposition, nowMs + (steadyOffsetMs ?? 0));
  const running = state.ledger.tally.count("running");
  exposition.add("rollout_slots_wanted", givesOutWork(state) ? startable(state) + running : 0);
  exposition.addEach("rollout_allocations", "state", NO_ALLOCATIONS);
  exposition.add("rollout_machine_seconds_total", 0);
}

function runFor(state: CoordinatorState, turn: Turn): FleetRun {
  const { tally } = state.ledger;
  const executing = countExecuting(state);
  const { phase } = meaningOf(state);
  return {
    pending: startable(state) + Math.max(0, tally.count("running") - executing),
    executing,
    submitted: tally.nextSequence,
    ended: tally.count("done") + tally.count("failed"),
    isIdle: !givesOutWork(state),
    isOver: phase === "complete" || phase === "cancelled",
    workers: new Map([...state.workers.values()].map((row) => [row.id, workerFor(state, turn, row)])),
    drain: (id) => drain(state, turn, id as WorkerId),
    pause: (reason) => onPause(state, turn, reason),
  };
}

/** Items that could start: only the first of a key is one. */
function startable({ ledger: { tally }, keys: { counts, isInUse } }: CoordinatorState): number {
  const waiting = tally.pending - tally.count("delayed");
  if (!isInUse) return waiting;
  const behind = counts.items - counts.running - counts.delayed - counts.waiting;
  return Math.max(0, waiting - Math.max(0, behind));
}

function workerFor(state: CoordinatorState, turn: Turn, row: WorkerRow): FleetWorker {
  const { lifecycle } = workerStateOf(row);
  const usage = state.usage.get(row.id);
  return {
    ...{ id: row.id, slots: row.slots },
    presence: lifecycle === "Gone" ? "left" : isHeard(row) ? "heard" : "silent",
    silentMs: turn.nowMs - (row.lastBeatMs ?? row.movedAtMs),
    isOfUse: isOfUse(state, row) && isTrusted(row),
    isPoor: row.isAtRisk || !isTrusted(row),
    hasItems: row.held.size > 0,
    hasWorked: usage !== undefined && usage.done + usage.failed > 0,
  };
}

function drain(state: CoordinatorState, turn: Turn, id: WorkerId): void {
  const row = state.workers.get(id);
  if (row === undefined) return;
  move(state, turn, row, { type: "worker.drainAsked", incarnation: row.chart.context.incarnation });
}
