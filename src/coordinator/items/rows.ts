// The only way in which a row of the ledger's segments comes or goes: the row itself, the count of its segment, and what the scrub
// knows of it, together. Then the rows of pending items: returned, given out again at once, and delayed, which wait first. An item's
// chart decides where it goes before it comes here.
import type { BackoffRange } from "../../base/random.ts";
import { backoffMs } from "../../base/random.ts";
import { encodeRecord, recordChecksum } from "../../storage/codec.ts";
import type { RecordType } from "../../storage/codec.ts";
import {
  DELAYED_PREFIX,
  DUE_PREFIX,
  RETURNED_ALONE_PREFIX,
  RETURNED_KEYED_PREFIX,
  RETURNED_PREFIX,
} from "../../storage/keys.ts";
import { runsAlone } from "../../../machines/work-item.ts";
import type { AttemptKey } from "../../../machines/work-item.ts";
import type { WorkerId } from "../../base/ids.ts";
import type { Turn } from "../turn/turn.ts";
import {
  attemptLogRecord,
  attemptRecord,
  attemptsOf,
  checkpointKey,
  checkpointRecord,
  logsOf,
  slotOf,
} from "../ledger/attempt-records.ts";
import type { LeftCheckpoint } from "../ledger/attempt-records.ts";
import type { AttemptEnd, DelayedItem, Ledger, PendingItem } from "../ledger/ledger.ts";
import type { Place } from "../ledger/place.ts";
import { delayedRecord, dueRecord, returnedRecord } from "../ledger/records.ts";
import type { ReturnedRecord } from "../ledger/records.ts";
import { delayedKey, isKeyed, placeOfDelayed, priorityOf, sequenceOf } from "../ledger/place.ts";
import type { SegmentName } from "../ledger/tally.ts";

/** Waits of an item after outcomes that are charged, with full jitter. */
const RETRY_BACKOFF: BackoffRange = { baseMs: 1_000, ceilingMs: 60_000 };
/** No item waits for longer. */
export const DELAY_MAX_MS = RETRY_BACKOFF.ceilingMs;

/** A new row; returns its checksum, which `dropRow` wants back. */
export function putRow<T>(
  { tally, scrub }: Pick<Ledger, "tally" | "scrub">,
  turn: Turn,
  segment: SegmentName,
  { key, type, value }: { readonly key: string; readonly type: RecordType<T>; readonly value: T },
): number {
  const bytes = encodeRecord(type, key, value);
  turn.put({ key, value: bytes });
  tally.added(segment, bytes);
  const checksum = recordChecksum(bytes);
  scrub.came(segment, key, checksum);
  turn.ledgerTouched = true;
  return checksum;
}

/** A row leaves its segment; `checksum` is its own. */
export function dropRow(
  { tally, scrub }: Pick<Ledger, "tally" | "scrub">,
  turn: Turn,
  segment: SegmentName,
  { key, checksum }: { readonly key: string; readonly checksum: number },
): void {
  turn.delete(key);
  tally.removed(segment, checksum);
  scrub.went(segment, key, checksum);
  turn.ledgerTouched = true;
}

/** A pending item is given out: by dispatch, which goes by the order of its priority. */
export function leavePending(ledger: Ledger, turn: Turn, item: PendingItem): void {
  if (isKeyed(item.key)) ledger.keys.assigned(item.key);
  if (item.returned !== null) unqueueReturned(ledger, turn, item.key, item.returned);
  else if (!isKeyed(item.key)) ledger.tally.moveCursor(priorityOf(item.key), sequenceOf(item.key) + 1);
}

/** The item is not to be given out any more; where else its entry is in memory is the caller's to know. */
export function unqueueReturned(
  ledger: Ledger,
  turn: Turn,
  place: Place,
  { budgets, checksum }: { readonly budgets: ReturnedRecord; readonly checksum: number },
): void {
  dropRow(ledger, turn, "returned", { key: returnedKey(place, budgets), checksum });
}

