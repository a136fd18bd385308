// The run, moved by its chart: sealed, paused, resumed and cancelled by an operator, paused by its own limits, complete when
// every item is final and the store agrees.
//
// The run's room: `run` moves it by its chart and stores it, `run-limits` pauses it, `submission` adds items, `operator` steers
// it, `run-status` counts it.
import { charts } from "../../../machines/index.ts";
import type { RunContext, RunEvent } from "../../../machines/run.ts";
import { assert } from "../../base/assert.ts";
import { compile } from "../../runtime/compile.ts";
import type { CompiledChart, Effect as ChartEffect } from "../../runtime/compile.ts";
import type { RecordType } from "../../storage/codec.ts";
import { encodeRecord } from "../../storage/codec.ts";
import type { Fields } from "../../storage/fields.ts";
import { RECORD_KIND, RUN_KEY } from "../../storage/keys.ts";
import type { Input } from "../turn/input.ts";
import { reachedLimit } from "./run-limits.ts";
import type { CountedFrom, RunPhase, RunTask } from "../turn/run-view.ts";
import type { CoordinatorState } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";

export const runChart: CompiledChart<RunContext, RunEvent, unknown> = compile(charts.run.machine);

export interface RunRecord {
  /** Name of the state in the compiled chart: `Open.Active`. */
  readonly state: string;
  readonly pauseReason: string | null;
  /** Null before the first submission. */
  readonly task: RunTask | null;
  readonly countedFrom: CountedFrom;
}

export const runRecord: RecordType<RunRecord> = {
  kind: RECORD_KIND.run,
  name: "run",
  version: 1,
  migrations: {},
  encode: ({ state, pauseReason, task, countedFrom }) => [
    state,
    pauseReason,
    task === null ? null : [task.digest, task.plugin, task.summary],
    [countedFrom.wallMs, countedFrom.done, countedFrom.failures],
  ],
  decode: (fields) => {
    const counted = fields.tuple(3);
    return {
      state: fields.text(0),
      pauseReason: fields.isNull(1) ? null : fields.text(1),
      task: fields.isNull(2) ? null : taskFrom(fields.tuple(2)),
      countedFrom: { wallMs: counted.number(0), done: counted.integer(1), failures: counted.integer(2) },
    };
  },
};

function taskFrom(fields: Fields): RunTask {
  return { digest: fields.bytes(0), plugin: fields.text(1), summary: fields.text(2) };
}

/** The meaning of a state of the chart to the rest of the coordinator. */
interface Meaning {
  readonly name: string;
  readonly phase: RunPhase;
  readonly isPaused: boolean;
}

const PHASES: Readonly<Record<string, RunPhase>> = {
  Open: "open",
  Sealed: "sealed",
  Complete: "complete",
  Cancelled: "cancelled",
};

const MEANINGS = runChart.states.map((name): Meaning => {
  const [progress = "", activity] = name.split(".");
  const phase = PHASES[progress];
  assert(phase !== undefined, `unknown state ${name} in the run's chart`);
  return { name, phase, isPaused: activity === "Paused" };
});

export function meaningOf({ run: { state } }: Pick<CoordinatorState, "run">): Meaning {
  const meaning = MEANINGS[state];
  assert(meaning !== undefined, `no state ${state} in the run's chart`);
  return meaning;
}

/** Items are given out while the run is open or sealed, and not paused. */
export function givesOutWork(state: CoordinatorState): boolean {
  const { phase, isPaused } = meaningOf(state);
  return !isPaused && (phase === "open" || phase === "sealed");
}

export function isCancelled(state: CoordinatorState): boolean {
  return meaningOf(state).phase === "cancelled";
}

/** The first submission says what the run executes, and its limits are counted from there. */
export function adoptTask(state: CoordinatorState, turn: Turn, task: RunTask): void {
  state.task = task;
  countFromNow(state, turn);
  writeRun(state, turn);
}

export function onSeal(state: CoordinatorState, turn: Turn): void {
  move(state, turn, { type: "run.sealed" });
}

export function onPause(state: CoordinatorState, turn: Turn, reason: string): void {
  move(state, turn, { type: "run.paused", reason });
}

/** Limits are counted anew. */
export function onResume(state: CoordinatorState, turn: Turn): void {
  move(state, turn, { type: "run.resumed" });
}

