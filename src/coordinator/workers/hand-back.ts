// Work that was recalled and is not handed back. A worker answers a recall at once; items that it still has after the deadline,
// and never said to have begun, are taken back and go to others, so that a worker which does not answer, or says what cannot
// be, keeps nobody waiting. Its reports of them after that are judged as late.
import { ENDS } from "./attempt-end.ts";
import { itemKeyOf } from "../ledger/item-id.ts";
import type { AttemptEnd, RunningItem } from "../ledger/ledger.ts";
import { attemptOf, settleItem } from "../items/transitions.ts";
import { isItsOwn } from "../turn/state.ts";
import type { HeldClaim } from "../turn/session-frame.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";

/** In failure timeouts: a worker that is only slow is suspected before. */
const DEADLINE_FACTOR = 2;

/** These items are recalled. The deadline counts from the first time, over all streams of the worker. */
export function noteRecalled(items: readonly RunningItem[], turn: Turn): void {
  for (const item of items) item.recalledAtMs ??= turn.nowMs;
}

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
  const attempts = taken.map(({ id, row: { context } }) => ({ id, attempt: context.attempt }));
  turn.send(session.port, { kind: "drop", attempts });
  turn.effects.push({
    kind: "warning",
    message: "a worker did not hand back what it was asked for, and it goes to others",
    fields: { worker_id: row.id, items: taken.length },
  });
}

function isOverdue({ liveness }: CoordinatorState, turn: Turn, { recalledAtMs }: RunningItem): boolean {
  const deadlineMs = DEADLINE_FACTOR * liveness.coordinatorFailureTimeoutMs;
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
  held.delete(itemKeyOf(item.id));
  const event = { type: "item.returned", ...attemptOf(item), atMs: Math.floor(turn.steadyMs) } as const;
  settleItem(ledger, turn, item, event, null, end);
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
