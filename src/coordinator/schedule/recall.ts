// Recalls. While a run is paused, items that workers have not started are to wait with the coordinator; items that a cancelled
// run has given out are settled, and killed where they run.
//
// Steals are recalls of work that waits at one worker while another has nothing: those that the victim hands back are pending again
// and go to a worker that asks. Workers never talk to each other, and an item that has begun is never moved, so nothing runs twice
// because of a steal.
import { ENDS } from "../workers/take-back.ts";
import type { RunningItem } from "../ledger/ledger.ts";
import { named, settleItem } from "../items/transitions.ts";
import { isHandingBack, isOfUse, isTrusted, takesWork } from "../turn/state.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import type { Session } from "../turn/session-frame.ts";
import type { Turn } from "../turn/turn.ts";
import { isKeyed } from "../ledger/place.ts";
import { hasOpen } from "../ledger/queue.ts";
import { isUnharmed } from "../ledger/shelf.ts";
import type { Reserved } from "./dispatch.ts";

const CALLS_RECALLED_EVERY_MS = 5_000;

export function recallBacklogs({ workers }: CoordinatorState, turn: Turn): void {
  for (const row of workers.values()) recallBacklog(row, turn);
}

/** Everything is recalled: the worker knows what it has started, and hands back the rest. */
export function recallBacklog({ session, held }: WorkerRow, turn: Turn): void {
  // A worker that waits for its verdict is sent the recall with it.
  if (session?.isReconciled !== true || held.size === 0) return;
  // A worker that calls says what it has with each call: a recall that is repeated must not make it call again at once.
  if (session.takesOneFrame && turn.nowMs - session.recalledAtMs < CALLS_RECALLED_EVERY_MS) return;
  recall(session, turn, [...held.values()]);
}

/** Attempts of a candidate that have not begun are handed back: it goes to the old version, or to the candidate when that goes on. */
export function recallTrials({ workers }: CoordinatorState, turn: Turn): void {
  for (const row of workers.values()) recallTrialsOf(row, turn);
}

/** One that waits for its verdict is sent the recall with it. Attempts of the release `goesOn` stay. */
export function recallTrialsOf({ session, held }: WorkerRow, turn: Turn, goesOn = ""): void {
  if (session?.isReconciled !== true) return;
  const trials = [...held.values()].filter(
    ({ row: { context } }) => context.trial !== "" && context.trial !== goesOn,
  );
  if (trials.length > 0) recall(session, turn, trials);
}

/** The deadline of an item counts from the first recall, over all streams of its worker. */
function recall(session: Session, turn: Turn, items: readonly RunningItem[]): void {
  session.recalledAtMs = turn.nowMs;
  for (const item of items) item.recalledAtMs ??= turn.nowMs;
  turn.send(session.port, { kind: "recall", attempts: items.map(named) });
}

/** Every item that a worker has fails as cancelled, all of them in one turn: a cancelled run has nothing in flight. */
export function cancelHeld({ workers, ledger }: CoordinatorState, turn: Turn): void {
  for (const { session, held } of workers.values()) {
    const items = [...held.values()];
    held.clear();
    for (const item of items) settleItem(ledger, turn, item, { type: "item.cancelled" }, ENDS.cancelled);
    // One that waits for its verdict is told by it.
    if (session?.isReconciled === true && items.length > 0)
      turn.send(session.port, { kind: "drop", attempts: items.map(named) });
  }
}

const MAX_STEAL_BATCH = 32;
/** An item that was assigned a moment ago is about to start; a recall of it is wasted. */
const MIN_AGE_MS = 200;

