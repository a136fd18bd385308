// One turn: inputs in order of arrival, decisions out. Plain synchronous code: no await, no clock, no I/O; the same code
// runs in a simulation.
import { unreachable } from "../base/assert.ts";
import { onBeat } from "./workers/beat.ts";
import { dispatch } from "./schedule/dispatch.ts";
import { onIdentity, warnOfEnds } from "./workers/enrolment.ts";
import type { Input } from "./turn/input.ts";
import { onClaimsExamined } from "./session/adoption.ts";
import { completionsEntry } from "./ledger/completions.ts";
import { dueOfDelayed } from "./ledger/place.ts";
import { DELAY_MAX_MS, wakeDelayed } from "./items/rows.ts";
import { applyLoad, wantedLoads } from "./ledger/window-loads.ts";
import { onExamined } from "./session/late-result.ts";
import { onOperator } from "./run/operator.ts";
import { recallBacklogs } from "./schedule/recall.ts";
import { checkCompletion, givesOutWork, keepLimits, onVerified } from "./run/run.ts";
import { onScan } from "./workers/scan-failures.ts";
import { onSession } from "./session/session.ts";
import type { CoordinatorState } from "./turn/state.ts";
import { steal } from "./schedule/steal.ts";
import { onSubmit } from "./run/submission.ts";
import { Turn } from "./turn/turn.ts";

export interface TurnTime {
  readonly nowMs: number;
  readonly wallMs: number;
}

/** Changes `state` and returns what has to be committed and then done. */
export function react(state: CoordinatorState, inputs: readonly Input[], { nowMs, wallMs }: TurnTime): Turn {
  const turn = new Turn(nowMs, wallMs, steadyMsOf(state, nowMs, wallMs));
  for (const input of inputs) {
    switch (input.kind) {
      case "beat":
        onBeat(state, turn, input);
        break;
      case "hello":
      case "credit":
      case "results":
      case "released":
      case "checkpoints":
      case "withdrawCredit":
      case "report":
      case "sessionEnded":
        onSession(state, turn, input);
        break;
      case "submit":
        onSubmit(state, turn, input);
        break;
      case "seal":
      case "pause":
      case "resume":
      case "cancel":
      case "retry":
      case "getRun":
      case "getExtent":
      case "seeItem":
      case "listWorkers":
      case "getWorker":
      case "drainWorker":
        onOperator(state, turn, input);
        break;
      case "enrol":
      case "revoke":
        onIdentity(state, turn, input);
        break;
      case "loaded":
        applyLoad(state.ledger, input.loaded);
        break;
      case "claimsExamined":
        onClaimsExamined(state, turn, input);
        break;
      case "examined":
        onExamined(state, turn, input);
        break;
      case "verified":
        onVerified(state, turn, input);
        break;
      case "scrubbed":
        onScrubbed(state, turn, input);
        break;
      case "scan":
        tick(state, turn);
        break;
      default:
        unreachable(input, "input");
    }
  }
  keepLimits(state, turn);
  if (turn.hasPaused) recallBacklogs(state, turn);
  giveOut(state, turn);
  checkCompletion(state, turn);
  for (const load of wantedLoads(state.ledger)) turn.effects.push({ kind: "loadWindow", load });
  writeLedger(state, turn);
  return turn;
}

function giveOut(state: CoordinatorState, turn: Turn): void {
  if (!givesOutWork(state)) return;
  const reserved = dispatch(state, turn);
  if (state.steals) steal(state, turn, reserved);
}

function tick(state: CoordinatorState, turn: Turn): void {
  onScan(state, turn);
  wakeDelayed(state.ledger, turn);
  followDelays(state, turn);
  goOnScrubbing(state, turn);
  warnOfEnds(state, turn);
}

/** A page of the ledger for each scan for failures: less than a percent of a core, whatever there is to read. */
function goOnScrubbing({ ledger }: CoordinatorState, turn: Turn): void {
  const request = ledger.scrub.wants();
  if (request !== undefined) turn.effects.push({ kind: "scrubLedger", request });
}

function onScrubbed(
  { ledger }: CoordinatorState,
  turn: Turn,
  { page }: Extract<Input, { kind: "scrubbed" }>,
): void {
  const damage = ledger.scrub.take(page, ledger.tally);
  if (damage !== undefined) turn.foundDamage(damage);
}

/**
 * The time by which waits and limits count: the leader's monotonic clock, read as wall time, because what is stored has to mean
 * something to the next leader. A wall clock that is set in the meantime moves none of them. The first turn of a leadership takes
 * the wall clock's. Never runs backwards within a leadership, and never behind what earlier leaders have written by more than they
 * can have meant.
 */
function steadyMsOf(state: CoordinatorState, nowMs: number, wallMs: number): number {
  // A clock that was put back since does not make the run any younger than at its beginning.
  state.steadyOffsetMs ??= Math.max(wallMs, state.countedFrom.wallMs) - nowMs;
  return nowMs + state.steadyOffsetMs;
}

/** An item that waits for longer than any item ever waits was delayed by a clock that was ahead: this one follows it. */
function followDelays(state: CoordinatorState, turn: Turn): void {
  const next = state.ledger.delayed.peek();
  if (next === undefined) return;
  const aheadMs = dueOfDelayed(next.key) - turn.steadyMs - DELAY_MAX_MS;
  if (aheadMs > 0) state.steadyOffsetMs = turn.steadyMs - turn.nowMs + aheadMs;
}

/** The ledger's numbers and what became final, once per turn and in its batch. */
function writeLedger({ ledger: { tally, epochStarts }, pulse }: CoordinatorState, turn: Turn): void {
  pulse.count(turn.nowMs, turn.completed.length);
  if (turn.completed.length > 0) turn.put(completionsEntry(tally.takeCompletion(), turn.completed));
  if (!turn.ledgerTouched) return;
  turn.put(tally.entry());
  const starts = epochStarts.takeUnwritten();
  if (starts !== undefined) turn.put(starts);
}
