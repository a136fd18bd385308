// The coordinator's side of a worker's session: what it holds is reconciled first, then work goes down by credit and results come
// up. Frames of a session that is not the worker's current one change nothing but its end, so that no worker waits for ever on
// a stream that nobody listens to: it opens another and states what it has.
//
// The sessions' room: `session` hears a worker, `adoption` takes in what an earlier leader gave it, `delivery` acknowledges
// results and judges those that come too late, `partitions` has states of keys kept where they are used.
import { runsAlone } from "../../../machines/work-item.ts";
import type { ItemEvent } from "../../../machines/work-item.ts";
import type { WorkerId } from "../../base/ids.ts";
import {
  ENDS,
  takeBackItem,
  isHandedBackBy,
  noteKept,
  endSessionOf,
  leaveSession,
  takeBackMissing,
} from "../workers/take-back.ts";
import { isKeyed, itemKeyOf } from "../ledger/place.ts";
import { admitted } from "./admitted.ts";
import type { EndReport } from "./admitted.ts";
import { acknowledge, examine, openDelivery } from "./delivery.ts";
import { onPartitionLoaded, onPartitionsWritten } from "./partitions.ts";
import { reconcile, unheardOf } from "./adoption.ts";
import type { AttemptEnd, RunningItem } from "../ledger/ledger.ts";
import { UNTOLD } from "../ledger/records.ts";
import { carryOut } from "../items/carry-out.ts";
import { attemptOf, saveCheckpoint, settleItem } from "../items/transitions.ts";
import type { Settled } from "../items/transitions.ts";
import type {
  Delivery,
  HeldClaim,
  NamedAttempt,
  Report,
  SentCheckpoint,
  Session,
  SessionInput,
  SessionPort,
} from "../turn/session-frame.ts";
import { isHeard } from "../turn/state.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import { countUsage } from "../run/publish-snapshot.ts";
import { onStealAnswered } from "../schedule/recall.ts";
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
} as const satisfies Record<EndReport["outcome"]["kind"], ItemEvent["type"]>;

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
    case "released":
      return onReleased(state, turn, row, input.attempts);
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

/** The batch is acknowledged when all of it is decided and on stable storage (C10); `line` is what waits before it. */
function deliver(
  state: CoordinatorState,
  turn: Turn,
  row: WorkerRow,
  line: Delivery[],
  input: Pick<Extract<SessionInput, { kind: "results" }>, "port" | "number" | "reports" | "settled">,
): void {
  const delivery = openDelivery(line, input, input.number);
  // A worker does not hear what a report beside its session was committed as.
  const isHeardOf = row.session?.port === input.port && state.keys.warmth.hears(row.id, input.port);
  const heardBy = isHeardOf ? input.port : undefined;
  const states = new StatesIn(state.ledger.tally.nextCompletion + 1);
  for (const [at, report] of input.reports.entries())
    states.note(
      at,
      report,
      onReport(state, turn, row, heardBy === undefined ? report : heard(report, heardBy), delivery),
    );
  if (isHeardOf) delivery.committed = states.committed;
  if (delivery.undecided === 0) turn.settle(delivery);
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
  said: Report,
  delivery: Delivery,
): Settled {
  const itemKey = itemKeyOf(said.id);
  const item = state.ledger.running.get(itemKey);
  if (!isEnd(said)) return onStateMissing(state, turn, row, item, said);
  const report = admitted(state, turn, item, { ...said, worker: row.id });
  const { outcome } = report;
  if (item === undefined && outcome.kind === "success") {
    const { id, incarnation, attempt, epoch } = report;
    const by = { id, worker: row.id, incarnation, attempt, epoch };
    examine(state, turn, { ...by, end: { ...endOf(report), result: outcome } }, delivery);
    return "ignored";
  }

  const before = item?.row.context;
  const settled =
    item === undefined
      ? "ignored"
      : settleItem(state.ledger, turn, item, eventFor(row.id, report, turn), endOf(report));
  if (settled === "ignored") {
    // Another attempt of it, or none: the first report has been recorded, or the item is somebody else's now.
    state.counters.staleReports++;
    return "ignored";
  }
  row.held.delete(itemKey);
  carryOut(state, turn);
  countUsage(state.usage, row.id, report);
  if (item !== undefined) measure(state, turn, item, report);
  // Whether a candidate fails says nothing of the worker that tries it.
  if (before?.trial === "") judge(state, turn, row, report, before);
  return settled;
}

