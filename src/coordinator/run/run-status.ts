// The run in numbers, for people. Nothing of it costs more than a walk over the workers.
import { LIMITS } from "../../config/limits.ts";
import { RunState } from "../../gen/rollout/v1/run_pb.ts";
import type { FleetSummary } from "../../gen/rollout/v1/fleet_pb.ts";
import type { ReleaseSummary } from "../../gen/rollout/v1/release_pb.ts";
import type { Cluster, GetRunResponse, KeyCounts, Run, WorkerCounts } from "../../gen/rollout/v1/run_pb.ts";
import { itemDigits } from "../ledger/place.ts";
import type { SetAsideItem } from "../ledger/quarantine-record.ts";
import type { InsideCounts } from "../keys/inside-counts.ts";
import type { FailureClass } from "../ledger/records.ts";
import type { Tally } from "../ledger/tally.ts";
import { constantOf } from "../turn/operator-message.ts";
import type { Filled } from "../turn/operator-message.ts";
import type { LedgerExtent } from "../turn/run-terms.ts";
import { meaningOf } from "./run.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import { isHeard, isTrusted, workerStateOf } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";

/** Items in quarantine that are named. */
const SET_ASIDE_SHOWN = 100;

export function runOf(
  state: CoordinatorState,
  turn: Turn,
  others: { readonly release?: Filled<ReleaseSummary>; readonly fleets?: Filled<FleetSummary>[] } = {},
): Filled<GetRunResponse> {
  const { epoch, run, task, ledger, counters, pulse, news } = state;
  const { phase } = meaningOf(state);
  const { pauseReason } = run.context;
  const { rows } = state.keys;
  const counts = countsOf(ledger.tally, ledger.setAside, rows.hasInside ? rows.inside : undefined);
  const executing = countExecuting(state);
  const finished = pulse.read(turn.nowMs);
  return {
    run: {
      state: pauseReason === null ? RunState[constantOf(phase)] : RunState.PAUSED,
      sealed: phase === "sealed" || phase === "complete",
      ...(pauseReason !== null && { pauseReason }),
      ...counts,
      executing,
      // The workers' word of what executes is older than the ledger's of what they have.
      waitingAtWorkers: Math.max(0, counts.running - executing),
      failureMessages: ledger.failureMessages
        .top(LIMITS.failureMessagesShown)
        .map(({ class: failureClass, item, ...told }) => ({ ...told, failureClass, item: itemDigits(item) })),
      ...(finished.length > 0 && {
        finishedPerSecond: finished.reduce((sum, count) => sum + count, 0) / finished.length,
      }),
      ...(task !== null && { plugin: task.plugin, task: task.summary }),
      ...counters,
      workers: countWorkers(state),
      ...(state.keys.isInUse && { cluster: clusterOf(state), keys: keyCountsOf(state) }),
      ...insideOf(state),
      ...(others.release && { release: others.release }),
      fleets: others.fleets ?? [],
    },
    finishedPerSecond: finished,
    // News of this turn comes after it.
    after: newsMark(epoch, news),
  };
}

/** For the next call that waits for news. */
export function newsMark(epoch: number, { steps, changes }: CoordinatorState["news"]): string {
  return `n${epoch}.${steps}.${changes}`;
}

/** The ring of partitions in numbers. */
function clusterOf({ keys, workers }: CoordinatorState): Filled<Cluster> {
  const { assignment, table } = keys;
  let total = 0;
  for (const row of workers.values()) if (workerStateOf(row).liveness !== "Removed") total++;
  return {
    active: assignment.size,
    total,
    partitions: table.totalPartitions,
    assignmentEpoch: assignment.epoch,
  };
}

function keyCountsOf({
  keys: { counts, laneCounts, table, oldestReadyMs, warmth },
}: CoordinatorState): Filled<KeyCounts> {
  return {
    total: table.size,
    waiting: counts.waiting + counts.delayed,
    running: counts.running,
    parked: counts.parked,
    itemsBehindParked: counts.behindParked + laneCounts.behindParked,
    parkedActions: laneCounts.parked,
    statesSent: warmth.statesSent,
    statesSaved: warmth.statesSaved,
    ...(oldestReadyMs !== undefined && { oldestReadyAgeMs: Math.round(oldestReadyMs) }),
  };
}

