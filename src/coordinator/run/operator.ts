// Inputs of operators: they steer the run, retry failed items, and ask how things stand.
import { runsAlone } from "../../../machines/work-item.ts";
import { unreachable } from "../../base/assert.ts";
import type { WorkerId } from "../../base/ids.ts";
import type { Input } from "../turn/input.ts";
import { itemKeyOf } from "../ledger/item-id.ts";
import type { ItemSighting } from "../ledger/ledger.ts";
import { retryFailed } from "../items/transitions.ts";
import { move } from "../workers/registry.ts";
import { cancelHeld } from "../schedule/recall.ts";
import { extentOf, viewOf } from "./run-status.ts";
import type { RetryVerdict } from "../turn/run-view.ts";
import { isCancelled, onCancel, onPause, onResume, onSeal, reopen } from "./run.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import { workerStateOf } from "../turn/state.ts";
import { cordonReasonOf, failuresInRowOf } from "../workers/trust.ts";
import type { Turn } from "../turn/turn.ts";
import type { ListedWorker, WorkerDetail } from "../turn/worker-view.ts";

type Kind =
  | ("seal" | "pause" | "resume" | "cancel" | "getRun")
  | ("retry" | "getExtent" | "seeItem" | "listWorkers" | "getWorker" | "drainWorker");
type Asked<K extends Kind> = Extract<Input, { readonly kind: K }>;

/** Attempts of a worker that are shown at most. */
const HELD_SHOWN_MAX = 1_000;

export function onOperator(state: CoordinatorState, turn: Turn, input: Asked<Kind>): void {
  switch (input.kind) {
    case "seal":
    case "pause":
    case "resume":
    case "cancel":
    case "getRun":
      steer(state, turn, input);
      return turn.answer(input.answer, viewOf(state, turn));
    case "retry":
      return turn.answer(input.answer, retry(state, turn, input));
    case "getExtent":
      return turn.answer(input.answer, extentOf(state, turn));
    case "seeItem":
      return turn.answer(input.answer, seeItem(state, turn, input));
    case "listWorkers":
      return listWorkers(state, turn, input);
    case "getWorker":
      return turn.answer(input.answer, lookAt(state, turn, input));
    case "drainWorker":
      return turn.answer(input.answer, askToDrain(state, turn, input));
    default:
      return unreachable(input, "question of an operator");
  }
}

function steer(
  state: CoordinatorState,
  turn: Turn,
  input: Asked<"seal" | "pause" | "resume" | "cancel" | "getRun">,
): void {
  switch (input.kind) {
    case "seal":
      return onSeal(state, turn);
    case "pause":
      return onPause(state, turn, input.reason);
    case "resume":
      return onResume(state, turn);
    case "cancel":
      onCancel(state, turn);
      if (isCancelled(state)) cancelHeld(state, turn);
      return;
    case "getRun":
  }
}

function retry(state: CoordinatorState, turn: Turn, { failed }: Asked<"retry">): RetryVerdict {
  if (isCancelled(state)) return { kind: "cancelled" };
  for (const item of failed) retryFailed(state.ledger, turn, item);
  if (failed.length > 0) reopen(state, turn);
  turn.requireSync();
  return { kind: "retried", items: failed.length };
}

function seeItem({ ledger, epoch }: CoordinatorState, turn: Turn, { id }: Asked<"seeItem">): ItemSighting {
  const { budgets, tally } = ledger;
  const item = ledger.running.get(itemKeyOf(id));
  const cursors = new Map(tally.cursors);
  if (item === undefined) return { budgets, cursors, running: undefined };
  const { context } = item.row;
  const { worker, attempt, charged, lost } = context;
  const assignedAgeMs = context.epoch === epoch ? turn.nowMs - item.assignedAtMs : undefined;
  const isAlone = runsAlone(context);
  return {
    budgets,
    cursors,
    running: { worker: worker as WorkerId, attempt, charged, lost, isAlone, assignedAgeMs },
  };
}

/** A page of workers in order of id. */
function listWorkers(
  state: CoordinatorState,
  turn: Turn,
  { after, limit, answer }: Asked<"listWorkers">,
): void {
  const ids = [...state.workers.keys()].filter((id) => id > after).sort();
  const page = ids.slice(0, limit).flatMap((id) => state.workers.get(id) ?? []);
  const workers = page.map((row) => listed(state, row, turn.nowMs));
  turn.answer(answer, { workers, more: ids.length > page.length });
}

function listed({ enrolment }: CoordinatorState, row: WorkerRow, nowMs: number): ListedWorker {
  const { id, load, slots, plugins, registeredAtWallMs, lastBeatMs, trouble } = row;
  return {
    id,
    incarnation: row.chart.context.incarnation,
    ...workerStateOf(row),
    load,
    slots,
    plugins,
    registeredAtWallMs,
    lastBeatAgeMs: lastBeatMs === undefined ? undefined : nowMs - lastBeatMs,
    held: row.held.size,
    cordonReason: cordonReasonOf(row),
    trouble,
    isRevoked: enrolment.revoked.has(id),
  };
}

function lookAt(
  state: CoordinatorState,
  turn: Turn,
  { workerId }: Asked<"getWorker">,
): WorkerDetail | undefined {
  const row = state.workers.get(workerId);
  if (row === undefined) return undefined;
  const inOrder = [...row.held.values()].sort((one, other) => one.number - other.number);
  return {
    worker: listed(state, row, turn.nowMs),
    held: inOrder
      .slice(0, HELD_SHOWN_MAX)
      .map((item) => ({ id: item.id, attempt: item.row.context.attempt })),
    credit: row.session?.credit ?? 0,
    hasSession: row.session !== undefined,
    failuresInRow: failuresInRowOf(row),
  };
}

/** On disk before it is answered. One that has left needs no telling; one that is silent is told when it is heard again. */
function askToDrain(state: CoordinatorState, turn: Turn, { workerId }: Asked<"drainWorker">): boolean {
  const row = state.workers.get(workerId);
  if (row === undefined) return false;
  const { incarnation } = row.chart.context;
  move(state, turn, row, { type: "worker.drainAsked", incarnation });
  turn.requireSync();
  return true;
}
