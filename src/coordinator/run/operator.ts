// Inputs of operators: they steer the run, retry failed items, and ask how things stand.
import { runsAlone } from "../../../machines/work-item.ts";
import { unreachable } from "../../base/assert.ts";
import type { WorkerId } from "../../base/ids.ts";
import { WorkerLiveness, WorkerState } from "../../gen/rollout/v1/common_pb.ts";
import type { AtWork, GetWorkerResponse, WorkerInfo } from "../../gen/rollout/v1/run_pb.ts";
import type { Input } from "../turn/input.ts";
import { itemDigits, itemKeyOf } from "../ledger/place.ts";
import type { ItemSighting } from "../ledger/ledger.ts";
import { retryFailed } from "../items/transitions.ts";
import { move } from "../workers/registry.ts";
import { cancelHeld } from "../schedule/recall.ts";
import { onKeyOperator, seenAmong } from "./key-operator.ts";
import type { KeyQuestion } from "./key-operator.ts";
import { fleetsOf } from "./fleets.ts";
import { releaseOf } from "./releases.ts";
import { extentOf, runOf } from "./run-status.ts";
import type { LedgerExtent, RetryVerdict } from "../turn/run-terms.ts";
import { releasePartOf } from "./release-part.ts";
import { unfitReasonOf } from "./unfit.ts";
import { isCancelled, meaningOf, onCancel, onPause, onResume, onSeal, reopen } from "./run.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import { isHeard, workerStateOf } from "../turn/state.ts";
import { cordonReasonOf, failuresInRowOf } from "../workers/trust.ts";
import type { Turn } from "../turn/turn.ts";
import { constantOf } from "../turn/operator-message.ts";
import type { Filled } from "../turn/operator-message.ts";

type Kind =
  | ("seal" | "pause" | "resume" | "cancel" | "getRun")
  | KeyQuestion
  | ("retry" | "getExtent" | "seeItem" | "sampleItems" | "listWorkers" | "getWorker" | "drainWorker");
type Asked<K extends Kind> = Extract<Input, { readonly kind: K }>;

/** Attempts of a worker that are shown at most. */
const HELD_SHOWN_MAX = 1_000;

export function onOperator(state: CoordinatorState, turn: Turn, input: Asked<Kind>): void {
  switch (input.kind) {
    case "seal":
    case "pause":
    case "resume":
    case "cancel":
      steer(state, turn, input);
      return turn.answer(input.answer, meaningOf(state).phase);
    case "getRun":
      return turn.answer(input.answer, runOf(state, turn, othersOf(state, turn)));
    case "retry":
      return turn.answer(input.answer, retry(state, turn, input));
    case "getExtent":
      return turn.answer(input.answer, extentIn(state, turn));
    case "seeItem":
      return turn.answer(input.answer, seeItem(state, turn, input));
    case "sampleItems":
      return turn.answer(input.answer, sampleItems(state, turn, input));
    case "listWorkers":
      return listWorkers(state, turn, input);
    case "getWorker":
      return turn.answer(input.answer, lookAt(state, turn, input));
    case "drainWorker":
      return turn.answer(input.answer, askToDrain(state, turn, input));
    case "steerKeys":
    case "getKey":
    case "listKeys":
    case "getAssignment":
    case "listPartitions":
    case "tellKeys":
    case "takeKeys":
      return onKeyOperator(state, turn, input);
    default:
      return unreachable(input, "question of an operator");
  }
}

/** Confirmed by the store also where nothing changes: what was decided before may be lost. */
function steer(
  state: CoordinatorState,
  turn: Turn,
  input: Asked<"seal" | "pause" | "resume" | "cancel">,
): void {
  turn.requireSync();
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
  }
}

/** Items that become final in this turn stand in a record that is written with it. */
function extentIn(state: CoordinatorState, turn: Turn): LedgerExtent {
  const extent = extentOf(state);
  return { ...extent, nextCompletion: extent.nextCompletion + (turn.completed.length > 0 ? 1 : 0) };
}

function othersOf(state: CoordinatorState, turn: Turn): Parameters<typeof runOf>[2] {
  const release = releaseOf(state, turn);
  return { ...(release && { release }), fleets: fleetsOf(state, turn) };
}

function retry(state: CoordinatorState, turn: Turn, { failed }: Asked<"retry">): RetryVerdict {
  turn.requireSync();
  if (isCancelled(state)) return { kind: "cancelled" };
  for (const item of failed) retryFailed(state.ledger, turn, item);
  if (failed.length > 0) reopen(state, turn);
  return { kind: "retried", items: failed.length };
}

