// One turn: inputs in order of arrival, decisions out. Plain synchronous code: no await, no clock, no I/O; the same code
// runs in a simulation.
import { unreachable } from "../base/assert.ts";
import { onBeat } from "./workers/beat.ts";
import { dispatch } from "./schedule/dispatch.ts";
import { lookAtFleets, onFleet } from "./run/fleets.ts";
import { onIdentity, warnOfEnds } from "./workers/enrolment.ts";
import type { Input } from "./turn/input.ts";
import { onClaimsExamined } from "./session/adoption.ts";
import { completionsEntry } from "./ledger/completions.ts";
import { keyDisagreement, isKeySegment } from "./keys/key-rows.ts";
import { disagreement } from "./ledger/tally.ts";
import type { SegmentName } from "./ledger/tally.ts";
import { dueOfDelayed } from "./ledger/place.ts";
import { DELAY_MAX_MS, wakeDelayed } from "./items/rows.ts";
import { applyLoad, wantedLoads } from "./ledger/window-loads.ts";
import { onExamined } from "./session/delivery.ts";
import { onOperator } from "./run/operator.ts";
import { recallBacklogs, steal } from "./schedule/recall.ts";
import { publishSnapshot } from "./run/publish-snapshot.ts";
import { checkCompletion, givesOutWork, keepLimits, meaningOf, onVerified } from "./run/run.ts";
import { carryOut } from "./items/carry-out.ts";
import { updateMembership } from "./workers/membership.ts";
import { onScan } from "./workers/scan-failures.ts";
import { extentOf, isOver } from "./run/run-status.ts";
import { askForCheckpoints, onStatesRead } from "./session/partitions.ts";
import { onSession } from "./session/session.ts";
import type { CoordinatorState } from "./turn/state.ts";
import { judgeReleases, lookAtReleases, onRelease } from "./run/releases.ts";
import { onSubmit } from "./run/submission.ts";
import { Turn } from "./turn/turn.ts";

export interface TurnTime {
  readonly nowMs: number;
  readonly wallMs: number;
}

/** Changes `state` and returns what has to be committed and then done. */
export function react(state: CoordinatorState, inputs: readonly Input[], { nowMs, wallMs }: TurnTime): Turn {
  const turn = new Turn(nowMs, wallMs, steadyMsOf(state, nowMs, wallMs));
  const wasOver = isOver(state);
  state.keys.turnBegins(nowMs, turn.steadyMs);
  const isCancelled = meaningOf(state).phase === "cancelled";
  if (state.keys.fire(isCancelled) && state.verification !== undefined) state.verification.isStale = true;
  carryOut(state, turn);
  for (const input of inputs) {
    take(state, turn, input);
    carryOut(state, turn);
  }
  keepLimits(state, turn);
  if (turn.hasPaused) recallBacklogs(state, turn);
  updateMembership(state, turn);
  judgeReleases(state, turn);
  giveOut(state, turn);
  state.releases.turnEnds(turn);
  // Before the numbers of a run that is complete are compared with its rows.
  const load = state.keys.turnEnds(turn, state.ledger.scrub);
  if (load !== undefined) turn.effects.push({ kind: "loadKeys", load });
  const moved = state.keys.rows.awaited.take();
  if (moved !== undefined) turn.effects.push({ kind: "keysMoved", news: moved });
  checkCompletion(state, turn);
  for (const load of wantedLoads(state.ledger)) turn.effects.push({ kind: "loadWindow", load });
  writeLedger(state, turn);
  tellNews(state, turn, wasOver);
  return turn;
}

function take(state: CoordinatorState, turn: Turn, input: Input): void {
  switch (input.kind) {
    case "beat":
      return onBeat(state, turn, input);
    case "hello":
    case "credit":
    case "results":
    case "handedBack":
    case "checkpoints":
    case "partitionLoaded":
    case "partitionsWritten":
    case "withdrawCredit":
    case "report":
    case "sessionEnded":
      return onSession(state, turn, input);
    case "submit":
      return onSubmit(state, turn, input);
    case "seal":
    case "pause":
    case "resume":
    case "cancel":
    case "retry":
    case "getRun":
    case "getExtent":
    case "seeItem":
    case "sampleItems":
    case "listWorkers":
    case "getWorker":
    case "drainWorker":
    case "steerKeys":
    case "getKey":
    case "listKeys":
    case "getAssignment":
    case "listPartitions":
    case "tellKeys":
    case "takeKeys":
      return onOperator(state, turn, input);
    case "createRelease":
    case "steerRelease":
    case "getRelease":
    case "leadershipConfirmed":
    case "releaseCountsRead":
      return onRelease(state, turn, input);
    case "fleetHeard":
    case "fleetsChanged":
    case "listFleets":
    case "steerFleet":
      return onFleet(state, turn, input);
    case "enrol":
    case "revoke":
      return onIdentity(state, turn, input);
    case "loaded":
    case "keysLoaded":
    case "statesRead":
    case "claimsExamined":
    case "examined":
    case "verified":
    case "scrubbed":
      return takeRead(state, turn, input);
    case "wake":
      return;
    case "scan":
      return tick(state, turn);
    case "publish":
      turn.publishes = true;
      return;
    default:
      unreachable(input, "input");
  }
}