export function queueReturned(ledger: Ledger, turn: Turn, place: Place, budgets: ReturnedRecord): void {
  const key = returnedKey(place, budgets);
  putRow(ledger, turn, "returned", { key, type: returnedRecord, value: budgets });
  // The room of keys has its own ways to give one out.
  if (!isKeyed(place)) (runsAlone(budgets) ? ledger.returnedAlone : ledger.returned).offer(place);
}

function returnedKey(place: Place, budgets: ReturnedRecord): string {
  if (isKeyed(place)) return `${RETURNED_KEYED_PREFIX}${place}`;
  return `${runsAlone(budgets) ? RETURNED_ALONE_PREFIX : RETURNED_PREFIX}${place}`;
}

/** When it is due is stored as wall time, so that a restart does not cut its wait short. */
export function queueDelayed(ledger: Ledger, turn: Turn, place: Place, budgets: ReturnedRecord): void {
  const waitMs = backoffMs(RETRY_BACKOFF, Math.max(1, budgets.charged), ledger.random);
  const delayed = delayedKey(turn.steadyMs + waitMs, place);
  const key = `${DELAYED_PREFIX}${delayed}`;
  putRow(ledger, turn, "delayed", { key, type: delayedRecord, value: budgets });
  const dueKey = `${DUE_PREFIX}${place}`;
  turn.put({ key: dueKey, value: encodeRecord(dueRecord, dueKey, delayed) });
  ledger.delayed.offer(delayed);
}

/** The item does not wait any more; where else its entry is in memory is the caller's to know. */
export function unqueueDelayed(ledger: Ledger, turn: Turn, delayed: string, checksum: number): void {
  dropRow(ledger, turn, "delayed", { key: `${DELAYED_PREFIX}${delayed}`, checksum });
  turn.delete(`${DUE_PREFIX}${placeOfDelayed(delayed)}`);
}

/** Moves what has waited long enough back to its old place. */
export function wakeDelayed(ledger: Ledger, turn: Turn): void {
  const due = delayedKey(turn.steadyMs, "" as Place);
  for (let next = ledger.delayed.peek(); next !== undefined && next.key < due; next = ledger.delayed.peek()) {
    ledger.delayed.take();
    wake(ledger, turn, next);
  }
}

/** The same of one of them alone, before its time; one that is not in memory goes on waiting. */
export function wakeEarly(ledger: Ledger, turn: Turn, place: Place): void {
  const waiting = ledger.delayed.find((key) => placeOfDelayed(key) === place);
  if (waiting === undefined) return;
  ledger.delayed.remove(waiting.key);
  wake(ledger, turn, waiting);
}

function wake(ledger: Ledger, turn: Turn, { key, checksum, budgets }: DelayedItem): void {
  unqueueDelayed(ledger, turn, key, checksum);
  const place = placeOfDelayed(key);
  if (isKeyed(place)) ledger.keys.due(place);
  queueReturned(ledger, turn, place, budgets);
  ledger.lookups.touchPlace(place);
}

/**
 * The trail of an attempt that ends: how it ended, unless it succeeded, and its log if it left one. An item that succeeds at once
 * leaves nothing, so the usual case writes one row and no more.
 */
export function leaveTrail(
  turn: Turn,
  place: Place,
  { attempt, worker }: Pick<AttemptKey, "attempt" | "worker">,
  { class: as, message, execution, log }: AttemptEnd,
): void {
  if (log.length > 0) {
    const key = `${logsOf(place)}${slotOf(attempt)}`;
    turn.put({ key, value: encodeRecord(attemptLogRecord, key, { attempt, log }) });
  }
  if (as === "success") return;
  const key = `${attemptsOf(place)}${slotOf(attempt)}`;
  const ended = { endedAtWallMs: turn.wallMs, logBytes: log.length };
  const record = { attempt, worker: worker as WorkerId, class: as, message, ...execution, ...ended };
  turn.put({ key, value: encodeRecord(attemptRecord, key, record) });
}

/** The next attempt of that version gets it. An empty one leaves what is there. */
export function keepCheckpoint(turn: Turn, place: Place, checkpoint: LeftCheckpoint): void {
  if (checkpoint.content.length === 0) return;
  const key = checkpointKey(place);
  turn.put({ key, value: encodeRecord(checkpointRecord, key, checkpoint) });
}
