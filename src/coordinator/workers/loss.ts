// Work that a worker does not have any more, taken back: all of it when the worker has left or is given up, that of older processes
// when it is known how they ended, and that which is with nobody: given in an answer that was lost, or to a process whose next
// one beats and has not asked yet. Such a worker states nothing in a hello, so its beats are what there is to go by.
import type { ItemEvent } from "../../../machines/work-item.ts";
import { attemptOf, settleItem } from "../items/transitions.ts";
import { itemKeyOf } from "../ledger/item-id.ts";
import type { Failure, RunningItem } from "../ledger/ledger.ts";
import { priorityOf } from "../ledger/place.ts";
import { isHeard, isItsOwn } from "../turn/state.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";
import { ENDS } from "./attempt-end.ts";
import { takeBackItem } from "./hand-back.ts";
import { lossByRestart } from "./outage.ts";
import type { Loss } from "./outage.ts";

/** In failure timeouts, for a new process to state what it has: a worker that is only slow is suspected before. */
const STATEMENT_FACTOR = 2;
const POISON: Failure = { class: "poison", message: "workers fell silent while running it" };

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
  const remains = row.session?.remains.filter((item) => row.held.get(itemKeyOf(item.id)) === item) ?? [];
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
      row.held.delete(itemKeyOf(item.id));
      const event: ItemEvent = { type: "item.lost", ...attemptOf(item), counted };
      state.counters.reassigned++;
      settleItem(state.ledger, turn, item, event, POISON, ENDS.lost);
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
  const patienceMs = STATEMENT_FACTOR * state.liveness.coordinatorFailureTimeoutMs;
  const isUnstated = row.session === undefined && turn.nowMs - row.movedAtMs > patienceMs;
  if (isUnstated) takeBackOlder(state, turn, row);
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