/** Items that results have asked for, and timers that will go off. */
function insideOf({
  keys: { rows, timers, nextTimerMs },
}: CoordinatorState): Pick<Filled<Run>, "inside" | "timers"> {
  const { items, pending, running, done, failed, stopped } = rows.inside;
  return {
    ...(items > 0 && { inside: { pending, running, done, failed: failed - stopped, stopped } }),
    ...(nextTimerMs !== undefined && { timers: { armed: timers.armed, nextInMs: Math.round(nextTimerMs) } }),
  };
}

/** The part of the numbers that the ledger alone has; without those from inside, where they are told apart. */
export function countsOf(
  tally: Tally,
  setAside: ReadonlyMap<unknown, SetAsideItem>,
  inside?: InsideCounts,
): Pick<
  Filled<Run>,
  ("pending" | "delayed" | "running" | "done" | "failed") | ("failedByClass" | "setAside" | "setAsideItems")
> {
  const failedByClass = Object.entries(tally.failedByClass)
    .map(([name, count]) => [name, count - (inside?.failedByClass[name as FailureClass] ?? 0)] as const)
    .filter(([, count]) => count > 0);
  return {
    pending: tally.pending - (inside?.pending ?? 0),
    delayed: tally.count("delayed") - (inside?.delayed ?? 0),
    running: tally.count("running") - (inside?.running ?? 0),
    done: tally.count("done") - (inside?.done ?? 0),
    failed: tally.count("failed") - (inside?.failed ?? 0),
    failedByClass: Object.fromEntries(failedByClass),
    setAside: setAside.size,
    setAsideItems: [...setAside.values()]
      .slice(0, SET_ASIDE_SHOWN)
      .map(({ id, key }) => ({ item: itemDigits(id), key })),
  };
}

/** Nothing becomes final any more, unless the run is reopened. */
export function isOver(state: CoordinatorState): boolean {
  const { phase } = meaningOf(state);
  return phase === "complete" || (phase === "cancelled" && state.ledger.tally.count("running") === 0);
}

/** After a turn. */
export function extentOf(state: CoordinatorState): LedgerExtent {
  const { tally, setAside } = state.ledger;
  return {
    setAside,
    phase: meaningOf(state).phase,
    task: state.task,
    releases: state.releases,
    isOver: isOver(state),
    nextSequence: tally.nextSequence,
    priorities: [...tally.cursors.keys()].sort((one, other) => other - one),
    keyedPriorities: [...state.keys.rows.numbers.priorities].sort((one, other) => other - one),
    nextCompletion: tally.nextCompletion,
  };
}

/** By what the workers have said of their load. */
export function countExecuting({ workers }: CoordinatorState): number {
  let executing = 0;
  for (const row of workers.values())
    if (isHeard(row)) executing += Math.min(row.held.size, Math.round(row.load * row.slots));
  return executing;
}

/** Each worker counts once; those that are about to join or have left do not. */
export function countWorkers({ workers, enrolment }: CoordinatorState): Filled<WorkerCounts> {
  const counts = { ready: 0, draining: 0, suspected: 0, failed: 0, cordoned: 0, revoked: 0 };
  for (const row of workers.values()) {
    const kind = kindOf(row, enrolment.revoked.has(row.id));
    if (kind !== undefined) counts[kind]++;
  }
  return counts;
}

function kindOf(row: WorkerRow, isRevoked: boolean): keyof Filled<WorkerCounts> | undefined {
  const { lifecycle, liveness } = workerStateOf(row);
  if (isRevoked && lifecycle !== "Gone") return "revoked";
  if (liveness === "Suspected") return "suspected";
  if (liveness === "Failed") return "failed";
  if (lifecycle === "Draining") return "draining";
  if (lifecycle !== "Ready") return undefined;
  return isTrusted(row) ? "ready" : "cordoned";
}
