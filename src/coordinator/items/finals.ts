// Final items: the result or the failure that stands for good, and all that is told of it: the room of keys, the numbers, those who follow.
// An item's chart has decided before it comes here.
import type { AttemptKey } from "../../../machines/work-item.ts";
import { assert } from "../../base/assert.ts";
import type { WorkerId } from "../../base/ids.ts";
import { DONE_PREFIX, FAILED_PREFIX } from "../../storage/keys.ts";
import type { AttemptEnd, Ledger, RunningItem } from "../ledger/ledger.ts";
import { isInside, isKeyed } from "../ledger/place.ts";
import { doneRecord, failedRecord } from "../ledger/records.ts";
import type { Turn } from "../turn/turn.ts";
import { putRow } from "./rows.ts";

export function recordResult(
  ledger: Ledger,
  turn: Turn,
  item: Pick<RunningItem, "place" | "id">,
  by: Pick<AttemptKey, "worker" | "attempt">,
  { result, execution, left }: AttemptEnd,
): void {
  assert(result !== null && "output" in result, "a result has an output");
  const completion = ledger.tally.nextCompletion;
  // Counted from 1: a state of commit 0 is none.
  const { output } = result;
  const previous = isKeyed(item.place)
    ? ledger.keys.settled(item.place, { kind: "done", left, commit: completion + 1, output })
    : undefined;
  const value = {
    id: item.id,
    attempt: by.attempt,
    worker: by.worker as WorkerId,
    digest: result.digest,
    output: result.output,
    finishedAtWallMs: turn.wallMs,
    completion,
    previous,
    ...execution,
  };
  putRow(ledger, turn, "done", { key: `${DONE_PREFIX}${item.place}`, type: doneRecord, value });
  ledger.meter.itemsFinished.success++;
  turn.completed.push(item.place);
  turn.requireSync();
}

/** In the row of an item that no worker ever had. */
const NOBODY = "00000000000000000000000000" as WorkerId;
const NO_RESPONSE = new Uint8Array();

export function recordFailure(
  ledger: Ledger,
  turn: Turn,
  item: Pick<RunningItem, "place" | "id" | "row">,
  { result, execution }: Pick<AttemptEnd, "result" | "execution">,
): void {
  assert(result !== null && "class" in result, "a failure has a class");
  const { class: as, message, sparesKey = false } = result;
  if (isKeyed(item.place)) ledger.keys.settled(item.place, { kind: "failed", class: as, message, sparesKey });
  const { attempt, worker, charged, lost, isApart } = item.row.context;
  const value = {
    id: item.id,
    attempt,
    worker: worker === "" ? NOBODY : (worker as WorkerId),
    class: result.class,
    message: result.message,
    response: result.response ?? NO_RESPONSE,
    charged,
    lost,
    isApart,
    finishedAtWallMs: turn.wallMs,
    completion: ledger.tally.nextCompletion,
    ...execution,
  };
  putRow(ledger, turn, "failed", { key: `${FAILED_PREFIX}${item.place}`, type: failedRecord, value });
  // One that nobody wanted any more speaks against nothing.
  const isStopped = isInside(item.place) && as === "cancelled";
  ledger.tally.hasFailed(as, { counts: !isStopped });
  ledger.meter.itemsFinished[as]++;
  if (!isStopped) ledger.failureMessages.failed({ ...result, id: item.id });
  turn.completed.push(item.place);
  turn.requireSync();
}
