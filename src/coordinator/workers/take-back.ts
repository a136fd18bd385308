// Work that a worker does not have any more, or does not hand back, taken back: all of it when the worker has left or is given up; that
// of older processes when it is known how they ended; that which is with nobody, given in an answer that was lost, to a process
// whose next one beats and has not asked yet, or to one that beats and has nothing (it states nothing in a hello, so its beats are what
// there is to go by); and what was recalled and has not begun. Whom that charges, the item's chart says.
//
// A worker answers a recall at once. Items that it still has after the deadline, and never said to have begun, go to others, so that a
// worker which does not answer, or says what cannot be, keeps nobody waiting. Its reports of them after that are judged as late.
import type { AttemptEnd, RunningItem, Failure } from "../ledger/ledger.ts";
import type { AttemptClass } from "../ledger/attempt-records.ts";
import { UNTOLD } from "../ledger/records.ts";
import type { HeldClaim } from "../turn/session-frame.ts";
import { priorityOf } from "../ledger/place.ts";
import { attemptOf, named, settleItem } from "../items/transitions.ts";
import { isItsOwn, isHeard } from "../turn/state.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";
import type { ItemEvent } from "../../../machines/work-item.ts";
import { lossByRestart } from "./outage.ts";
import type { Loss } from "./outage.ts";

const NOTHING: Uint8Array = new Uint8Array();

/** An end that no worker has reported. */
function untoldEnd(as: AttemptClass, message: string, result: Failure | null = null): AttemptEnd {
  return { class: as, message, result, execution: UNTOLD, log: NOTHING, checkpoint: NOTHING };
}

const POISON: Failure = { class: "poison", message: "workers fell silent while running it" };
const CANCELLED: Failure = { class: "cancelled", message: "the run was cancelled" };

export const ENDS = {
  stolen: untoldEnd("stolen", "handed back before it started: another worker had nothing to do"),
  handedBack: untoldEnd("preempted", "handed back before it started"),
  stateMissing: untoldEnd("preempted", "its worker did not have the state of its key, and is sent it"),
  overdue: untoldEnd("stolen", "its worker was asked to hand it back, and did not answer"),
  left: untoldEnd("preempted", "its worker left, or never received it"),
  unheld: untoldEnd("preempted", "its worker says that it does not have it"),
  preempted: untoldEnd("preempted", "its worker was leaving, and was not heard of again"),
  lost: untoldEnd("lost", "its worker fell silent while running it", POISON),
  lostUnstarted: untoldEnd("lost", "its worker fell silent before it started"),
  cancelled: untoldEnd("cancelled", CANCELLED.message, CANCELLED),
} as const;

/** In failure timeouts, for an answer to a recall, and for a new process to state what it has: one that is only slow is suspected before. */
const PATIENCE_FACTOR = 2;

/** The worker has answered a recall: the items that it has kept have begun, it says. */
export function noteKept({ held }: WorkerRow): void {
  for (const item of held.values()) if (item.recalledAtMs !== undefined) item.hasBegun = true;
}

/** Time in which this process did not run counts for nobody: what it gave out may not even have left, and nobody was heard. */
export function forgiveDelay({ held }: WorkerRow, missedMs: number, nowMs: number): void {
  for (const item of held.values()) {
    item.receivedFromMs += Math.min(missedMs, nowMs - item.receivedFromMs);
    if (item.recalledAtMs !== undefined) item.recalledAtMs += missedMs;
  }
}

/** Called at each scan. One that makes calls is asked by its answers, and says with each call what it has. */
export function takeBackOverdue(state: CoordinatorState, turn: Turn, row: WorkerRow): void {
  const { session } = row;
  if (session?.isReconciled !== true || session.takesOneFrame) return;
  const overdue = [...row.held.values()].filter((item) => isOverdue(state, turn, item));
  if (overdue.length === 0) return;
  const kept = begunBy(row);
  const taken = overdue.filter((item) => !kept.has(item));
  if (taken.length === 0) return;
  for (const item of taken) takeBackItem(state, turn, row, item, ENDS.overdue);
  session.isRecalled = false;
  session.recalledAtMs = turn.nowMs;
  turn.send(session.port, { kind: "drop", attempts: taken.map(named) });
  const fields = { worker_id: row.id, items: taken.length };
  turn.warn("a worker did not hand back what it was asked for, and it goes to others", fields);
}