/** Workers that are reserved take nothing that is stolen. */
export function steal(state: CoordinatorState, turn: Turn, reserved: Reserved): void {
  for (const row of cordoned(state)) if (mayBeAsked(row, turn)) ask(row, turn, waitingAt(row, turn));
  if (hasOpen(state.ledger)) return;
  const thieves = [...state.workers.values()].filter((row) => isIdle(state, row) && !reserved.has(row));
  if (thieves.length === 0) return;
  const isOnlyOne = isOneOfUse(state);
  let victims = victimsOf(state, turn);
  for (const thief of thieves) {
    if (victims.length === 0) return;
    for (const victim of victims) {
      // Nothing moves to where it is less safe, nor to who has failed it: there it would only wait for another.
      if (thief.isAtRisk && !victim.row.isAtRisk) continue;
      victim.waiting ??= waitingAt(victim.row, turn);
      const wanted = victim.waiting.filter((item) => isOnlyOne || mayMove(state, item, thief));
      if (wanted.length === 0) continue;
      ask(victim.row, turn, wanted.slice(0, Math.ceil(backlogOf(victim.row) / 2)));
      break;
    }
    victims = victims.filter(
      ({ row, waiting }) => row.session?.isRecalled === false && waiting?.length !== 0,
    );
  }
}

/** It would go to where it failed, or to a worker that only tries items and would not try it. */
function mayMove({ releases }: CoordinatorState, item: RunningItem, thief: WorkerRow): boolean {
  const { context } = item.row;
  if (context.failedBy === thief.id) return false;
  if (!releases.isRolling || releases.deskOf(thief) !== "candidate") return true;
  const isOwn = item.mayHaveCheckpoint || isKeyed(item.place);
  return !isOwn && isUnharmed(context, releases.stampOf("candidate").trial);
}

interface Victim {
  readonly row: WorkerRow;
  /** Once it was looked at. */
  waiting: readonly RunningItem[] | undefined;
}

/** Peers that are not being asked already, the most backlog first. */
function victimsOf({ workers }: CoordinatorState, turn: Turn): Victim[] {
  const rows = [...workers.values()].filter((row) => mayBeAsked(row, turn));
  rows.sort((one, other) => backlogOf(other) - backlogOf(one));
  return rows.map((row) => ({ row, waiting: undefined }));
}

/** The run has one worker to count on, whatever others still hold. */
function isOneOfUse(state: CoordinatorState): boolean {
  let count = 0;
  for (const row of state.workers.values()) if (isTrusted(row) && isOfUse(state, row)) count++;
  return count === 1;
}

/** A cordoned worker would only fail what it has not started; others are there for it. */
function cordoned(state: CoordinatorState): readonly WorkerRow[] {
  const rows = [...state.workers.values()];
  const out = rows.filter((row) => !isTrusted(row));
  return out.length > 0 && rows.some((row) => isTrusted(row) && isOfUse(state, row)) ? out : [];
}

function mayBeAsked(row: WorkerRow, turn: Turn): boolean {
  return row.session?.isReconciled === true && !isHandingBack(row, turn.nowMs) && backlogOf(row) > 0;
}

/** Room, and nothing waiting: what a worker has beyond its slots is its backlog. */
function isIdle(state: CoordinatorState, row: WorkerRow): boolean {
  return takesWork(state, row) && isTrusted(row) && row.held.size < row.slots;
}

/** The items that it has not started, as far as can be told and it says, and was not given just now; the last to start first. */
function waitingAt(row: WorkerRow, turn: Turn): RunningItem[] {
  // The last that were assigned are the last to start.
  return [...row.held.values()]
    .filter(({ hasBegun }) => !hasBegun)
    .sort((one, other) => other.number - one.number)
    .slice(0, backlogOf(row))
    .filter(({ assignedAtMs }) => turn.nowMs - assignedAtMs >= MIN_AGE_MS);
}

function ask({ session }: WorkerRow, turn: Turn, items: readonly RunningItem[]): void {
  if (session === undefined || items.length === 0) return;
  session.isRecalled = true;
  recall(session, turn, items.slice(0, MAX_STEAL_BATCH));
}

/** The victim's answer: what it handed back is pending again by now. */
export function onStealAnswered(
  { ledger: { meter } }: CoordinatorState,
  row: WorkerRow,
  turn: Turn,
  count: number,
): void {
  if (row.session === undefined) return;
  row.session.isRecalled = false;
  row.session.recalledAtMs = turn.nowMs;
  if (count === 0) return;
  meter.steals++;
  meter.itemsStolen += count;
  turn.emit("work_stolen", { victim_id: row.id, items: count });
}

function backlogOf(row: WorkerRow): number {
  return Math.max(0, row.held.size - row.slots);
}