function seeItem(
  { ledger, epoch, keys }: CoordinatorState,
  turn: Turn,
  { id, key: text }: Asked<"seeItem">,
): ItemSighting {
  const { budgets, tally } = ledger;
  const item = ledger.running.get(itemKeyOf(id));
  const cursors = new Map(tally.cursors);
  const key = text === "" ? undefined : keys.table.get(text);
  const keyed = key && seenAmong(key);
  if (item === undefined) return { budgets, cursors, running: undefined, keyed };
  const { context } = item.row;
  const { worker, attempt, charged, lost } = context;
  const assignedAgeMs = context.epoch === epoch ? turn.nowMs - item.assignedAtMs : undefined;
  const isAlone = runsAlone(context);
  return {
    budgets,
    cursors,
    keyed,
    running: { worker: worker as WorkerId, attempt, charged, lost, isAlone, assignedAgeMs },
  };
}

function sampleItems(
  { ledger: { running, sampled } }: CoordinatorState,
  turn: Turn,
  { items }: Asked<"sampleItems">,
): Filled<AtWork> {
  for (const key of sampled) if (!running.has(key) || items === 0) sampled.delete(key);
  for (const key of running.keys()) {
    if (sampled.size >= items) break;
    sampled.add(key);
  }
  return {
    items: [...sampled].flatMap((key) => {
      const item = running.get(key);
      if (item === undefined) return [];
      const { worker, attempt } = item.row.context;
      const assignedAtMs = Math.round(turn.wallMs - (turn.nowMs - item.assignedAtMs));
      return [{ item: itemDigits(item.id), worker, attempt, assignedAtMs }];
    }),
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

function listed(state: CoordinatorState, row: WorkerRow, nowMs: number): Filled<WorkerInfo> {
  const { id, load, slots, plugins, registeredAtWallMs, lastBeatMs, drain } = row;
  const trouble = [row.trouble, troubleWithKeys(state, row)].filter((words) => words !== "").join("; ");
  const { lifecycle, liveness } = workerStateOf(row);
  const cordonReason = cordonReasonOf(row);
  const unfitReason = unfitReasonOf(state, row);
  return {
    workerId: id,
    incarnation: row.chart.context.incarnation,
    state: WorkerState[constantOf(lifecycle)],
    liveness: WorkerLiveness[constantOf(liveness)],
    ...{ load, slots, held: row.held.size },
    plugins: plugins.map(({ name, version, stateVersion = 0 }) => ({ name, version, stateVersion })),
    registeredAtMs: Math.round(registeredAtWallMs),
    ...(lastBeatMs !== undefined && { lastBeatAgeMs: Math.max(0, Math.round(nowMs - lastBeatMs)) }),
    ...(cordonReason !== "" && { cordonReason }),
    ...(trouble !== "" && { trouble }),
    revoked: state.enrolment.revoked.has(id),
    ...(drain && {
      drain: {
        state: drain.state,
        cause: drain.cause,
        leftMs: Math.max(0, Math.round(drain.endsAtMs - nowMs)),
      },
    }),
    ...(unfitReason !== "" && { unfitReason }),
  };
}

/** A worker of an earlier version would run an item without its key's state. Empty when nothing is wrong. */
function troubleWithKeys({ keys }: CoordinatorState, row: WorkerRow): string {
  const isAsked = keys.isInUse && isHeard(row) && row.lastBeatMs !== undefined;
  return isAsked && !row.takesKeys ? "its version takes no items of keys, so it gets only those without" : "";
}

function lookAt(
  state: CoordinatorState,
  turn: Turn,
  { workerId }: Asked<"getWorker">,
): Filled<GetWorkerResponse> | undefined {
  const row = state.workers.get(workerId);
  if (row === undefined) return undefined;
  const releasePart = releasePartOf(state, row);
  const inOrder = [...row.held.values()].sort((one, other) => one.number - other.number);
  return {
    info: listed(state, row, turn.nowMs),
    holds: inOrder
      .slice(0, HELD_SHOWN_MAX)
      .map((item) => ({ item: itemDigits(item.id), attempt: item.row.context.attempt })),
    credit: row.session?.credit ?? 0,
    hasSession: row.session !== undefined,
    failuresInRow: failuresInRowOf(row),
    ...(releasePart !== "" && { releasePart }),
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