function isOverdue({ liveness }: CoordinatorState, turn: Turn, { recalledAtMs }: RunningItem): boolean {
  const deadlineMs = PATIENCE_FACTOR * liveness.coordinatorFailureTimeoutMs;
  return recalledAtMs !== undefined && turn.nowMs - recalledAtMs >= deadlineMs;
}

/** The worker does not have it any more, and nobody is charged. */
export function takeBackItem(
  { ledger }: CoordinatorState,
  turn: Turn,
  { held }: WorkerRow,
  item: RunningItem,
  end: AttemptEnd,
): void {
  held.delete(item.itemKey);
  const event = { type: "item.returned", ...attemptOf(item), atMs: Math.floor(turn.steadyMs) } as const;
  settleItem(ledger, turn, item, event, end);
}

/**
 * A worker states of an item that it has it. An item that was recalled on a stream which broke off is handed back by the word
 * that it has not started: the worker starts nothing before its verdict. One that makes calls may not have heard of the request
 * before the deadline.
 */
export function isHandedBackBy(
  state: CoordinatorState,
  turn: Turn,
  item: RunningItem,
  { phase }: HeldClaim,
  makesCalls: boolean,
): boolean {
  if (item.recalledAtMs === undefined) return false;
  if (phase === "unstarted") return !makesCalls || isOverdue(state, turn, item);
  if (phase === undefined) item.recalledAtMs = undefined;
  else item.hasBegun = true;
  return false;
}

/**
 * The items that it can have begun, as many as it has slots: first those that it says to have begun, then the first that it was
 * given.
 */
function begunBy(row: WorkerRow): ReadonlySet<RunningItem> {
  const own = [...row.held.values()].filter((item) => isItsOwn(row, item));
  own.sort((one, other) => Number(other.hasBegun) - Number(one.hasBegun) || one.number - other.number);
  return new Set(own.slice(0, row.slots));
}

/** The worker has no session until its next hello: nothing is given to it, and what it says on the old stream is not heard. */
export function endSessionOf(row: WorkerRow, turn: Turn): void {
  if (row.session !== undefined) turn.endSession(row.session.port);
  leaveSession(row);
}

export function leaveSession(row: WorkerRow): void {
  // Results that are decided later are acknowledged to nobody: the worker sends them again.
  row.session?.deliveries.splice(0);
  row.session = undefined;
}

/**
 * A worker that is gone loses everything that it has. `left`: it said goodbye; `preempted`: it was about to. `lost`: it fell
 * silent, and what it had started may be why; `lostWithMany`: it fell silent together with others, and no item is to blame.
 */
export function takeBackAll(state: CoordinatorState, turn: Turn, row: WorkerRow, how: "left" | Loss): void {
  endSessionOf(row, turn);
  const [own, older] = byProcess(row, [...row.held.values()]);
  // A goodbye says nothing of what an older process ended of.
  const howOlder = how === "lost" ? how : "lostWithMany";
  takeBackItems(state, turn, row, older, row.restart?.wasDraining === true ? "preempted" : howOlder);
  takeBackItems(state, turn, row, own, how);
}

/**
 * A worker has stated what it has, and `missing` is not among it: it never arrived, or ended with an older process. Returns what
 * stays with the worker, because it is not known yet how its older process ended.
 */
export function takeBackMissing(
  state: CoordinatorState,
  turn: Turn,
  row: WorkerRow,
  missing: readonly RunningItem[],
): RunningItem[] {
  const [own, older] = byProcess(row, missing);
  const remains = takeBackItems(state, turn, row, older, lossByRestart(state, row, turn.nowMs));
  takeBackItems(state, turn, row, own, "left");
  return remains;
}

/** The same of items that stay with a session, as soon as it is known how the worker's older process ended. Idempotent. */
export function takeBackRemains(state: CoordinatorState, turn: Turn, row: WorkerRow): void {
  const remains = row.session?.remains.filter((item) => row.held.get(item.itemKey) === item) ?? [];
  if (row.session === undefined || remains.length === 0) return;
  row.session.remains = takeBackItems(state, turn, row, remains, lossByRestart(state, row, turn.nowMs));
}

/** Items of older processes of the worker are taken back as soon as it is known how these ended. Idempotent. */
function takeBackOlder(state: CoordinatorState, turn: Turn, row: WorkerRow): void {
  const [, older] = byProcess(row, [...row.held.values()]);
  if (older.length > 0) takeBackItems(state, turn, row, older, lossByRestart(state, row, turn.nowMs));
}

