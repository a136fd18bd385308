// The coordinator's side of a worker's session: what it holds is reconciled first, then work goes down by credit and results come
// up. Frames of a session that is not the worker's current one change nothing but its end, so that no worker waits for ever on
// a stream that nobody listens to: it opens another and states what it has.
//
// The sessions' room: `session` hears a worker, `adoption` takes in what an earlier leader gave it, `reports` settles how attempts have
// ended, `delivery` acknowledges results and judges those that come too late, `partitions` has states of keys kept where they are used.
import { runsAlone } from "../../../machines/work-item.ts";
import {
  ENDS,
  takeBackItem,
  isHandedBackBy,
  noteKept,
  endSessionOf,
  leaveSession,
  takeBackMissing,
} from "../workers/take-back.ts";
import { itemKeyOf } from "../ledger/place.ts";
import { onPartitionLoaded, onPartitionsWritten } from "./partitions.ts";
import { reconcile, unheardOf } from "./adoption.ts";
import { deliver, isClaimed } from "./reports.ts";
import type { AttemptEnd, RunningItem } from "../ledger/ledger.ts";
import { saveCheckpoint } from "../items/transitions.ts";
import type { NamedAttempt, SentCheckpoint, Session, SessionInput } from "../turn/session-frame.ts";
import { isHeard } from "../turn/state.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import { onStealAnswered } from "../schedule/recall.ts";
import type { Turn } from "../turn/turn.ts";

/** Credit beyond this is a mistake of the worker's; it is not believed. */
const CREDIT_MAX = 16_384;

export function onSession(state: CoordinatorState, turn: Turn, input: SessionInput): void {
  const row = state.workers.get(input.workerId);
  if (input.kind === "hello") return onHello(state, turn, row, input);
  // A report names its attempt exactly, so it is as good beside a session as in one.
  if (input.kind === "report")
    return row === undefined
      ? refuseSession(turn, input)
      : deliver(state, turn, row, [], { ...input, number: 0 });
  if (row?.session?.port !== input.port) {
    if (input.kind !== "sessionEnded") refuseSession(turn, input);
    return;
  }
  if (input.kind !== "results") turn.settle(input);
  // A worker that speaks has read what it was given before, or is about to.
  row.session.unreadBytes = 0;
  switch (input.kind) {
    case "credit":
      row.session.credit = creditAfter(row.session, input);
      return;
    case "results":
      return deliver(state, turn, row, row.session.deliveries, input);
    case "handedBack":
      return onHandedBack(state, turn, row, input.attempts);
    case "partitionLoaded":
      return onPartitionLoaded(state, turn, row, input);
    case "partitionsWritten":
      return onPartitionsWritten(state, turn, row, input);
    case "checkpoints":
      for (const sent of input.checkpoints) onCheckpoint(turn, row, sent);
      return;
    case "withdrawCredit":
      row.session.credit = 0;
      turn.send(input.port, { kind: "creditWithdrawn" });
      return;
    case "sessionEnded":
      leaveSession(row);
  }
}

function creditAfter(
  { credit, nextNumber }: Session,
  { more, upTo }: Pick<Extract<SessionInput, { kind: "credit" }>, "more" | "upTo">,
): number {
  const asked = upTo === undefined ? credit + more : upTo - (nextNumber - 1);
  return Math.max(0, Math.min(CREDIT_MAX, asked));
}

function refuseSession(turn: Turn, input: SessionInput): void {
  turn.endSession(input.port);
  turn.settle(input);
}

function onHello(
  state: CoordinatorState,
  turn: Turn,
  row: WorkerRow | undefined,
  hello: Extract<SessionInput, { kind: "hello" }>,
): void {
  // A session opens after the first beat of its process, and again after one if it was given up; before that it tries again.
  if (hello.incarnation !== row?.chart.context.incarnation || !isHeard(row))
    return refuseSession(turn, hello);
  // It was under way on one connection while a later one came on another: what it states is not so any more.
  if (hello.sessionNumber > 0 && hello.sessionNumber < row.sessionNumber) return refuseSession(turn, hello);
  row.sessionNumber = Math.max(row.sessionNumber, hello.sessionNumber);
  // A worker that was sent a recall a moment ago is left alone for as long as it would have been.
  const recalledAtMs = row.session?.recalledAtMs ?? -Infinity;
  endSessionOf(row, turn);
  row.session = {
    port: hello.port,
    credit: 0,
    nextNumber: hello.ackedAssignment + 1,
    takesOneFrame: hello.takesOneFrame === true,
    isReconciled: false,
    unreadBytes: 0,
    isRecalled: false,
    recalledAtMs,
    remains: [],
    deliveries: [],
  };
  const kept = new Set<RunningItem>();
  const keep = hello.held.map((claim) => {
    const item = row.held.get(itemKeyOf(claim.id));
    const isCurrent = item !== undefined && isClaimed(item, claim, hello.incarnation);
    if (isCurrent && isHandedBackBy(state, turn, item, claim, hello.takesOneFrame === true)) {
      takeBackItem(state, turn, row, item, ENDS.stolen);
      return false;
    }
    if (isCurrent) kept.add(item);
    // A result is delivered in any case: what it is worth is judged when it is there.
    return isCurrent || claim.isFinished;
  });
  const missing = [...row.held.values()].filter((item) => !kept.has(item));
  row.session.remains = takeBackMissing(state, turn, row, missing);
  const { port, settled } = hello;
  reconcile(state, turn, row, { port, settled, keep, claims: unheardOf(state, row, hello) });
}

/** Only the attempt that the item is under says what it would go on from (C3). */
function onCheckpoint(turn: Turn, row: WorkerRow, sent: SentCheckpoint): void {
  const item = row.held.get(itemKeyOf(sent.id));
  if (item !== undefined && isClaimed(item, { ...sent, isFinished: false }, row.chart.context.incarnation)) {
    item.hasBegun = true;
    saveCheckpoint(turn, item, sent.checkpoint);
  }
}

/** The answer to a recall names nothing but what was recalled. One that comes unasked meanwhile answers nothing. */
function onHandedBack(
  state: CoordinatorState,
  turn: Turn,
  row: WorkerRow,
  attempts: readonly NamedAttempt[],
): void {
  const isUnasked = attempts.some(({ id }) => {
    const item = row.held.get(itemKeyOf(id));
    return item !== undefined && item.recalledAtMs === undefined;
  });
  const isAnswer = row.session?.isRecalled === true && !isUnasked;
  const end = isAnswer ? ENDS.stolen : ENDS.handedBack;
  for (const attempt of attempts) handBack(state, turn, row, attempt, end);
  if (isUnasked) return;
  noteKept(row);
  if (isAnswer) onStealAnswered(state, row, turn, attempts.length);
}

function handBack(
  state: CoordinatorState,
  turn: Turn,
  row: WorkerRow,
  { id, attempt }: NamedAttempt,
  end: AttemptEnd,
): void {
  const itemKey = itemKeyOf(id);
  const item = row.held.get(itemKey);
  if (item === undefined || item.row.context.attempt !== attempt) return;
  if (runsAlone(item.row.context)) row.refusedAloneAtMs = turn.nowMs;
  // Unasked, it says that it does not have the version, until it says otherwise.
  if (item.recalledAtMs === undefined && item.version !== "") row.lacks = item.version;
  takeBackItem(state, turn, row, item, end);
}
