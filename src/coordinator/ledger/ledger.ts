// Items and where they are. Every change of an item goes through its chart, here and nowhere else: `assign`, `settle` and
// what submission adds. What a change writes goes into the turn's batch together with the counts that it changes.
import { charts } from "../../../machines/index.ts";
import type { AttemptKey, ItemContext, ItemEvent } from "../../../machines/work-item.ts";
import { assert } from "../../base/assert.ts";
import type { Epoch, IncarnationId, WorkerId } from "../../base/ids.ts";
import type { BackoffRange } from "../../base/backoff.ts";
import { backoffMs } from "../../base/backoff.ts";
import { compile } from "../../runtime/compile.ts";
import type { Effect as ChartEffect, Row } from "../../runtime/compile.ts";
import { encodeRecord, recordChecksum } from "../../storage/codec.ts";
import {
  DELAYED_PREFIX,
  DONE_PREFIX,
  FAILED_PREFIX,
  ITEM_INDEX_PREFIX,
  ITEMS_PREFIX,
  RETURNED_PREFIX,
  RUNNING_PREFIX,
} from "../../storage/keys.ts";
import type { Turn } from "../turn.ts";
import { itemIdText, itemKeyOf } from "./item-id.ts";
import type { Finding } from "./examine-reports.ts";
import type { Failure, LateReport, Ledger, PendingItem, RunningItem, Success } from "./item.ts";
import {
  delayedRecord,
  doneRecord,
  failedRecord,
  itemIndexRecord,
  itemRecord,
  returnedRecord,
  runningRecord,
} from "./ledger-records.ts";
import type { ItemIndexRecord, ItemRecord, ReturnedRecord } from "./ledger-records.ts";
import { delayedKey, placeOf, placeOfDelayed, priorityOf, sequenceOf } from "./place.ts";
import type { Place } from "./place.ts";
import { Window } from "./window.ts";

export const itemChart = compile(charts["work-item"].machine);
const PENDING = stateIndex("Pending");
export const RUNNING = stateIndex("Running");

/** Waits of an item after outcomes that are charged, with full jitter. */
const RETRY_BACKOFF: BackoffRange = { baseMs: 1_000, ceilingMs: 60_000 };

/** Writes a new item. It is offered to the window of its priority, which loads it in its turn. */
export function addItem(
  ledger: Ledger,
  turn: Turn,
  item: ItemRecord & { readonly priority: number; readonly counts: ItemIndexRecord["counts"] },
): void {
  const sequence = ledger.tally.takeSequence();
  const place = placeOf(item.priority, sequence);
  ledger.tally.openCursor(item.priority, sequence);
  const key = `${ITEMS_PREFIX}${place}`;
  const value = encodeRecord(itemRecord, key, item);
  turn.put({ key, value });
  ledger.tally.added("items", value);
  writeIndex(turn, item.id, { place, counts: item.counts });
  freshWindow(ledger, item.priority).offer(place);
  turn.ledgerTouched = true;
}

export function writeIndex(turn: Turn, id: Uint8Array, index: ItemIndexRecord): void {
  const key = `${ITEM_INDEX_PREFIX}${itemIdText(id)}`;
  turn.put({ key, value: encodeRecord(itemIndexRecord, key, index) });
}

export function freshWindow(ledger: Ledger, priority: number): Window<PendingItem> {
  const known = ledger.fresh.get(priority);
  if (known !== undefined) return known;
  const window = new Window<PendingItem>(placeOf(priority, ledger.tally.cursors.get(priority) ?? 0));
  ledger.fresh.set(priority, window);
  return window;
}

/** The next item in order of (priority, submission); undefined when none is in memory. */
export function nextPending(ledger: Ledger): PendingItem | undefined {
  let best: Window<PendingItem> = ledger.returned;
  for (const window of ledger.fresh.values()) {
    const candidate = window.peek();
    const leader = best.peek();
    if (candidate !== undefined && (leader === undefined || candidate.key < leader.key)) best = window;
  }
  return best.take();
}

/** Pending items that need not wait, in memory or not. */
export function countReady({ tally }: Ledger): number {
  return tally.pending - tally.count("delayed");
}

