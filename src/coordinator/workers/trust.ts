// Workers that fail what others do: each outcome that speaks for or against a worker is told to its chart, and a cordon is said
// aloud. Counted are items that nobody had failed before, so an item that fails wherever it goes cordons nobody; and when
// another worker fails what this one has failed, it is taken off again, so that a row of bad lines in the input cordons
// nobody for long.
import type { ItemContext } from "../../../machines/work-item.ts";
import type { TrustEvent } from "../../../machines/worker-trust.ts";
import type { WorkerId } from "../../base/ids.ts";
import type { Effect as ChartEffect } from "../../runtime/compile.ts";
import type { Report } from "../turn/session-frame.ts";
import { isTrusted, trustChart } from "../turn/state.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";
import { storeWorker } from "./worker-record.ts";

/** While others work, a cordoned worker is given one item so often: a cordon that nobody looks at would never end. */
const TRY_EVERY_MS = 180_000;
/** The same when there is nobody else. */
const TRY_ALONE_EVERY_MS = 10_000;

/** Judges a worker by a report of its current attempt. `before`: what was known of the item until then. */
export function judge(
  state: CoordinatorState,
  turn: Turn,
  row: WorkerRow,
  { incarnation, outcome }: Report,
  before: Pick<ItemContext, "failedBy" | "blamed">,
): void {
  switch (outcome.kind) {
    case "success":
      noteSuccess(state, row, turn.nowMs);
      return moveTrust(state, turn, row, { type: "item.succeeded", incarnation });
    case "error":
      // An item that fails wherever it goes says nothing of the workers.
      if (outcome.isPermanent === true) return;
      return judgeFailure(state, turn, row, incarnation, before);
    case "timeout":
    case "crash":
      return judgeFailure(state, turn, row, incarnation, before);
    default:
      return;
  }
}

function judgeFailure(
  state: CoordinatorState,
  turn: Turn,
  row: WorkerRow,
  incarnation: string,
  { failedBy, blamed }: Pick<ItemContext, "failedBy" | "blamed">,
): void {
  if (failedBy === "") {
    const times = { atMs: turn.nowMs, othersSucceededAtMs: othersSucceededAtMs(state, row) };
    return moveTrust(state, turn, row, { type: "item.failed", incarnation, ...times });
  }
  const first = blamed === row.id ? undefined : state.workers.get(blamed as WorkerId);
  if (first !== undefined) moveTrust(state, turn, first, { type: "item.failedElsewhere" });
}

/** Gives the chart an event. The row is written when its state moves: failures that cordon nobody are forgotten at a restart. */
export function moveTrust(state: CoordinatorState, turn: Turn, row: WorkerRow, event: TrustEvent): void {
  const asked: ChartEffect[] = [];
  const before = row.trust;
  row.trust = trustChart.step(before, event, asked);
  if (row.trust.state === before.state) {
    // The store holds of a cordon how many failures it is for.
    const isSame = failuresInRowOf(row) === before.context.failuresInRow;
    if (!isSame && !isTrusted(row)) storeWorker(state, turn, row);
    return;
  }
  const [from, to] = [trustChart.nameOf(before), trustChart.nameOf(row.trust)];
  const address = `worker/${row.id}`;
  turn.stepped({ chart: "worker-trust", address, event: event.type, from, to });
  storeWorker(state, turn, row);
  for (const { type } of asked) announce(turn, row, type);
}

/** Whether a cordoned worker is due to be given one item, to see whether it succeeds. */
export function isDueToTry({ trust, held }: WorkerRow, nowMs: number, isAnybodyElse: boolean): boolean {
  const everyMs = isAnybodyElse ? TRY_EVERY_MS : TRY_ALONE_EVERY_MS;
  return held.size === 0 && nowMs - trust.context.triedAtMs >= everyMs;
}

/** Why the worker is given nothing although it asks; empty when it is trusted. */
export function cordonReasonOf(row: WorkerRow): string {
  if (isTrusted(row)) return "";
  const minutes = TRY_EVERY_MS / 60_000;
  return (
    `it failed ${failuresInRowOf(row)} items in a row while others succeeded; ` +
    `every ${minutes} minutes it is given one item, and a success makes it good`
  );
}

export function failuresInRowOf({ trust }: WorkerRow): number {
  return trust.context.failuresInRow;
}

function announce(turn: Turn, row: WorkerRow, effect: string): void {
  const { incarnation, failuresInRow: failures } = row.trust.context;
  const who = { worker_id: row.id, incarnation };
  if (effect === "announceTrusted") return turn.emit("worker_uncordoned", who);
  turn.emit("worker_cordoned", { ...who, failures });
  turn.warn("worker cordoned: it fails what others do", { ...who, failures });
}

function noteSuccess({ successes }: CoordinatorState, { id }: WorkerRow, atMs: number): void {
  if (successes.latest.by !== id) successes.ofAnother = successes.latest;
  successes.latest = { by: id, atMs };
}

function othersSucceededAtMs(
  { successes: { latest, ofAnother } }: CoordinatorState,
  { id }: WorkerRow,
): number {
  return latest.by === id ? ofAnother.atMs : latest.atMs;
}