/** The items given to the worker's process of now, and those given to older ones. */
function byProcess(
  row: WorkerRow,
  items: readonly RunningItem[],
): [own: RunningItem[], older: RunningItem[]] {
  const own = new Set(items.filter((item) => isItsOwn(row, item)));
  return [[...own], items.filter((item) => !own.has(item))];
}

/** Returns what has begun and stays where it is, because it is not known yet how it was lost. */
function takeBackItems(
  state: CoordinatorState,
  turn: Turn,
  row: WorkerRow,
  items: readonly RunningItem[],
  how: "left" | Loss | undefined,
): RunningItem[] {
  const begun = begunOf(items, row.slots);
  const isOpen = (item: RunningItem): boolean => how === undefined && begun.has(item);
  for (const item of inOrderOfNumber(items)) {
    if (isOpen(item)) continue;
    const counted = how === "lost";
    if (how === "left" || how === "preempted" || !begun.has(item)) {
      const end = how === "left" || how === "preempted" ? ENDS[how] : ENDS.lostUnstarted;
      takeBackItem(state, turn, row, item, end);
    } else {
      row.held.delete(item.itemKey);
      const event: ItemEvent = { type: "item.lost", ...attemptOf(item), counted };
      state.counters.reassigned++;
      settleItem(state.ledger, turn, item, event, ENDS.lost);
    }
  }
  return items.filter(isOpen);
}

/**
 * The items that have begun for certain. A worker starts the first by priority, then by number, of those that it has at that
 * moment; so an item that is among the first either way has begun, and of any other it cannot be said.
 */
function begunOf(items: readonly RunningItem[], slots: number): ReadonlySet<RunningItem> {
  const byNumber = new Set(inOrderOfNumber(items).slice(0, slots));
  const byPriority = inOrderOfNumber(items).sort(
    (one, other) => priorityOf(other.place) - priorityOf(one.place),
  );
  return new Set(byPriority.slice(0, slots).filter((item) => byNumber.has(item)));
}

function inOrderOfNumber(items: readonly RunningItem[]): RunningItem[] {
  return [...items].sort((one, other) => one.number - other.number);
}

/** Called at each scan. */
export function takeBackUnreceived(state: CoordinatorState, turn: Turn, row: WorkerRow): void {
  if (row.held.size === 0 || !isHeard(row) || row.lastBeatMs === undefined) return;
  takeBackUnacknowledged(state, turn, row, row.lastBeatMs);
  const patienceMs = PATIENCE_FACTOR * state.liveness.coordinatorFailureTimeoutMs;
  const isUnstated = row.session === undefined && turn.nowMs - row.movedAtMs > patienceMs;
  if (!isUnstated) return;
  takeBackOlder(state, turn, row);
  if (row.holdsNothing) takeBackUnheld(state, turn, row, row.lastBeatMs - patienceMs);
}

/** Given before that moment to a worker that has nothing. A store that went back has lost how it ended, and nobody will say so again. */
function takeBackUnheld(state: CoordinatorState, turn: Turn, row: WorkerRow, beforeMs: number): void {
  const [own] = byProcess(row, [...row.held.values()]);
  for (const item of own)
    if (item.receivedFromMs < beforeMs) takeBackItem(state, turn, row, item, ENDS.unheld);
}

/**
 * An item that a beat does not acknowledge a failure timeout after it was given has not arrived. On a stream it is on its way
 * as long as the stream is; of a call the answer is forgotten, so that it does not come when the call is repeated.
 */
function takeBackUnacknowledged(
  state: CoordinatorState,
  turn: Turn,
  row: WorkerRow,
  heardAtMs: number,
): void {
  const { ackedAssignment: acked, session } = row;
  if (acked === undefined || session?.takesOneFrame === false) return;
  const patienceMs = state.liveness.coordinatorFailureTimeoutMs;
  const lost = [...row.held.values()].filter(
    (item) => isItsOwn(row, item) && item.number > acked && heardAtMs - item.receivedFromMs > patienceMs,
  );
  if (lost.length === 0) return;
  endSessionOf(row, turn);
  for (const item of lost) takeBackItem(state, turn, row, item, ENDS.left);
}
