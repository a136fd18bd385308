// The coordinator's side of a worker's session: what it holds is reconciled first, then work goes down by credit and results come
// up. Frames of a session that is not the worker's current one change nothing but its end, so that no worker waits for ever on
// a stream that nobody listens to: it opens another and states what it has.
import type { ItemEvent } from "../../machines/work-item.ts";
import type { IncarnationId, WorkerId } from "../base/ids.ts";
import { itemKeyOf } from "./ledger/item-id.ts";
import { examine } from "./late-result.ts";
import type { Failure, RunningItem, Success } from "./ledger/item.ts";
import { attemptOf, settleItem } from "./ledger/ledger.ts";
import type { HeldClaim, NamedAttempt, Report, ReportedOutcome, SessionInput } from "./session-frame.ts";
import type { CoordinatorState, WorkerRow } from "./state.ts";
import { onStealAnswered } from "./steal.ts";
import type { Turn } from "./turn.ts";

/** Outcomes that are charged to the item or end it. */
const EVENT_OF = {
  success: "item.succeeded",
  error: "item.erred",
  timeout: "item.erred",
  crash: "item.erred",
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
  if (row?.session?.port !== input.port) {
    if (input.kind !== "sessionEnded") turn.endSession(input.port);
    return;
  }
  switch (input.kind) {
    case "credit":
      row.session.credit = Math.min(CREDIT_MAX, row.session.credit + input.more);
      return;
    case "results":
      for (const report of input.reports) onReport(state, turn, row, report);
      turn.requireSync();
      turn.send(input.port, { kind: "resultsAcknowledged", number: input.number });
      return;
    case "released":
      for (const attempt of input.attempts) giveBack(state, turn, row, attempt);
      if (row.session.isAsked) onStealAnswered(row, turn, input.attempts.length);
      return;
    case "sessionEnded":
      row.session = undefined;
  }
}

function onHello(
  state: CoordinatorState,
  turn: Turn,
  row: WorkerRow | undefined,
  hello: Extract<SessionInput, { kind: "hello" }>,
): void {
  // A session opens after the first beat of its process; one that comes before it tries again.
  if (hello.incarnation !== row?.chart.context.incarnation) return turn.endSession(hello.port);
  // It was under way on one connection while a later one came on another: what it states is not so any more.
  if (hello.sessionNumber < row.sessionNumber) return turn.endSession(hello.port);
  row.sessionNumber = hello.sessionNumber;
  endSessionOf(row, turn);
  row.session = {
    port: hello.port,
    credit: 0,
    nextNumber: hello.ackedAssignment + 1,
    isAsked: false,
    askedAtMs: 0,
  };
  const kept = new Set<RunningItem>();
  const keep = hello.held.map((claim) => {
    const item = row.held.get(itemKeyOf(claim.id));
    const isCurrent = item !== undefined && isClaimed(item, claim, hello.incarnation);
    if (isCurrent) kept.add(item);
    // A result is delivered in any case: what it is worth is judged when it is there.
    return isCurrent || claim.isFinished;
  });
  // What the worker does not have never arrived, or ended with an older process of it.
  const gone = [...row.held.values()].filter((item) => !kept.has(item));
  const isOlder = (item: RunningItem): boolean => item.row.context.incarnation !== hello.incarnation;
  const [older, own] = [gone.filter(isOlder), gone.filter((item) => !isOlder(item))];
  takeBack(state, turn, row, older, "lost");
  takeBack(state, turn, row, own, "left");
  turn.send(hello.port, { kind: "verdict", keep });
}

function onReport(state: CoordinatorState, turn: Turn, row: WorkerRow, report: Report): void {
  const itemKey = itemKeyOf(report.id);
  const item = state.ledger.running.get(itemKey);
  const { outcome } = report;
  if (item === undefined && outcome.kind === "success") {
    const { id, incarnation, attempt, epoch } = report;
    return examine(state, turn, { id, worker: row.id, incarnation, attempt, epoch, success: outcome });
  }
  const settled =
    item === undefined
      ? "ignored"
      : settleItem(state.ledger, turn, item, eventFor(row.id, report), whatOf(report));
  if (settled === "ignored") {
    // Another attempt of it, or none: the first report has been recorded, or the item is somebody else's now.
    state.counters.staleReports++;
    return;
  }
  row.held.delete(itemKey);
}

function giveBack(state: CoordinatorState, turn: Turn, row: WorkerRow, { id, attempt }: NamedAttempt): void {
  const itemKey = itemKeyOf(id);
  const item = row.held.get(itemKey);
  if (item === undefined || item.row.context.attempt !== attempt) return;
  row.held.delete(itemKey);
  settleItem(state.ledger, turn, item, { type: "item.returned", ...attemptOf(item) }, null);
}

/** The worker has no session until its next hello: nothing is given to it, and what it says on the old stream is not heard. */
export function endSessionOf(row: WorkerRow, turn: Turn): void {
  if (row.session !== undefined) turn.endSession(row.session.port);
  row.session = undefined;
}

/**
 * A worker that is gone gives back everything. `left`: it said goodbye. `lost`: it fell silent, and what it had started may be
 * why; `lostWithMany`: it fell silent together with others, and no item is to blame.
 */
export function forsake(
  state: CoordinatorState,
  turn: Turn,
  row: WorkerRow,
  how: "left" | "lost" | "lostWithMany",
): void {
  endSessionOf(row, turn);
  takeBack(state, turn, row, [...row.held.values()], how);
}

function takeBack(
  state: CoordinatorState,
  turn: Turn,
  row: WorkerRow,
  items: readonly RunningItem[],
  how: "left" | "lost" | "lostWithMany",
): void {
  const inOrder = [...items].sort((one, other) => one.number - other.number);
  for (const [at, item] of inOrder.entries()) {
    row.held.delete(itemKeyOf(item.id));
    const attempt = attemptOf(item);
    // A worker starts what it was given first, so beyond its slots nothing had begun.
    const hadBegun = at < row.slots;
    const counted = how === "lost";
    if (how === "left" || !hadBegun)
      settleItem(state.ledger, turn, item, { type: "item.returned", ...attempt }, null);
    else settleItem(state.ledger, turn, item, { type: "item.lost", ...attempt, counted }, POISON);
  }
}

const POISON: Failure = { class: "poison", message: "workers fell silent while running it" };

function eventFor(
  worker: WorkerId,
  { incarnation, attempt, epoch, outcome }: Report,
): Parameters<typeof settleItem>[3] {
  const key = { worker, incarnation, attempt, epoch };
  return { type: EVENT_OF[outcome.kind], ...key };
}

function whatOf({ outcome }: Report): Success | Failure | null {
  switch (outcome.kind) {
    case "success":
      return outcome;
    case "error":
    case "timeout":
    case "crash":
    case "too_large":
      return { class: outcome.kind, message: outcome.message };
    default:
      return null;
  }
}

/** Whether the claim is of the attempt that the item is running under. What an earlier process left unfinished died with it. */
function isClaimed(item: RunningItem, claim: HeldClaim, incarnation: IncarnationId): boolean {
  const current = attemptOf(item);
  return (
    current.attempt === claim.attempt &&
    current.epoch === claim.epoch &&
    (current.incarnation === incarnation || claim.isFinished)
  );
}
