// The trail of an attempt, written in the turn that ends it. An item that succeeds at once leaves nothing here, so the usual
// case writes one row and no more.
import type { AttemptKey } from "../../../machines/work-item.ts";
import type { WorkerId } from "../../base/ids.ts";
import { encodeRecord } from "../../storage/codec.ts";
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
import type { AttemptEnd } from "../ledger/ledger.ts";
import type { Place } from "../ledger/place.ts";

/** How it ended, unless it succeeded, and its log if it left one. */
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

/** The next attempt gets it. An empty one leaves what is there. */
export function keepCheckpoint(turn: Turn, place: Place, checkpoint: Uint8Array): void {
  if (checkpoint.length === 0) return;
  const key = checkpointKey(place);
  turn.put({ key, value: encodeRecord(checkpointRecord, key, checkpoint) });
}