type ReadKind =
  | "loaded"
  | "keysLoaded"
  | "statesRead"
  | "claimsExamined"
  | "examined"
  | "verified"
  | "scrubbed";

/** A reading that an earlier turn has asked for. */
function takeRead(
  state: CoordinatorState,
  turn: Turn,
  input: Extract<Input, { readonly kind: ReadKind }>,
): void {
  switch (input.kind) {
    case "loaded":
      applyLoad(state.ledger, input.loaded);
      if (input.loaded.window === "delayed") state.keys.wakeLeft();
      return;
    case "keysLoaded":
      return state.keys.loaded(input.loaded);
    case "statesRead":
      return onStatesRead(state, turn, input);
    case "claimsExamined":
      return onClaimsExamined(state, turn, input);
    case "examined":
      return onExamined(state, turn, input);
    case "verified":
      return onVerified(state, turn, input);
    case "scrubbed":
      return onScrubbed(state, turn, input);
    default:
      return unreachable(input, "reading");
  }
}

function giveOut(state: CoordinatorState, turn: Turn): void {
  if (!givesOutWork(state)) return;
  const reserved = dispatch(state, turn);
  if (state.steals) steal(state, turn, reserved);
}

function tick(state: CoordinatorState, turn: Turn): void {
  onScan(state, turn);
  wakeDelayed(state.ledger, turn);
  state.keys.wakeLeft();
  followDelays(state, turn);
  lookAtReleases(state, turn);
  lookAtFleets(state, turn);
  goOnScrubbing(state, turn);
  askForCheckpoints(state, turn);
  warnOfEnds(state, turn);
}

/** A page of the ledger for a scan for failures: a few percent of a core, and not while items are in need of it. */
function goOnScrubbing({ ledger: { scrub, tally } }: CoordinatorState, turn: Turn): void {
  const request = scrub.wantsAtScan(tally.nextSequence + tally.count("done") + tally.count("failed"));
  if (request !== undefined) turn.effects.push({ kind: "scrubLedger", request });
}

function onScrubbed(
  { ledger, keys }: CoordinatorState,
  turn: Turn,
  { page }: Extract<Input, { kind: "scrubbed" }>,
): void {
  const damage = ledger.scrub.take(page, (segment, found) =>
    isKeySegment(segment)
      ? keyDisagreement(keys.rows.numbers, segment, found)
      : disagreement(ledger.tally, segment as SegmentName, found),
  );
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
  state.steadyOffsetMs ??= Math.max(wallMs, state.countedFrom.wallMs, state.fleets?.latestMs ?? 0) - nowMs;
  return nowMs + state.steadyOffsetMs;
}

/** An item that waits for longer than any item ever waits was delayed by a clock that was ahead: this one follows it. */
function followDelays(state: CoordinatorState, turn: Turn): void {
  const next = state.ledger.delayed.peek();
  if (next === undefined) return;
  const aheadMs = dueOfDelayed(next.key) - turn.steadyMs - DELAY_MAX_MS;
  if (aheadMs > 0) state.steadyOffsetMs = turn.steadyMs - turn.nowMs + aheadMs;
}

/** For those who follow the run. The end of a cancelled one is told like a step: its chart has moved before. */
function tellNews(state: CoordinatorState, turn: Turn, wasOver: boolean): void {
  const { news } = state;
  const hasEnded = wasOver !== isOver(state);
  if (turn.hasStepped || hasEnded) news.steps++;
  else if (!turn.ledgerTouched && !turn.hasOtherWords) return;
  news.changes++;
  turn.effects.push({ kind: "reached", reach: { ...extentOf(state), ...news } });
}

/** The ledger's numbers and what became final, once per turn and in its batch; and all of it for those that follow. */
function writeLedger(state: CoordinatorState, turn: Turn): void {
  const { tally, epochStarts } = state.ledger;
  const { pulse } = state;
  pulse.count(turn.nowMs, turn.completed.length, tally.count("running") > 0);
  if (turn.completed.length > 0 || turn.takesCompletion)
    turn.put(completionsEntry(tally.takeCompletion(), turn.completed));
  publishSnapshot(state, turn);
  if (!turn.ledgerTouched) return;
  turn.put(tally.entry());
  const starts = epochStarts.takeUnwritten();
  if (starts !== undefined) turn.put(starts);
}
