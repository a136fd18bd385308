// The run, moved by its chart: sealed, paused, resumed and cancelled by an operator, paused by its own limits, complete when
// every item is final and the store agrees.
//
// Limits stop it from spending more: so many failures, so much time, counted from its first submission or from when a person has
// last let it go on. Reaching one pauses the run and says why; nothing is killed.
//
// The run's room: `run` moves it by its chart, stores it and keeps its limits, `submission` adds items, `operator` steers it,
// `run-status` counts it, and `unfit` says why a worker is given nothing of it. `key-operator` and `moved-keys` are what operators ask about keys,
// `releases`, `release-status` and `release-part` about releases, `fleets` is what fleets are told. `publish-snapshot` tells those that follow, `leader-metrics` those that monitor.
import { charts } from "../../../machines/index.ts";
import type { RunContext, RunEvent } from "../../../machines/run.ts";
import { assert, unreachable } from "../../base/assert.ts";
import { compile } from "../../runtime/compile.ts";
import type { CompiledChart, Effect as ChartEffect } from "../../runtime/compile.ts";
import type { RecordType } from "../../storage/codec.ts";
import { encodeRecord } from "../../storage/codec.ts";
import type { Fields } from "../../storage/fields.ts";
import { RECORD_KIND, RUN_KEY } from "../../storage/keys.ts";
import type { Input } from "../turn/input.ts";
import type { CountedFrom, RunPhase, RunTask } from "../turn/run-terms.ts";
import type { CoordinatorState } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";
import { formatDuration } from "../../config/duration.ts";
import { formatFailuresAllowed } from "../../config/failures-allowed.ts";
import type { FailureMessage } from "../ledger/failure-messages.ts";

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
  const keyNumbers = state.keys.isInUse ? state.keys.rows.numbers : undefined;
  turn.effects.push({ kind: "verifyLedger", numbers: state.ledger.tally.numbers, keyNumbers });
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

/** A timer will bring about more; that a final actor is forgotten one day does not keep a run. */
function nothingIsLeft({ ledger: { tally }, keys: { timers } }: CoordinatorState): boolean {
  return tally.pending === 0 && tally.count("running") === 0 && timers.armed === 0;
}

function move(state: CoordinatorState, turn: Turn, event: RunEvent): void {
  const effects: ChartEffect[] = [];
  const before = meaningOf(state);
  const after = runChart.step(state.run, event, effects);
  if (after === state.run) return;
  state.run = after;
  const [from, to] = [before.name, meaningOf(state).name];
  turn.stepped({ chart: "run", address: "run", event: event.type, from, to });
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

/** A share is judged when so many items are final: of the first item that fails, all have failed. */
const SHARE_OF_AT_LEAST = 20;
/** When so many items are final and none is done, somebody looks before more is spent. */
const ALL_FAILED = 50;

/** Why the run is to be paused, in words; undefined while no limit is reached. */
function reachedLimit(state: CoordinatorState, turn: Turn): string | undefined {
  return tooManyFailures(state) ?? nothingButFailures(state) ?? tooMuchTime(state, turn);
}

/** Asked once: a run that was let go on after so many failures goes on. */
function nothingButFailures({
  limits: { maxFails },
  ledger: { tally, failureMessages },
  countedFrom,
}: CoordinatorState): string | undefined {
  if (maxFails?.kind === "unlimited" || tally.failedAtFirst < ALL_FAILED) return undefined;
  if (countedFrom.failures >= ALL_FAILED) return undefined;
  return `the first ${ALL_FAILED} items to end have all failed${commonest(failureMessages.top(1), tally.count("failed"))}`;
}

function commonest([most]: readonly FailureMessage[], failed: number): string {
  if (most === undefined) return "";
  const share = most.items < failed ? `${most.items} of ${failed}` : "each";
  return `, ${share} with ${most.class}: ${most.message}`;
}

function tooManyFailures({
  limits: { maxFails },
  ledger: { tally },
  countedFrom,
}: CoordinatorState): string | undefined {
  if (maxFails === undefined) return undefined;
  const failed = tally.failures - countedFrom.failures;
  const setting = `run.max_fails is ${formatFailuresAllowed(maxFails)}`;
  switch (maxFails.kind) {
    case "count":
      return failed >= maxFails.count ? `${items(failed)} failed, and ${setting}` : undefined;
    case "share": {
      const final = failed + tally.count("done") - countedFrom.done;
      const isReached = final >= SHARE_OF_AT_LEAST && failed * 100 >= maxFails.percent * final;
      return isReached ? `${failed} of ${items(final)} failed, and ${setting}` : undefined;
    }
    case "unlimited":
      return undefined;
    default:
      return unreachable(maxFails, "limit of failures");
  }
}

/** A restart does not begin anew; the time before the first submission does not count. */
function tooMuchTime(
  { limits: { timeLimitMs }, task, countedFrom }: CoordinatorState,
  turn: Turn,
): string | undefined {
  if (timeLimitMs === undefined || task === null) return undefined;
  if (turn.steadyMs - countedFrom.wallMs < timeLimitMs) return undefined;
  const limit = formatDuration(timeLimitMs);
  return `it began or was resumed ${limit} ago, and run.time_limit is ${limit}`;
}

function items(count: number): string {
  return count === 1 ? "1 item" : `${count} items`;
}
