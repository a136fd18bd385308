// Transitions of items. Every change of an item goes through its chart, here and nowhere else: added, assigned, adopted,
// settled, settled late, retried. Its rows go into the turn's batch together with the counts that they change.
//
// The items' room: `transitions` moves an item by its chart, `trials` says which ends cost it nothing, `rows` writes what that
// changes of the ledger and what an attempt leaves, `finals` what stands for good, `carry-out` does what the room of keys asks for,
// `replay-ledger` reads the ledger back.
import { charts } from "../../../machines/index.ts";
import { runsAlone } from "../../../machines/work-item.ts";
import type { AttemptKey, ItemContext, ItemEvent } from "../../../machines/work-item.ts";
import { assert } from "../../base/assert.ts";
import type { Epoch, IncarnationId, WorkerId } from "../../base/ids.ts";
import { compile } from "../../runtime/compile.ts";
import type { Effect as ChartEffect, Row } from "../../runtime/compile.ts";
import { encodeRecord } from "../../storage/codec.ts";
import { FAILED_PREFIX, ITEM_INDEX_PREFIX, ITEMS_PREFIX, RUNNING_PREFIX } from "../../storage/keys.ts";
import type { Claim, NamedAttempt } from "../turn/session-frame.ts";
import type { Turn } from "../turn/turn.ts";
import {
  insidePlaceOf,
  isKeyed,
  itemDigits,
  itemIdText,
  itemKeyOf,
  keyedPlaceOf,
  placeOf,
} from "../ledger/place.ts";
import type { Finding } from "../ledger/lookups.ts";
import type {
  AttemptEnd,
  FailedItem,
  Failure,
  LateReport,
  Ledger,
  PendingItem,
  RunningItem,
} from "../ledger/ledger.ts";
import { checkpointKey } from "../ledger/attempt-records.ts";
import { itemIndexRecord, itemRecord, runningRecord, UNTOLD } from "../ledger/records.ts";
import type { ItemIndexRecord, ItemRecord, ReturnedRecord } from "../ledger/records.ts";
import { recordFailure, recordResult } from "./finals.ts";
import {
  dropRow,
  keepCheckpoint,
  leavePending,
  leaveTrail,
  putRow,
  queueDelayed,
  queueReturned,
  unqueueDelayed,
  unqueueReturned,
} from "./rows.ts";
import { tellTrials, uncharged } from "./trials.ts";
import type { SettlingEvent, Stamp } from "./trials.ts";
import type { Place } from "../ledger/place.ts";
import { admitFresh } from "../ledger/queue.ts";

export const itemChart = compile(charts["work-item"].machine);
const PENDING = stateIndex("Pending");
export const RUNNING = stateIndex("Running");
const FAILED = stateIndex("Failed");

/** Writes a new item, and puts it into the window of its priority, or lets that load it in its turn. */
export function addItem(
  ledger: Ledger,
  turn: Turn,
  item: ItemRecord & { readonly priority: number; readonly counts: ItemIndexRecord["counts"] },
): void {
  const sequence = ledger.tally.takeSequence();
  const hasKey = item.key !== "";
  const placeIn = item.origin !== undefined ? insidePlaceOf : hasKey ? keyedPlaceOf : placeOf;
  const place = placeIn(item.priority, sequence);
  if (!hasKey) {
    admitFresh(ledger, item.priority, place, item);
    ledger.tally.openCursor(item.priority, sequence);
  }
  putRow(ledger, turn, "items", { key: `${ITEMS_PREFIX}${place}`, type: itemRecord, value: item });
  writeIndex(turn, item.id, { place, counts: item.counts });
  if (hasKey) ledger.keys.arrived(place, item);
}

export function writeIndex(turn: Turn, id: Uint8Array, index: ItemIndexRecord): void {
  const key = `${ITEM_INDEX_PREFIX}${itemIdText(id)}`;
  turn.put({ key, value: encodeRecord(itemIndexRecord, key, index) });
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
  } & Stamp,
): RunningItem {
  const itemKey = itemKeyOf(item.id);
  assert(!ledger.running.has(itemKey), "C3: an item that somebody has is given to nobody else");
  const event: ItemEvent = {
    type: "item.assigned",
    worker: to.worker,
    incarnation: to.incarnation,
    epoch: to.epoch,
    trial: to.trial,
  };
  const before = pendingRow(ledger, item);
  const row = itemChart.step(before, event, []);
  assert(row.state === RUNNING, "an assigned item runs");
  show(ledger, turn, item.id, event, { before, after: row });
  leavePending(ledger, turn, item);
  ledger.meter.attemptsStarted++;
  const { number, version } = to;
  return run(ledger, turn, { place: item.key, id: item.id, itemKey, row, number, version });
}

/**
 * An item that is pending, and that its worker has all the same under an attempt that the ledger has not heard of: it runs on
 * there. Undefined when the ledger has heard of the attempt, which then was given up. The caller takes it from what is pending.
 */