/** Gives a pending item to a worker: the only way an item starts to run (C3). */
export function assignItem(
  ledger: Ledger,
  turn: Turn,
  item: PendingItem,
  to: {
    readonly worker: WorkerId;
    readonly incarnation: IncarnationId;
    readonly epoch: Epoch;
    readonly number: number;
  },
): RunningItem {
  const itemKey = itemKeyOf(item.id);
  assert(!ledger.running.has(itemKey), "C3: an item that somebody has is given to nobody else");
  const event: ItemEvent = {
    type: "item.assigned",
    worker: to.worker,
    incarnation: to.incarnation,
    epoch: to.epoch,
  };
  const row = itemChart.step(pendingRow(ledger, item), event, []);
  assert(row.state === RUNNING, "an assigned item runs");
  leavePending(ledger, turn, item);
  ledger.examined.delete(itemKey);
  const key = `${RUNNING_PREFIX}${item.key}`;
  const { attempt, charged, lost } = row.context;
  const value = encodeRecord(runningRecord, key, { ...to, id: item.id, attempt, charged, lost });
  turn.put({ key, value });
  ledger.tally.added("running", value);
  turn.ledgerTouched = true;
  const running = {
    place: item.key,
    id: item.id,
    row,
    assignedAtMs: turn.nowMs,
    checksum: recordChecksum(value),
    number: to.number,
  };
  ledger.running.set(itemKey, running);
  return running;
}

export type Settled = "done" | "failed" | "pending" | "ignored";

/**
 * Tells a running item's chart what became of its attempt. `ignored` when the report is of another attempt than the current
 * (C3); then nothing has changed.
 */
export function settleItem(
  ledger: Ledger,
  turn: Turn,
  item: RunningItem,
  event: Exclude<ItemEvent, { type: "item.assigned" | "item.retried" }>,
  what: Success | Failure | null,
): Settled {
  const effects: ChartEffect[] = [];
  const row = itemChart.step(item.row, event, effects);
  if (row === item.row) return "ignored";
  item.row = row;
  leaveRunning(ledger, turn, item);
  for (const { type } of effects) {
    switch (type) {
      case "recordResult":
        recordResult(ledger, turn, item, attemptOf(item), what);
        return "done";
      case "recordFailure":
        recordFailure(ledger, turn, item, what);
        return "failed";
      case "queueAtOldPlace":
        queueReturned(ledger, turn, item.place, budgetsOf(item));
        return "pending";
      case "queueAfterBackoff":
        queueDelayed(ledger, turn, item);
        return "pending";
      default:
        assert(false, `nothing carries out ${type} of an item`);
    }
  }
  assert(false, `a running item goes nowhere by ${event.type}`);
}

/**
 * A success for an attempt that was given up, of an item that is pending again and given to nobody since `found` was read.
 * `ignored` when the item was never under such an attempt.
 */
export function settleLate(
  ledger: Ledger,
  turn: Turn,
  { id, worker, incarnation, attempt, epoch, success }: LateReport,
  found: Extract<Finding, { kind: "pending" }>,
): "done" | "ignored" {
  const { place, budgets, checksum } = found;
  const before = pendingRow(ledger, { returned: { budgets, checksum } });
  const key = { worker, incarnation, attempt, epoch };
  const after = itemChart.step(before, { type: "item.succeededLate", ...key }, []);
  if (after === before) return "ignored";
  turn.delete(`${RETURNED_PREFIX}${place}`);
  ledger.tally.removed("returned", checksum);
  ledger.returned.remove(place);
  recordResult(ledger, turn, { place, id }, { worker, attempt }, success);
  turn.ledgerTouched = true;
  return "done";
}

/** The attempt that a running item is under, as its reports have to name it. */
export function attemptOf({ row }: RunningItem): AttemptKey {
  const { worker, incarnation, attempt, epoch } = row.context;
  return { worker, incarnation, attempt, epoch };
}

function pendingRow({ budgets }: Ledger, { returned }: Pick<PendingItem, "returned">): Row<ItemContext> {
  const initial = itemChart.initial(budgets);
  return returned === null
    ? initial
    : { state: PENDING, context: { ...initial.context, ...returned.budgets } };
}

