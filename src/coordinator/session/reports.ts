// Reports of attempts, settled: the current attempt of an item is recorded as it has ended, any other is counted and changes nothing. A
// result of an item with a key is looked at first; a success that comes for an item which nobody has is left to `delivery`.
import type { ItemEvent } from "../../../machines/work-item.ts";
import type { WorkerId } from "../../base/ids.ts";
import { carryOut } from "../items/carry-out.ts";
import { attemptOf, settleItem } from "../items/transitions.ts";
import type { Settled } from "../items/transitions.ts";
import type { AttemptEnd, RunningItem } from "../ledger/ledger.ts";
import { isKeyed, itemDigits, itemKeyOf } from "../ledger/place.ts";
import { UNTOLD } from "../ledger/records.ts";
import { countUsage } from "../run/publish-snapshot.ts";
import type {
  Delivery,
  HeldClaim,
  Report,
  ReportedOutcome,
  SessionInput,
  SessionPort,
} from "../turn/session-frame.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";
import { ENDS, takeBackItem } from "../workers/take-back.ts";
import { judge } from "../workers/trust.ts";
import { acknowledge, examine, openDelivery } from "./delivery.ts";

/** The end of an attempt that began. */
type EndOutcome = Exclude<ReportedOutcome, { readonly kind: "state_missing" }>;
type EndReport = Report & { readonly outcome: EndOutcome };

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

/** The batch is acknowledged when all of it is decided and on stable storage (C10); `line` is what waits before it. */
export function deliver(
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

/**
 * The report as it is recorded. A success of an item with a key whose state or whose asks cannot be committed is an error of its attempt:
 * nothing of what is refused is recorded, and another attempt begins with the right state. One that no worker of ours would have reported
 * leaves a line for the audit, and costs its own item and nothing else. `item`: the one that the worker has.
 */
function admitted(
  { ledger }: Pick<CoordinatorState, "ledger">,
  turn: Turn,
  item: RunningItem | undefined,
  { worker, ...report }: EndReport & { readonly worker: WorkerId },
): EndReport {
  const { outcome } = report;
  if (item === undefined) return report;
  if (outcome.kind === "too_large" && outcome.isBreach === true) audit(turn, worker, item, outcome.message);
  if (outcome.kind !== "success" || !isKeyed(item.place)) return report;
  const fault = ledger.keys.admits(item.place, outcome.keyed);
  if (fault === undefined) return report;
  const { reason: message, isBreach } = fault;
  if (isBreach) audit(turn, worker, item, message);
  return { ...report, outcome: { kind: "error", message } };
}

/** As the transport tells of what it refuses. An attempt leaves one at most, and is charged. */
function audit(turn: Turn, worker: WorkerId, { id }: RunningItem, detail: string): void {
  const who = { role: "worker", id: worker, item: itemDigits(id) };
  turn.warn("refused", { audit: true, reason: "result_not_its_own", ...who, detail });
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
export function isClaimed(item: RunningItem, claim: HeldClaim, incarnation: string): boolean {
  const current = attemptOf(item);
  return (
    current.attempt === claim.attempt &&
    current.epoch === claim.epoch &&
    (current.incarnation === incarnation || claim.isFinished)
  );
}