/** For good. Items that workers have are settled by `cancelHeld`, in this turn and the next ones. */
export function onCancel(state: CoordinatorState, turn: Turn): void {
  move(state, turn, { type: "run.cancelled" });
}

/** A failed item was retried: a run that was complete is not any more, and a comparison that is under way may find other rows. */
export function reopen(state: CoordinatorState, turn: Turn): void {
  if (state.verification !== undefined) state.verification.isStale = true;
  move(state, turn, { type: "run.reopened" });
}

/** Items come in after it was sealed: it takes more until it is sealed again. */
export function extend(state: CoordinatorState, turn: Turn): void {
  if (state.verification !== undefined) state.verification.isStale = true;
  move(state, turn, { type: "run.extended" });
}

/** Pauses the run when it has reached one of its limits and there is something left to spend on. */
export function keepLimits(state: CoordinatorState, turn: Turn): void {
  if (!givesOutWork(state) || (isSealed(state) && nothingIsLeft(state))) return;
  const reason = reachedLimit(state, turn);
  if (reason !== undefined) move(state, turn, { type: "run.paused", reason });
}

/** Asks for a comparison of the counters with the rows as soon as nothing is left to do. */
export function checkCompletion(state: CoordinatorState, turn: Turn): void {
  if (!isSealed(state) || !nothingIsLeft(state) || state.verification !== undefined) return;
  state.verification = { isStale: false };
  turn.effects.push({ kind: "verifyLedger", numbers: state.ledger.tally.numbers });
}

/** An item that was retried meanwhile takes its own turn, and is compared again when it is final. */
export function onVerified(
  state: CoordinatorState,
  turn: Turn,
  { damage }: Extract<Input, { kind: "verified" }>,
): void {
  const isStale = state.verification?.isStale === true;
  state.verification = undefined;
  if (isStale) return;
  if (damage !== undefined) {
    turn.foundDamage(damage);
    // Nothing is compared again: the process ends.
    state.verification = { isStale: false };
    return;
  }
  if (nothingIsLeft(state)) move(state, turn, { type: "run.completed" });
}

function isSealed(state: CoordinatorState): boolean {
  return meaningOf(state).phase === "sealed";
}

function nothingIsLeft({ ledger: { tally } }: CoordinatorState): boolean {
  return tally.pending === 0 && tally.count("running") === 0;
}

function move(state: CoordinatorState, turn: Turn, event: RunEvent): void {
  const effects: ChartEffect[] = [];
  const before = meaningOf(state);
  const after = runChart.step(state.run, event, effects);
  if (after === state.run) return;
  state.run = after;
  const [from, to] = [before.name, meaningOf(state).name];
  turn.effects.push({ kind: "transition", address: "run", event: event.type, from, to });
  for (const { type } of effects) announce(state, turn, type);
  writeRun(state, turn);
  turn.requireSync();
}

function announce(state: CoordinatorState, turn: Turn, effect: string): void {
  const { tally } = state.ledger;
  const [done, failed, pending] = [tally.count("done"), tally.count("failed"), tally.pending];
  switch (effect) {
    case "announceCompleted":
      return turn.emit("run_completed", { done, failed });
    case "announceCancelled":
      return turn.emit("run_cancelled", { done, failed, pending });
    case "announcePaused":
      turn.hasPaused = true;
      return turn.emit("run_paused", { reason: state.run.context.pauseReason ?? "" });
    case "announceResumed":
      countFromNow(state, turn);
      return turn.emit("run_resumed", { pending });
    case "announceReopened":
      countFromNow(state, turn);
      return turn.emit("run_reopened", { pending });
    default:
      assert(false, `nothing carries out ${effect} of the run`);
  }
}

function countFromNow(state: CoordinatorState, turn: Turn): void {
  const { tally } = state.ledger;
  state.countedFrom = { wallMs: turn.steadyMs, done: tally.count("done"), failures: tally.failures };
}

function writeRun(state: CoordinatorState, turn: Turn): void {
  const { task, countedFrom } = state;
  const { pauseReason } = state.run.context;
  const record = { state: meaningOf(state).name, pauseReason, task, countedFrom };
  turn.put({ key: RUN_KEY, value: encodeRecord(runRecord, RUN_KEY, record) });
}
