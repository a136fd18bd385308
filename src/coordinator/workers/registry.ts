// The workers, moved by their chart. Every change of a row goes through `move` or `register`, which write the row, count
// the segment and turn what the chart asks for into effects; no other code sets a worker's state.
//
// The workers' room: `registry` moves a worker by its chart and `worker-record` stores it, `beat` hears it, `scan-failures` and
// `outage` judge its silence, `trust` its failures, `take-back` takes its work back; `enrolment` says who may join,
// `membership` who is on the ring of partitions, and `worker-numbers` how many there are.
import type { WorkerEvent } from "../../../machines/worker-lifecycle.ts";
import { assert } from "../../base/assert.ts";
import type { WorkerId } from "../../base/ids.ts";
import type { Effect as ChartEffect } from "../../runtime/compile.ts";
import { heartbeatKey, workerKey } from "../../storage/keys.ts";
import type { Beat } from "../turn/input.ts";
import { restartOf } from "./outage.ts";
import type { Loss } from "./outage.ts";
import { endSessionOf, takeBackAll } from "./take-back.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import {
  isDraining,
  isHeard,
  workerStateOf,
  FAILED_ONCE_FACTOR,
  trustChart,
  workerChart,
} from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";
import { moveTrust } from "./trust.ts";
import { storeWorker } from "./worker-record.ts";

/** Whether one more worker can be registered: in a full registry, who has failed or left longest ago is forgotten for it. */
export function hasRoom(state: CoordinatorState, turn: Turn): boolean {
  if (state.workers.size < state.workersMax) return true;
  let oldest: WorkerRow | undefined;
  for (const row of state.workers.values())
    if (!isHeard(row) && row.movedAtMs < (oldest?.movedAtMs ?? Infinity)) oldest = row;
  if (oldest === undefined) return false;
  move(state, turn, oldest, { type: "worker.expired" });
  return state.workers.size < state.workersMax;
}

/** A worker that the registry does not have. It is on disk before it is told so. */
export function register(state: CoordinatorState, turn: Turn, beat: Beat): WorkerRow {
  const row: WorkerRow = {
    id: beat.workerId,
    chart: workerChart.initial({ incarnation: beat.incarnation }),
    trust: trustChart.initial({ incarnation: beat.incarnation }),
    stored: undefined,
    slots: beat.slots,
    plugins: beat.plugins,
    load: beat.load,
    isAtRisk: beat.isAtRisk,
    takesKeys: beat.takesKeys === true,
    loadedVersions: beat.loadedVersions,
    lacks: undefined,
    trouble: beat.trouble,
    drain: undefined,
    ackedAssignment: beat.ackedAssignment,
    holdsNothing: beat.holdsNothing === true,
    refusedAloneAtMs: -Infinity,
    registeredAtWallMs: turn.wallMs,
    sequence: 0,
    lastBeatMs: undefined,
    dueAtMs: turn.nowMs + state.liveness.heartbeatIntervalMs,
    movedAtMs: turn.nowMs,
    session: undefined,
    sessionNumber: 0,
    restart: undefined,
    adopted: undefined,
    held: new Map(),
  };
  state.workers.set(row.id, row);
  announceRegistered(turn, beat);
  turn.requireSync();
  storeWorker(state, turn, row);
  return row;
}

/** A newer process of a registered worker: it begins anew, and the older one is to end. */
export function replaceIncarnation(state: CoordinatorState, turn: Turn, row: WorkerRow, beat: Beat): void {
  // One that has said goodbye is followed, not superseded.
  if (workerStateOf(row).liveness !== "Removed")
    turn.emit("worker_superseded", {
      worker_id: row.id,
      incarnation: row.chart.context.incarnation,
      superseded_by: beat.incarnation,
    });
  if (isHeard(row)) row.restart = restartOf(row, turn.nowMs);
  // Items that are given out from now on are for the new process.
  endSessionOf(row, turn);
  row.slots = beat.slots;
  row.plugins = beat.plugins;
  row.registeredAtWallMs = turn.wallMs;
  row.sequence = 0;
  row.sessionNumber = 0;
  row.refusedAloneAtMs = -Infinity;
  announceRegistered(turn, beat);
  turn.requireSync();
  move(state, turn, row, { type: "worker.started", incarnation: beat.incarnation });
  moveTrust(state, turn, row, { type: "worker.started", incarnation: beat.incarnation });
}

/** Gives the chart an event. Nothing happens when the chart ignores it there. */
export function move(state: CoordinatorState, turn: Turn, row: WorkerRow, event: WorkerEvent): void {
  const asked: ChartEffect[] = [];
  const before = row.chart;
  const after = workerChart.step(before, event, asked);
  if (after === before) return;
  row.chart = after;
  row.movedAtMs = turn.nowMs;
  const [from, to] = [workerChart.nameOf(before), workerChart.nameOf(after)];
  const step = {
    chart: "worker-lifecycle",
    address: `worker/${row.id}`,
    event: event.type,
    from,
    to,
  } as const;
  if (from !== to) turn.stepped(step);
  let forgotten = false;
  for (const { type } of asked) forgotten = carryOut(state, turn, row, type) || forgotten;
  if (!forgotten) storeWorker(state, turn, row);
}

