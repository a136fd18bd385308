// Everything a leading coordinator knows, rebuilt from the store at each start. Only the reactor changes it, in turns;
// `sanityCheck` in test/support says what is true between turns.
import { charts } from "../../../machines/index.ts";
import type { RunContext } from "../../../machines/run.ts";
import { runsAlone } from "../../../machines/work-item.ts";
import type { WorkerContext, WorkerEvent, WorkerInput } from "../../../machines/worker-lifecycle.ts";
import type { TrustContext, TrustEvent, TrustInput } from "../../../machines/worker-trust.ts";
import { assert } from "../../base/assert.ts";
import type { Epoch, WorkerId } from "../../base/ids.ts";
import { LIMITS } from "../../config/limits.ts";
import { compile } from "../../runtime/compile.ts";
import type { CompiledChart, Row } from "../../runtime/compile.ts";
import type { SegmentCount } from "../../storage/segment-count.ts";
import { LIFECYCLES, LIVENESSES } from "./input.ts";
import type { BeatDrain, BundleTimes, Lifecycle, Liveness, Plugin } from "./input.ts";
import type { Usage } from "../lead/coordinator-snapshot.ts";
import type { Keys } from "../keys/keys.ts";
import type { Fleets } from "../fleet/fleets.ts";
import type { Releases } from "../release/releases.ts";
import type { Ledger, RunningItem } from "../ledger/ledger.ts";
import type { CountedFrom, News, Pulse, RunLimits, RunTask } from "./run-terms.ts";
import type { Session } from "./session-frame.ts";

/** The thresholds of failure detection, from the configuration. */
export interface LivenessSettings {
  readonly heartbeatIntervalMs: number;
  readonly clockSkewBudgetMs: number;
  readonly coordinatorFailureTimeoutMs: number;
  readonly removeAfterMs: number;
}

/** A new process of a worker was heard of without a goodbye of the old one; what that means is in outage.ts. */
export interface Restart {
  /** Monotonic. */
  readonly atMs: number;
  /** Whether this coordinator has heard the old process: one that it never heard may have ended together with its predecessor. */
  readonly wasHeard: boolean;
  /** It is not the first within a short time: fleets are not restarted again and again, and what kills workers is. */
  readonly isRepeated: boolean;
  /** The old process was leaving, so what it had is nobody's fault. */
  readonly wasDraining: boolean;
}

export interface WorkerDrain extends Pick<BeatDrain, "state" | "cause"> {
  /** Monotonic; what executes then is abandoned. */
  readonly endsAtMs: number;
}

/** A registered worker. Its chart's state is in `chart`; the rest was told by the worker or measured here. */
export interface WorkerRow {
  readonly id: WorkerId;
  chart: Row<WorkerContext>;
  /** The registry's bytes as last written: a row is only ever replaced knowing what stood there. */
  stored: Uint8Array | undefined;
  slots: number;
  plugins: readonly Plugin[];
  /** How many versions of one plugin it has open at once, as its last beat said; undefined while it has none in two versions. */
  loadedVersions: number | undefined;
  /** A version that it has handed an item back for, since its last beat: it does not have it. */
  lacks: string | undefined;
  load: number;
  registeredAtWallMs: number;
  /** Sequence of the last accepted beat of this incarnation; 0 before the first. */
  sequence: number;
  /** Monotonic; undefined while nothing was heard since this coordinator leads. */
  lastBeatMs: number | undefined;
  /** When the next beat is due, monotonic. */
  dueAtMs: number;
  /** When the chart last moved, or this coordinator began to lead; monotonic. */
  movedAtMs: number;
  session: Session | undefined;
  /** Number of the last session of this incarnation; 0 before the first. */
  sessionNumber: number;
  /** Whether it is given work like the others. */
  trust: Row<TrustContext>;
  /** It says that its machine may be taken away before long. */
  isAtRisk: boolean;
  /** It hands on the states of keys, as its last beat said: others are given no item of a key. */
  takesKeys: boolean;
  /**
   * The reason why it does not execute, as it said last; empty when there is none, or nothing was heard since this coordinator
   * leads.
   */
  trouble: string;
  /** How far its drain is, as its last beat said; undefined unless it drains. */
  drain: WorkerDrain | undefined;
  /** The last assignment that has arrived there, as its last beat said. */
  ackedAssignment: number | undefined;
  /** It has no item, as its last beat said. */
  holdsNothing: boolean;
  /** When it last handed back an item that runs alone: something in it may not end. Monotonic. */
  refusedAloneAtMs: number;
  /** The last one; undefined while this coordinator has heard of none. */
  restart: Restart | undefined;
  /**
   * Items that it says an earlier leader gave it, and that were adopted, since this coordinator leads. Undefined for one that
   * registered under this leadership: registrations are synced, so no earlier one can have given it anything.
   */
  adopted: number | undefined;
  /** The items that it has by the ledger; by `itemKeyOf`. */
  readonly held: Map<string, RunningItem>;
}

