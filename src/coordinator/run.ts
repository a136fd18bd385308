// The run, moved by its chart: sealed by an operator, complete when every item is final and the store agrees.
import { charts } from "../../machines/index.ts";
import type { RunContext, RunEvent } from "../../machines/run.ts";
import { assert } from "../base/assert.ts";
import { compile } from "../runtime/compile.ts";
import type { CompiledChart, Effect as ChartEffect } from "../runtime/compile.ts";
import { encodeRecord } from "../storage/codec.ts";
import { RUN_KEY } from "../storage/keys.ts";
import type { Input } from "./input.ts";
import { runRecord } from "./run-view.ts";
import type { RunView } from "./run-view.ts";
import type { CoordinatorState } from "./state.ts";
import type { Turn } from "./turn.ts";

export const runChart: CompiledChart<RunContext, RunEvent, unknown> = compile(charts.run.machine);

function moveRun(state: CoordinatorState, turn: Turn, event: RunEvent): void {
  const effects: ChartEffect[] = [];
  const before = state.run;
  const after = runChart.step(before, event, effects);
  if (after === before) return;
  state.run = after;
  const [from, to] = [nameOf(before.state), nameOf(after.state)];
  turn.effects.push({ kind: "transition", address: "run", event: event.type, from, to });
  const { pauseReason } = after.context;
  turn.put({ key: RUN_KEY, value: encodeRecord(runRecord, RUN_KEY, { state: to, pauseReason }) });
  turn.requireSync();
  for (const { type } of effects)
    if (type === "announceCompleted") {
      const { done, failed } = viewOf(state);
      turn.emit("run_completed", { done, failed });
    }
}

export function onSeal(
  state: CoordinatorState,
  turn: Turn,
  { answer }: Extract<Input, { kind: "seal" }>,
): void {
  moveRun(state, turn, { type: "run.sealed" });
  turn.effects.push({ kind: "answerRun", to: answer, answer: viewOf(state) });
}

export function onGetRun(
  state: CoordinatorState,
  turn: Turn,
  { answer }: Extract<Input, { kind: "getRun" }>,
): void {
  turn.effects.push({ kind: "answerRun", to: answer, answer: viewOf(state) });
}

/** Until it is sealed. */
export function takesItems(state: CoordinatorState): boolean {
  return nameOf(state.run.state).startsWith("Open");
}

/** Items are given out while the run is open or sealed, and not paused. */
export function givesOutWork(state: CoordinatorState): boolean {
  const name = nameOf(state.run.state);
  return name === "Open+Active" || name === "Sealed+Active";
}

/** Asks for a comparison of the counters with the rows as soon as nothing is left to do. */
export function checkCompletion(state: CoordinatorState, turn: Turn): void {
  const { tally } = state.ledger;
  const isOver =
    nameOf(state.run.state).startsWith("Sealed") && tally.pending === 0 && tally.count("running") === 0;
  if (!isOver || state.isVerifying) return;
  state.isVerifying = true;
  turn.effects.push({ kind: "verifyLedger", numbers: tally.numbers });
}

/** The rows are what was counted. What was submitted meanwhile takes its own turn. */
export function onVerified(state: CoordinatorState, turn: Turn): void {
  state.isVerifying = false;
  const { tally } = state.ledger;
  if (tally.pending === 0 && tally.count("running") === 0) moveRun(state, turn, { type: "run.completed" });
}

function viewOf({ run, ledger, counters }: CoordinatorState): RunView {
  const { tally } = ledger;
  return {
    state: nameOf(run.state),
    pending: tally.pending,
    running: tally.count("running"),
    done: tally.count("done"),
    failed: tally.count("failed"),
    staleReports: counters.staleReports,
  };
}

function nameOf(state: number): string {
  const name = runChart.states[state];
  assert(name !== undefined, `no state ${state} in the run's chart`);
  return name;
}