/** Takes what a beat says of the worker beside its state. The registry's row is written when it says something new. */
export function refresh(state: CoordinatorState, turn: Turn, row: WorkerRow, beat: Beat): void {
  if (row.load !== beat.load || row.trouble !== beat.trouble) turn.hasOtherWords = true;
  row.load = beat.load;
  row.isAtRisk = beat.isAtRisk;
  row.takesKeys = beat.takesKeys === true;
  row.trouble = beat.trouble;
  noteDrain(turn, row, beat);
  row.ackedAssignment = beat.ackedAssignment;
  row.holdsNothing = beat.holdsNothing === true;
  row.sequence = beat.sequence;
  row.lastBeatMs = turn.nowMs;
  row.dueAtMs = turn.nowMs + state.liveness.heartbeatIntervalMs;
  row.loadedVersions = beat.loadedVersions;
  row.lacks = undefined;
  const isAsStored = row.slots === beat.slots && samePlugins(row.plugins, beat.plugins);
  row.slots = beat.slots;
  // With the digests of its tasks, which no row has.
  row.plugins = beat.plugins;
  if (!isAsStored) storeWorker(state, turn, row);
}

/** The worker's own chart: nothing here is decided by it. */
function noteDrain(turn: Turn, row: WorkerRow, { drain }: Beat): void {
  const [from, to] = [row.drain?.state ?? "Idle", drain?.state ?? "Idle"];
  row.drain = drain && { state: drain.state, cause: drain.cause, endsAtMs: turn.nowMs + drain.leftMs };
  if (from === to) return;
  turn.stepped({ chart: "spot-drain", address: `drain/${row.id}`, event: "beat.arrived", from, to });
}

/** Carries out an effect of the worker's chart, by name. True when the row is gone after it. */
function carryOut(state: CoordinatorState, turn: Turn, row: WorkerRow, effect: string): boolean {
  const lateness = {
    worker_id: row.id,
    // Wall time: the monotonic clock means nothing to whoever reads the line.
    due_at_ms: Math.floor(turn.wallMs - (turn.nowMs - row.dueAtMs)),
    late_ms: Math.ceil(turn.nowMs - row.dueAtMs),
  };
  const incarnation = row.chart.context.incarnation;
  switch (effect) {
    case "announceSuspected":
      turn.emit("worker_suspected", lateness);
      return false;
    case "announceFailed":
      takeBackAll(state, turn, row, lossOf(turn, row));
      turn.warn("worker failed: no heartbeat", lateness);
      state.ledger.meter.workerFailures++;
      if (rememberFailure(state, row.id)) turn.emit("worker_failed", lateness);
      return false;
    case "announceRecovered":
      turn.emit("worker_recovered", { worker_id: row.id, incarnation });
      return false;
    case "announceLeft":
      turn.emit("worker_deregistered", { worker_id: row.id, incarnation });
      takeBackAll(state, turn, row, "left");
      turn.requireSync();
      return false;
    case "forget":
      // It has nothing by now; should that ever not be so, somebody else is to have it.
      takeBackAll(state, turn, row, "left");
      forget(state, turn, row);
      return true;
    case "announceDraining":
      // The worker that does it says so.
      state.ledger.meter.workerDrains++;
      return false;
    case "announceSuperseded":
      // `replaceIncarnation` says so.
      return false;
    default:
      assert(false, `nothing carries out ${effect}`);
  }
}

/** The loss that a worker's silence is to its items. One that this leader never heard may have left while nobody led. */
function lossOf({ countsLosses }: Turn, row: WorkerRow): Loss {
  if (isDraining(row)) return "preempted";
  return countsLosses && row.lastBeatMs !== undefined ? "lost" : "lostWithMany";
}

/** True when it is the worker's first in this coordinator's lifetime. */
function rememberFailure(state: CoordinatorState, id: WorkerId): boolean {
  const { failedOnce, workers, workersMax } = state;
  if (failedOnce.has(id)) return false;
  failedOnce.add(id);
  if (failedOnce.size > FAILED_ONCE_FACTOR * workersMax) {
    const forgotten = [...failedOnce].find((known) => !workers.has(known));
    assert(forgotten !== undefined, "there are fewer workers than remembered failures");
    failedOnce.delete(forgotten);
  }
  return true;
}

function forget(state: CoordinatorState, turn: Turn, row: WorkerRow): void {
  assert(row.stored !== undefined, "only what is in the store can be forgotten");
  state.workers.delete(row.id);
  state.usage.delete(row.id);
  state.workersCount.removed(row.stored);
  turn.delete(workerKey(row.id));
  turn.delete(heartbeatKey(row.id));
  turn.put(state.workersCount.entry());
  turn.emit("worker_removed", { worker_id: row.id });
}

function announceRegistered(turn: Turn, { workerId, incarnation, slots, plugins }: Beat): void {
  turn.hasStepped = true;
  const known = plugins.map(({ name, version }) => ({ name, version }));
  turn.emit("worker_registered", { worker_id: workerId, incarnation, slots, plugins: known });
}

function samePlugins(left: WorkerRow["plugins"], right: WorkerRow["plugins"]): boolean {
  if (left.length !== right.length) return false;
  return left.every(({ name, version, stateVersion = 0 }, at) => {
    const other = right[at];
    return name === other?.name && version === other.version && stateVersion === (other.stateVersion ?? 0);
  });
}
