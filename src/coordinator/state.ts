// Everything a leading coordinator knows, rebuilt from the store at each start. Only the reactor changes it, in turns;
// `sanityCheck` says what is true between turns.
import { charts } from "../../machines/index.ts";
import type { RunContext } from "../../machines/run.ts";
import type { WorkerContext, WorkerEvent } from "../../machines/worker-lifecycle.ts";
import { assert } from "../base/assert.ts";
import type { Epoch, WorkerId } from "../base/ids.ts";
import { compile } from "../runtime/compile.ts";
import type { CompiledChart, Row } from "../runtime/compile.ts";
import type { SegmentCount } from "../storage/segment-count.ts";
import type { Ledger, RunningItem } from "./ledger/item.ts";
import type { Session } from "./session-frame.ts";
import { LIFECYCLES, LIVENESSES } from "./worker-view.ts";
import type { Lifecycle, Liveness, Plugin } from "./worker-view.ts";

/** The thresholds of failure detection, from the configuration. */
export interface LivenessSettings {
  readonly heartbeatIntervalMs: number;
  readonly clockSkewBudgetMs: number;
  readonly coordinatorFailureTimeoutMs: number;
  readonly removeAfterMs: number;
}

/** A registered worker. What the chart says is in `chart`; the rest was told by the worker or measured here. */
export interface WorkerRow {
  readonly id: WorkerId;
  chart: Row<WorkerContext>;
  /** The registry's bytes as last written: a row is only ever replaced knowing what stood there. */
  stored: Uint8Array | undefined;
  slots: number;
  plugins: readonly Plugin[];
  load: number;
  registeredAtWallMs: number;
  /** Of the last accepted beat of this incarnation; 0 before the first. */
  sequence: number;
  /** Monotonic; undefined while nothing was heard since this coordinator leads. */
  lastBeatMs: number | undefined;
  /** When the next beat is due, monotonic. */
  dueAtMs: number;
  /** When the chart last moved, or this coordinator began to lead; monotonic. */
  movedAtMs: number;
  session: Session | undefined;
  /** Of the last session of this incarnation; 0 before the first. */
  sessionNumber: number;
  /** What the ledger says that it has; by `itemKeyOf`. */
  readonly held: Map<string, RunningItem>;
}

export interface CoordinatorState {
  readonly epoch: Epoch;
  readonly ledger: Ledger;
  run: Row<RunContext>;
  /** A comparison of the ledger's numbers with its rows is under way. */
  isVerifying: boolean;
  readonly counters: {
    /** Reports of attempts that are not current. */
    staleReports: number;
    /** Results that contradict the recorded one. */
    conflicts: number;
  };
  readonly liveness: LivenessSettings;
  readonly workersMax: number;
  readonly workers: Map<WorkerId, WorkerRow>;
  readonly workersCount: SegmentCount;
  /** Workers of which this coordinator has said `worker_failed`, in that order: it says so once, forgotten ones included. */
  readonly failedOnce: Set<WorkerId>;
  /** When the last scan was, monotonic; scans are measured against it to forgive this process its own lateness. */
  lastScanMs: number;
}

/** Failures are remembered for so many times the maximum of workers: a fleet of machines that come and go is not endless. */
export const FAILED_ONCE_FACTOR = 4;

export const workerChart: CompiledChart<WorkerContext, WorkerEvent, WorkerContext> = compile(
  charts["worker-lifecycle"].machine,
);

/** The two halves of a worker's state: `{ lifecycle: "Ready", liveness: "Alive" }`. */
export function workerStateOf({ chart }: WorkerRow): { lifecycle: Lifecycle; liveness: Liveness } {
  const halves = STATE_HALVES[chart.state];
  assert(halves !== undefined, `no state ${chart.state} in the worker's chart`);
  return halves;
}

const STATE_HALVES = workerChart.states.map((name) => {
  const [first, second] = name.split("+");
  const lifecycle = LIFECYCLES.find((word) => word === first);
  const liveness = LIVENESSES.find((word) => word === second);
  assert(lifecycle !== undefined && liveness !== undefined, `unknown state ${name} in the worker's chart`);
  return { lifecycle, liveness };
});

/** Whether work may be given to it now (C6). */
export function takesWork(row: WorkerRow): boolean {
  if (row.session === undefined || row.session.credit === 0) return false;
  const { lifecycle, liveness } = workerStateOf(row);
  return lifecycle === "Ready" && liveness === "Alive";
}

/**
 * What holds between any two turns, whatever came before. Run after every step of every test.
 * @internal
 */
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
    const { lifecycle, liveness } = workerStateOf(row);
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