function heard(report: Report, heardBy: SessionPort): Report {
  const { outcome } = report;
  if (outcome.kind !== "success" || outcome.keyed === undefined) return report;
  return { ...report, outcome: { ...outcome, keyed: { ...outcome.keyed, heardBy } } };
}

/** The states in a batch of results, and which of them were recorded. */
class StatesIn {
  readonly #commit: number;
  readonly #leftOut: number[] = [];
  #isAny = false;

  constructor(commit: number) {
    this.#commit = commit;
  }

  note(at: number, { outcome }: Report, settled: Settled): void {
    if (outcome.kind !== "success" || outcome.keyed === undefined || outcome.keyed.state === "kept") return;
    if (settled === "done") this.#isAny = true;
    else this.#leftOut.push(at);
  }

  get committed(): Delivery["committed"] {
    return this.#isAny ? { commit: this.#commit, leftOut: this.#leftOut } : undefined;
  }
}

function isEnd(report: Report): report is EndReport {
  return report.outcome.kind !== "state_missing";
}

/** It was not begun, and nobody is charged: the next assignment brings the state. */
function onStateMissing(
  state: CoordinatorState,
  turn: Turn,
  row: WorkerRow,
  item: RunningItem | undefined,
  report: Report,
): Settled {
  if (
    item === undefined ||
    !row.held.has(item.itemKey) ||
    !isClaimed(item, { ...report, isFinished: true }, "")
  ) {
    state.counters.staleReports++;
    return "ignored";
  }
  if (isKeyed(item.place)) state.keys.missed(item.place);
  takeBackItem(state, turn, row, item, ENDS.stateMissing);
  return "pending";
}

/** Counts an attempt whose worker says for how long it has executed; its latency only if this leader has given it out. */
function measure(
  { epoch, ledger: { meter } }: CoordinatorState,
  { nowMs }: Turn,
  { assignedAtMs }: RunningItem,
  { epoch: givenIn, outcome, execution }: Report,
): void {
  if (execution === undefined) return;
  const { durationMs } = execution;
  meter.itemDuration[outcome.kind === "success" ? "success" : "other"].observeMs(durationMs);
  if (givenIn === epoch) meter.dispatchLatency.observeMs(Math.max(0, nowMs - assignedAtMs - durationMs));
}

/** Only the attempt that the item is under says what it would go on from (C3). */
function onCheckpoint(turn: Turn, row: WorkerRow, sent: SentCheckpoint): void {
  const item = row.held.get(itemKeyOf(sent.id));
  if (item !== undefined && isClaimed(item, { ...sent, isFinished: false }, row.chart.context.incarnation)) {
    item.hasBegun = true;
    saveCheckpoint(turn, item, sent.checkpoint);
  }
}

/** The answer to a recall names nothing but what was recalled. A release that comes unasked meanwhile answers nothing. */
function onReleased(
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

function eventFor(
  worker: WorkerId,
  { incarnation, attempt, epoch, outcome }: EndReport,
  { steadyMs }: Turn,
): Parameters<typeof settleItem>[3] {
  const key = { worker, incarnation, attempt, epoch };
  const isPermanent = outcome.kind === "error" && outcome.isPermanent === true;
  const type = isPermanent ? EVENT_OF.too_large : EVENT_OF[outcome.kind];
  return type === "item.returned" ? { type, ...key, atMs: Math.floor(steadyMs) } : { type, ...key };
}

const NOTHING: Uint8Array = new Uint8Array();

function endOf(report: EndReport): AttemptEnd {
  const { outcome, execution = UNTOLD, log = NOTHING, checkpoint = NOTHING, measures } = report;
  const message = "message" in outcome ? outcome.message : "";
  const left = outcome.kind === "success" ? outcome.keyed : undefined;
  const told = { message, result: resultOf(outcome), execution, log, checkpoint, left, measures };
  return { class: outcome.kind, ...told };
}

function resultOf(outcome: EndReport["outcome"]): AttemptEnd["result"] {
  switch (outcome.kind) {
    case "success":
      return outcome;
    case "error": {
      const { message, response, sparesKey = false } = outcome;
      return { class: "error", message, sparesKey, ...(response !== undefined && { response }) };
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