export function adoptItem(
  ledger: Ledger,
  turn: Turn,
  { place, budgets }: { readonly place: Place; readonly budgets: ReturnedRecord | null },
  { id, number, worker, incarnation, attempt, epoch }: Claim,
  { version, trial }: Stamp,
): RunningItem | undefined {
  const itemKey = itemKeyOf(id);
  assert(!ledger.running.has(itemKey), "C3: an item that somebody has is nobody else's");
  const before = pendingRow(ledger, { returned: budgets && { budgets } });
  const event: ItemEvent = { type: "item.adopted", worker, incarnation, attempt, epoch, trial };
  const row = itemChart.step(before, event, []);
  return row === before ? undefined : run(ledger, turn, { place, id, itemKey, row, number, version });
}

function run(
  ledger: Ledger,
  turn: Turn,
  given: Pick<RunningItem, "place" | "id" | "itemKey" | "row" | "number" | "version">,
): RunningItem {
  const { place, id, itemKey, row, number, version } = given;
  ledger.lookups.touch(itemKey);
  const key = `${RUNNING_PREFIX}${place}`;
  const { worker, incarnation, epoch, trial } = row.context;
  const holder = { worker: worker as WorkerId, incarnation: incarnation as IncarnationId, epoch, number };
  const value = { id, ...holder, ...budgetsOf(row), version, trial };
  const checksum = putRow(ledger, turn, "running", { key, type: runningRecord, value });
  const mayHaveCheckpoint = row.context.attempt > 1;
  const known = { ...given, assignedAtMs: turn.nowMs, checksum, mayHaveCheckpoint };
  const fresh = { recalledAtMs: undefined, hasBegun: false, ticket: 0 };
  const running: RunningItem = { ...known, receivedFromMs: turn.nowMs, ...fresh };
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
  told: SettlingEvent,
  end: AttemptEnd,
): Settled {
  const effects: ChartEffect[] = [];
  const event = uncharged(item, told);
  const left = { content: end.checkpoint, version: item.version };
  const row = itemChart.step(item.row, event, effects);
  if (row === item.row) return "ignored";
  show(ledger, turn, item.id, event, { before: item.row, after: row });
  item.row = row;
  ledger.meter.attemptsEnded[end.class]++;
  if (item.ticket !== 0 || row.context.trial !== "") tellTrials(ledger, item, told, end);
  leaveRunning(ledger, turn, item);
  leaveTrail(turn, item.place, item.row.context, end);
  for (const { type } of effects) {
    switch (type) {
      case "recordResult":
        recordResult(ledger, turn, item, attemptOf(item), end);
        if (item.mayHaveCheckpoint) turn.delete(checkpointKey(item.place));
        return "done";
      case "recordFailure":
        recordFailure(ledger, turn, item, end);
        // An operator's retry goes on from what it has cost.
        keepCheckpoint(turn, item.place, left);
        return "failed";
      case "queueAtOldPlace":
        keepCheckpoint(turn, item.place, left);
        if (isKeyed(item.place)) ledger.keys.returned(item.place);
        queueReturned(ledger, turn, item.place, budgetsOf(item.row));
        return "pending";
      case "queueAfterBackoff":
        keepCheckpoint(turn, item.place, left);
        if (isKeyed(item.place)) ledger.keys.delayed(item.place);
        queueDelayed(ledger, turn, item.place, budgetsOf(item.row));
        if (end.result !== null && "class" in end.result)
          ledger.failureMessages.erred({ ...end.result, id: item.id });
        return "pending";
      case "queueAfterTrial":
        if (item.mayHaveCheckpoint) turn.delete(checkpointKey(item.place));
        if (isKeyed(item.place)) ledger.keys.returned(item.place);
        queueReturned(ledger, turn, item.place, budgetsOf(item.row));
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
  { id, worker, incarnation, attempt, epoch, end }: LateReport,
  found: Extract<Finding, { kind: "returned" | "delayed" }>,
): "done" | "ignored" {
  const { place, budgets } = found;
  const before = pendingRow(ledger, { returned: { budgets } });
  const key = { worker, incarnation, attempt, epoch };
  const after = itemChart.step(before, { type: "item.succeededLate", ...key }, []);
  if (after === before) return "ignored";
  show(ledger, turn, id, { type: "item.succeededLate" }, { before, after });
  unqueue(ledger, turn, itemKeyOf(id), found);
  recordResult(ledger, turn, { place, id }, { worker, attempt }, end);
  leaveTrail(turn, place, { worker, attempt }, end);
  turn.delete(checkpointKey(place));
  return "done";
}

/**
 * A failed item, which an operator lets be tried again: the only way in which a final item changes (C9). It goes to its old place
 * with new budgets, and its attempts go on counting. `failed` is as it stands in the store. A release that is under way leaves it alone,
 * as it does all items that something was charged for: it may have been judged before it failed.
 */
export function retryFailed(ledger: Ledger, turn: Turn, failed: FailedItem): void {
  const { context } = itemChart.initial(ledger.budgets);
  const { attempt, isApart } = failed;
  const before = { state: FAILED, context: { ...context, attempt, isApart, tried: ledger.trials.underWay } };
  const asked: ChartEffect[] = [];
  const after = itemChart.step(before, { type: "item.retried" }, asked);
  assert(after !== before && asked.length === 1, "a failed item that is retried is queued");
  ledger.lookups.touch(itemKeyOf(failed.id));
  dropRow(ledger, turn, "failed", { key: `${FAILED_PREFIX}${failed.place}`, checksum: failed.checksum });
  ledger.tally.isRetried(failed.class);
  ledger.failureMessages.retried(failed);
  if (isKeyed(failed.place)) ledger.keys.takenBack(failed.place, failed.key ?? "", failed.class);
  queueReturned(ledger, turn, failed.place, budgetsOf(after));
}

/** A step of an item, for those who look at some of them. */
function show(
  { sampled }: Ledger,
  turn: Turn,
  id: Uint8Array,
  { type: event }: Pick<ItemEvent, "type">,
  { before, after }: Readonly<Record<"before" | "after", Row<ItemContext>>>,
): void {
  if (sampled.size === 0 || !sampled.has(itemKeyOf(id))) return;
  const [from, to] = [itemChart.nameOf(before), itemChart.nameOf(after)];
  turn.effects.push({
    kind: "transition",
    chart: "work-item",
    address: `item/${itemDigits(id)}`,
    event,
    from,
    to,
  });
}

/** The checkpoint of a running item, sent while it runs. Nothing else of it changes, and it need not be synced. */
export function saveCheckpoint(turn: Turn, item: RunningItem, checkpoint: Uint8Array): void {
  keepCheckpoint(turn, item.place, { content: checkpoint, version: item.version });
  item.mayHaveCheckpoint = true;
}

/** The attempt that a running item is under, as its reports have to name it. */
export function attemptOf({ row }: RunningItem): AttemptKey {
  const { worker, incarnation, attempt, epoch } = row.context;
  return { worker, incarnation, attempt, epoch };
}

/** The same, as frames name it. */
export function named({ id, row }: RunningItem): NamedAttempt {
  return { id, attempt: row.context.attempt };
}

/** A pending item that was given out before is not to be given out any more, wherever it stands in memory. */
export function unqueue(
  ledger: Ledger,
  turn: Turn,
  itemKey: string,
  found: Extract<Finding, { kind: "returned" | "delayed" }>,
): void {
  ledger.lookups.touch(itemKey);
  if (found.kind === "delayed") {
    unqueueDelayed(ledger, turn, found.delayed, found.checksum);
    ledger.delayed.remove(found.delayed);
    return;
  }
  unqueueReturned(ledger, turn, found.place, found);
  const isAlone = runsAlone(found.budgets);
  (isAlone ? ledger.returnedAlone : ledger.returned).remove(found.place);
  (isAlone ? ledger.alone : ledger.shelf).remove(found.place);
}

function pendingRow(
  { budgets }: Ledger,
  { returned }: { readonly returned: { readonly budgets: ReturnedRecord } | null },
): Row<ItemContext> {
  const initial = itemChart.initial(budgets);
  return returned === null
    ? initial
    : { state: PENDING, context: { ...initial.context, ...returned.budgets } };
}

function leaveRunning(ledger: Ledger, turn: Turn, item: RunningItem): void {
  dropRow(ledger, turn, "running", { key: `${RUNNING_PREFIX}${item.place}`, checksum: item.checksum });
  ledger.running.delete(item.itemKey);
}

/**
 * A pending item is final, because nobody wants it any more or its actor takes no more. It is the head of its key, and nobody has it:
 * what is in memory of it is what its rows say.
 */
export function endPending(
  ledger: Ledger,
  turn: Turn,
  item: PendingItem,
  failure: Pick<Failure, "class" | "message">,
): void {
  const { key: place, id, returned } = item;
  const before = pendingRow(ledger, item);
  const row = itemChart.step(before, { type: "item.cancelled" }, []);
  assert(row.state === FAILED, "a pending item that is cancelled has failed");
  show(ledger, turn, id, { type: "item.cancelled" }, { before, after: row });
  ledger.lookups.touch(itemKeyOf(id));
  if (returned !== null) unqueueReturned(ledger, turn, place, returned);
  const result = { ...failure, sparesKey: true };
  recordFailure(ledger, turn, { place, id, row }, { result, execution: UNTOLD });
}

/** The part of an item's context that its row has. */
function budgetsOf({ context }: Pick<Row<ItemContext>, "context">): ReturnedRecord {
  const { attempt, charged, lost, failedBy, blamed, isApart, returnedAtMs, tried } = context;
  return { attempt, charged, lost, failedBy, blamed, isApart, returnedAtMs, tried };
}

function stateIndex(name: string): number {
  const index = itemChart.indexOf(name);
  assert(index !== undefined, `the item's chart has a state ${name}`);
  return index;
}