function leavePending(ledger: Ledger, turn: Turn, item: PendingItem): void {
  if (item.returned === null) {
    ledger.tally.moveCursor(priorityOf(item.key), sequenceOf(item.key) + 1);
    return;
  }
  turn.delete(`${RETURNED_PREFIX}${item.key}`);
  ledger.tally.removed("returned", item.returned.checksum);
}

function leaveRunning(ledger: Ledger, turn: Turn, item: RunningItem): void {
  turn.delete(`${RUNNING_PREFIX}${item.place}`);
  ledger.tally.removed("running", item.checksum);
  ledger.running.delete(itemKeyOf(item.id));
  turn.ledgerTouched = true;
}

function recordResult(
  ledger: Ledger,
  turn: Turn,
  item: Pick<RunningItem, "place" | "id">,
  by: Pick<AttemptKey, "worker" | "attempt">,
  what: Success | Failure | null,
): void {
  assert(what !== null && "output" in what, "a result has an output");
  const key = `${DONE_PREFIX}${item.place}`;
  const value = encodeRecord(doneRecord, key, {
    id: item.id,
    attempt: by.attempt,
    worker: by.worker as WorkerId,
    digest: what.digest,
    output: what.output,
    finishedAtWallMs: turn.wallMs,
  });
  turn.put({ key, value });
  ledger.tally.added("done", value);
  turn.completed.push(item.place);
  turn.requireSync();
}

function recordFailure(ledger: Ledger, turn: Turn, item: RunningItem, what: Success | Failure | null): void {
  assert(what !== null && "class" in what, "a failure has a class");
  const key = `${FAILED_PREFIX}${item.place}`;
  const value = encodeRecord(failedRecord, key, {
    id: item.id,
    attempt: item.row.context.attempt,
    class: what.class,
    message: what.message,
    finishedAtWallMs: turn.wallMs,
  });
  turn.put({ key, value });
  ledger.tally.added("failed", value);
  turn.completed.push(item.place);
  turn.requireSync();
}

function budgetsOf({ row }: RunningItem): ReturnedRecord {
  const { attempt, charged, lost } = row.context;
  return { attempt, charged, lost };
}

function queueReturned(ledger: Ledger, turn: Turn, place: Place, budgets: ReturnedRecord): void {
  const key = `${RETURNED_PREFIX}${place}`;
  const value = encodeRecord(returnedRecord, key, budgets);
  turn.put({ key, value });
  ledger.tally.added("returned", value);
  ledger.returned.offer(place);
  turn.ledgerTouched = true;
}

/** The item waits by the wall clock, so that a restart does not cut its wait short; a clock that jumps moves it by the jump. */
function queueDelayed(ledger: Ledger, turn: Turn, item: RunningItem): void {
  const budgets = budgetsOf(item);
  const waitMs = backoffMs(RETRY_BACKOFF, Math.max(1, budgets.charged), ledger.random);
  const delayed = delayedKey(turn.wallMs + waitMs, item.place);
  const key = `${DELAYED_PREFIX}${delayed}`;
  const value = encodeRecord(delayedRecord, key, budgets);
  turn.put({ key, value });
  ledger.tally.added("delayed", value);
  ledger.delayed.offer(delayed);
  turn.ledgerTouched = true;
}

/** Moves what has waited long enough back to its old place. */
export function wakeDelayed(ledger: Ledger, turn: Turn): void {
  const due = delayedKey(turn.wallMs, "" as Place);
  for (let next = ledger.delayed.peek(); next !== undefined && next.key < due; next = ledger.delayed.peek()) {
    ledger.delayed.take();
    turn.delete(`${DELAYED_PREFIX}${next.key}`);
    ledger.tally.removed("delayed", next.checksum);
    queueReturned(ledger, turn, placeOfDelayed(next.key), next.budgets);
  }
}

function stateIndex(name: string): number {
  const index = itemChart.indexOf(name);
  assert(index !== undefined, `the item's chart has a state ${name}`);
  return index;
}