/** A bundle that somebody has joined with. */
export interface KnownBundle {
  /** Workers that it has let in, for good: one that has left counts. */
  readonly workers: Set<WorkerId>;
  times: BundleTimes;
  /** Warnings that this coordinator has given: once each. */
  readonly warned: { end: boolean; quota: boolean };
}

export interface EnrolmentState {
  /** Workers that one bundle may let in. */
  readonly quota: number;
  readonly bundles: Map<string, KnownBundle>;
  /** Id of the bearer → when, wall time. */
  readonly revoked: Map<string, number>;
}

/** The last success of all workers, and the last one of any other worker than that one's. */
export interface Successes {
  latest: Success;
  ofAnother: Success;
}

interface Success {
  readonly by: string;
  /** Monotonic. */
  readonly atMs: number;
}

/** Nobody has succeeded since this coordinator leads. */
export const NO_SUCCESS: Success = { by: "", atMs: -Infinity };

export interface CoordinatorState {
  readonly epoch: Epoch;
  readonly ledger: Ledger;
  /** The room behind the door `ledger.keys`. */
  readonly keys: Keys;
  /** The room behind the door `ledger.trials`. */
  readonly releases: Releases;
  /** Undefined where no fleet is configured, and none has anything left. */
  fleets: Fleets | undefined;
  run: Row<RunContext>;
  /** The task that it executes; null before the first submission. */
  task: RunTask | null;
  readonly limits: RunLimits;
  countedFrom: CountedFrom;
  /** From the monotonic clock to the steady one; undefined before the first turn. */
  steadyOffsetMs: number | undefined;
  readonly pulse: Pulse;
  /** Counted since this coordinator leads, for those who wait for news. */
  readonly news: News;
  /** A comparison of the ledger's numbers with its rows is under way; stale when these rows have changed since. */
  verification: { isStale: boolean } | undefined;
  readonly counters: {
    /** Reports of attempts that are not current. */
    staleReports: number;
    /** Results that contradict the recorded one. */
    conflicts: number;
    /** Attempts that had begun and ended because their worker was lost. */
    reassigned: number;
  };
  readonly successes: Successes;
  /** By worker, as far as it was published: a leader of a store that is not shared begins anew. */
  readonly usage: Map<WorkerId, Usage>;
  /** The number of the last snapshot that was published; 0 when none was. */
  published: number;
  readonly liveness: LivenessSettings;
  /** Whether an idle worker is given what waits with another. */
  readonly steals: boolean;
  readonly enrolment: EnrolmentState;
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

export const workerChart: CompiledChart<WorkerContext, WorkerEvent, WorkerInput> = compile(
  charts["worker-lifecycle"].machine,
);

export const trustChart: CompiledChart<TrustContext, TrustEvent, TrustInput> = compile(
  charts["worker-trust"].machine,
);
const TRUSTED = trustChart.indexOf("Trusted");

export function isTrusted({ trust }: WorkerRow): boolean {
  return trust.state === TRUSTED;
}

/** Workers that are given work: the trusted ones, and all of them where none is trusted. */
export function trustedOf(rows: readonly WorkerRow[]): readonly WorkerRow[] {
  const trusted = rows.filter(isTrusted);
  return trusted.length > 0 ? trusted : rows;
}

/** The two halves of a worker's state: `{ lifecycle: "Ready", liveness: "Alive" }`. */
export function workerStateOf({ chart }: { readonly chart: { readonly state: number } }): {
  lifecycle: Lifecycle;
  liveness: Liveness;
} {
  const halves = STATE_HALVES[chart.state];
  assert(halves !== undefined, `no state ${chart.state} in the worker's chart`);
  return halves;
}

/** Whether the coordinator counts on hearing of it again: only such a worker has items, or a session. */
export function isHeard(row: WorkerRow): boolean {
  const { liveness } = workerStateOf(row);
  return liveness === "Alive" || liveness === "Suspected";
}

const STATE_HALVES = workerChart.states.map((name) => {
  const [first, second] = name.split("+");
  const lifecycle = LIFECYCLES.find((word) => word === first);
  const liveness = LIVENESSES.find((word) => word === second);
  assert(lifecycle !== undefined && liveness !== undefined, `unknown state ${name} in the worker's chart`);
  return { lifecycle, liveness };
});

/** It has said that it leaves: its end is no loss, whether its goodbye is heard or not. */
export function isDraining(row: WorkerRow): boolean {
  return workerStateOf(row).lifecycle === "Draining";
}

/** Whether it is one of those that the run can count on: there, and able to execute what the run executes. */
export function isOfUse(
  state: Pick<CoordinatorState, "task" | "enrolment" | "releases">,
  row: WorkerRow,
): boolean {
  const { lifecycle, liveness } = workerStateOf(row);
  return (
    lifecycle === "Ready" &&
    liveness === "Alive" &&
    !row.chart.context.isToDrain &&
    !state.enrolment.revoked.has(row.id) &&
    serves(state, row)
  );
}

/** How many more items it may have, by this coordinator's limits and not by its own word (C8). */
export function roomAt({ slots, held }: Pick<WorkerRow, "slots" | "held">): number {
  return Math.min(slots, LIMITS.slotsPerWorker) + LIMITS.backlogPerWorker - held.size;
}

/** Whether it asks for work that may be given to it now (C6). */
export function takesWork(
  state: Pick<CoordinatorState, "task" | "enrolment" | "releases">,
  row: WorkerRow,
): boolean {
  const { session } = row;
  const hasRoom = session?.isReconciled === true && session.credit > 0 && roomAt(row) > 0;
  return hasRoom && hasSaidWhatItRuns(state, row) && isOfUse(state, row) && !holdsAlone(row);
}

/**
 * Beats alone say which tasks its versions run, so a leader that has heard none gives it nothing: a worker of another task than the run's
 * would execute it. A run that names no plugin takes whatever a worker has.
 */
function hasSaidWhatItRuns({ task }: Pick<CoordinatorState, "task">, { lastBeatMs }: WorkerRow): boolean {
  return lastBeatMs !== undefined || task === null || task.plugin === "";
}

/** A worker is left alone for so long after its answer to a recall: no ping-pong. */
const LEFT_ALONE_MS = 500;

/** It hands back backlog, or did a moment ago: nothing is recalled from it, and its backlog gets nothing back. */
export function isHandingBack({ session }: Pick<WorkerRow, "session">, nowMs: number): boolean {
  return session !== undefined && (session.isRecalled || nowMs - session.recalledAtMs < LEFT_ALONE_MS);
}

/** Nothing is given to a worker beside an item that runs alone. */
export function holdsAlone(row: WorkerRow): boolean {
  if (row.held.size !== 1) return false;
  const [only] = row.held.values();
  return only !== undefined && isItsOwn(row, only) && runsAlone(only.row.context);
}

/** Whether the worker's process of now was given it. Items of an older one do not execute any more. */
export function isItsOwn({ chart }: WorkerRow, { row }: RunningItem): boolean {
  return row.context.incarnation === chart.context.incarnation;
}

/** The latest version of states of keys that the worker goes on from with that plugin. */
export function stateVersionOf({ plugins }: WorkerRow, plugin: string): number {
  const found = plugin === "" ? plugins[0] : plugins.find(({ name }) => name === plugin);
  return found?.stateVersion ?? 0;
}

/**
 * Whether it can execute what the run executes now: the run's task, in the version that its releases have come to. A run that names no
 * plugin takes whatever a worker has.
 */
export function serves(
  { task, releases }: Pick<CoordinatorState, "task" | "releases">,
  row: WorkerRow,
): boolean {
  return task === null || task.plugin === "" || releases.serves(row, task.plugin, task.digest);
}
