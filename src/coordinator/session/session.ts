// The coordinator's side of a worker's session: what it holds is reconciled first, then work goes down by credit and results come
// up. Frames of a session that is not the worker's current one change nothing but its end, so that no worker waits for ever on
// a stream that nobody listens to: it opens another and states what it has.
//
// The sessions' room: `session` hears a worker, `adoption` takes in what an earlier leader gave it, `late-result` judges what
// comes too late, `delivery` acknowledges.
import { runsAlone } from "../../../machines/work-item.ts";
import type { ItemEvent } from "../../../machines/work-item.ts";
import type { WorkerId } from "../../base/ids.ts";
import { ENDS, endOf } from "../workers/attempt-end.ts";
import { acknowledge, openDelivery, settle } from "./delivery.ts";
import { takeBackItem, isHandedBackBy, noteKept } from "../workers/hand-back.ts";
import { endSessionOf, leaveSession, takeBackMissing } from "../workers/loss.ts";
import { itemKeyOf } from "../ledger/item-id.ts";
import { examine } from "./late-result.ts";
import { reconcile, unheardOf } from "./adoption.ts";
import type { Failure, RunningItem, Success } from "../ledger/ledger.ts";
import { attemptOf, saveCheckpoint, settleItem } from "../items/transitions.ts";
import type {
  Delivery,
  HeldClaim,
  NamedAttempt,
  Report,
  ReportedOutcome,
  SentCheckpoint,
  SessionInput,
} from "../turn/session-frame.ts";
import { isHeard } from "../turn/state.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import { onStealAnswered } from "../schedule/steal.ts";
import { judge } from "../workers/trust.ts";
import type { Turn } from "../turn/turn.ts";

/** Outcomes that are charged to the item or end it. */
const EVENT_OF = {
  success: "item.succeeded",
  error: "item.erred",
  timeout: "item.erred",
  crash: "item.erred",
  crash_shared: "item.crashedTogether",
  too_large: "item.tooLarge",
  preempted: "item.returned",
  stolen: "item.returned",
  fenced: "item.returned",
  cancelled: "item.returned",
} as const satisfies Record<ReportedOutcome["kind"], ItemEvent["type"]>;

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
  if (input.kind === "checkpoints") turn.answer(input.answer, undefined);
  if (row?.session?.port !== input.port) {
    if (input.kind !== "sessionEnded") refuseSession(turn, input);
    return;
  }
  if (input.kind !== "results") settle(input, turn);
  // A worker that speaks has read what it was given before, or is about to.
  row.session.unreadBytes = 0;
  switch (input.kind) {
    case "credit":
      row.session.credit = Math.min(CREDIT_MAX, row.session.credit + input.more);
      return;
    case "results":
      return deliver(state, turn, row, row.session.deliveries, input);
    case "released":
      for (const attempt of input.attempts) handBack(state, turn, row, attempt);
      noteKept(row);
      if (row.session.isRecalled) onStealAnswered(row, turn, input.attempts.length);
      return;
    case "checkpoints":
      for (const sent of input.checkpoints) onCheckpoint(state, turn, row, sent);
      return;
    case "withdrawCredit":
      row.session.credit = 0;
      turn.send(input.port, { kind: "creditWithdrawn" });
      return;
    case "sessionEnded":
      leaveSession(row);
  }
}

function refuseSession(turn: Turn, input: SessionInput): void {
  turn.endSession(input.port);
  settle(input, turn);
}

/** The batch is acknowledged when all of it is decided and on stable storage (C10); `line` is what waits before it. */
function deliver(
  state: CoordinatorState,
  turn: Turn,
  row: WorkerRow,
  line: Delivery[],
  input: Pick<Extract<SessionInput, { kind: "results" }>, "port" | "number" | "reports" | "settled">,
): void {
  const delivery = openDelivery(line, input, input.number);
  for (const report of input.reports) onReport(state, turn, row, report, delivery);
  if (delivery.undecided === 0) settle(delivery, turn);
  turn.requireSync();
  acknowledge(turn, line);
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

function onReport(
  state: CoordinatorState,
  turn: Turn,
  row: WorkerRow,
  report: Report,
  delivery: Delivery,
): void {
  const itemKey = itemKeyOf(report.id);
  const item = state.ledger.running.get(itemKey);
  const { outcome } = report;
  if (item === undefined && outcome.kind === "success") {
    const { id, incarnation, attempt, epoch } = report;
    const by = { id, worker: row.id, incarnation, attempt, epoch };
    return examine(state, turn, { ...by, success: outcome, end: endOf(report) }, delivery);
  }
  const before = item?.row.context;
  const settled =
    item === undefined
      ? "ignored"
      : settleItem(state.ledger, turn, item, eventFor(row.id, report, turn), whatOf(report), endOf(report));
  if (settled === "ignored") {
    // Another attempt of it, or none: the first report has been recorded, or the item is somebody else's now.
    state.counters.staleReports++;
    return;
  }
  row.held.delete(itemKey);
  if (before !== undefined) judge(state, turn, row, report, before);
}

/** Only the attempt that the item is under says what it would go on from (C3). */
function onCheckpoint(state: CoordinatorState, turn: Turn, row: WorkerRow, sent: SentCheckpoint): void {
  const item = row.held.get(itemKeyOf(sent.id));
  if (item !== undefined && isClaimed(item, { ...sent, isFinished: false }, row.chart.context.incarnation)) {
    item.hasBegun = true;
    saveCheckpoint(turn, item, sent.checkpoint);
  } else state.counters.staleCheckpoints++;
}

function handBack(state: CoordinatorState, turn: Turn, row: WorkerRow, { id, attempt }: NamedAttempt): void {
  const itemKey = itemKeyOf(id);
  const item = row.held.get(itemKey);
  if (item === undefined || item.row.context.attempt !== attempt) return;
  if (runsAlone(item.row.context)) row.refusedAloneAtMs = turn.nowMs;
  takeBackItem(state, turn, row, item, row.session?.isRecalled === true ? ENDS.stolen : ENDS.handedBack);
}

function eventFor(
  worker: WorkerId,
  { incarnation, attempt, epoch, outcome }: Report,
  { steadyMs }: Turn,
): Parameters<typeof settleItem>[3] {
  const key = { worker, incarnation, attempt, epoch };
  const isPermanent = outcome.kind === "error" && outcome.isPermanent === true;
  const type = isPermanent ? EVENT_OF.too_large : EVENT_OF[outcome.kind];
  return type === "item.returned" ? { type, ...key, atMs: Math.floor(steadyMs) } : { type, ...key };
}

function whatOf({ outcome }: Report): Success | Failure | null {
  switch (outcome.kind) {
    case "success":
      return outcome;
    case "error": {
      const { message, response } = outcome;
      return { class: "error", message, ...(response !== undefined && { response }) };
    }
    case "timeout":
    case "crash":
    case "too_large":
      return { class: outcome.kind, message: outcome.message };
    case "crash_shared":
      return { class: "crash", message: outcome.message };
    default:
      return null;
  }
}

/**
 * Whether the claim is of the attempt that the item is running under. An attempt that an earlier process left unfinished died
 * with it.
 */
function isClaimed(item: RunningItem, claim: HeldClaim, incarnation: string): boolean {
  const current = attemptOf(item);
  return (
    current.attempt === claim.attempt &&
    current.epoch === claim.epoch &&
    (current.incarnation === incarnation || claim.isFinished)
  );
}
