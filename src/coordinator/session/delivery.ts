// Results on their way into the ledger. A batch is acknowledged when each of its results is decided and on stable storage (C10):
// most are at once, a late one when its item has been looked up. Acknowledgements are cumulative, so a batch waits for those
// before it; and what is not decided is counted against its sender's budget at the edge, also when its stream has ended (C8).
//
// Late ones are successes that come for items which nobody has, from attempts that were given up. One of an item that is pending again is
// taken; one that contradicts the result that is there is kept as evidence. Final items are not in memory, so the rows are
// looked up outside the reactor and come back as an input.
import { encodeRecord } from "../../storage/codec.ts";
import { mayBeForgotten, settleForgotten } from "./adoption.ts";
import type { Input } from "../turn/input.ts";
import type { LateReport } from "../ledger/ledger.ts";
import type { FoundReport } from "../ledger/lookups.ts";
import { placeIn } from "../ledger/lookups.ts";
import { itemKeyOf, conflictKey } from "../ledger/place.ts";
import { conflictRecord } from "../ledger/records.ts";
import { settleItem, settleLate } from "../items/transitions.ts";
import type { Place } from "../ledger/place.ts";
import { isCancelled } from "../run/run.ts";
import type { BatchCommit, Delivery, LateResult, SessionInput } from "../turn/session-frame.ts";
import type { CoordinatorState } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";

export function openDelivery(
  line: Delivery[],
  { port, settled }: Pick<SessionInput, "port" | "settled">,
  number: number,
): Delivery {
  const delivery: Delivery = { port, number, line, committed: undefined, undecided: 0, settled };
  line.push(delivery);
  return delivery;
}

/** Acknowledges what is decided by now, up to the first that is not. */
export function acknowledge(turn: Turn, line: Delivery[]): void {
  let last: Delivery | undefined;
  const commits: BatchCommit[] = [];
  while (line[0]?.undecided === 0) {
    last = line.shift();
    if (last?.committed !== undefined) commits.push({ number: last.number, ...last.committed });
  }
  if (last === undefined) return;
  turn.requireSync();
  turn.send(last.port, {
    kind: "resultsAcknowledged",
    number: last.number,
    ...(commits.length > 0 && { commits }),
  });
}

/**
 * Has the item's rows looked up; the batch of the result is not acknowledged before (C10). Given to somebody before they are
 * here, the item is theirs.
 */
export function examine(state: CoordinatorState, turn: Turn, late: LateReport, delivery: Delivery): void {
  delivery.undecided++;
  lookUp(state, turn, { ...late, delivery });
}

function lookUp(state: CoordinatorState, turn: Turn, late: LateResult): void {
  state.ledger.lookups.begin(itemKeyOf(late.id), late);
  // This leader has forgotten nothing that it has given out itself.
  const row = state.workers.get(late.worker);
  const cursors = new Map(mayBeForgotten(state, row, late) ? state.ledger.tally.cursors : []);
  turn.effects.push({ kind: "examineReport", late, cursors });
}

export function onExamined(
  state: CoordinatorState,
  turn: Turn,
  { late, found }: Extract<Input, { kind: "examined" }>,
): void {
  const itemKey = itemKeyOf(late.id);
  const isUntouched = state.ledger.lookups.end(itemKey, late, placeIn(found.finding));
  if (!isUntouched && !state.ledger.running.has(itemKey)) return lookUp(state, turn, late);
  decide(state, turn, late, found, isUntouched);
  if (--late.delivery.undecided === 0) turn.settle(late.delivery);
  acknowledge(turn, late.delivery.line);
}

function decide(
  state: CoordinatorState,
  turn: Turn,
  late: LateReport,
  found: FoundReport,
  isUntouched: boolean,
): void {
  const { ledger, counters } = state;
  const { finding } = found;
  if (finding.kind === "contradicted") {
    counters.conflicts++;
    if (finding.isEvidence) keepEvidence(state, turn, late, finding.place);
    return;
  }
  const isTaken =
    !isCancelled(state) &&
    (settleTakenUp(state, turn, late) ||
      (isUntouched &&
        (((finding.kind === "returned" || finding.kind === "delayed") &&
          settleLate(ledger, turn, late, finding) === "done") ||
          settleForgotten(state, turn, late, found))));
  if (!isTaken) counters.staleReports++;
}

/** Its worker has stated the attempt meanwhile, and the item was taken up again under it: the report ends it. It counts for no usage, as a late one. */
function settleTakenUp({ ledger, workers }: CoordinatorState, turn: Turn, late: LateReport): boolean {
  const { id, end, worker, incarnation, attempt, epoch } = late;
  const item = ledger.running.get(itemKeyOf(id));
  if (item === undefined) return false;
  const event = { type: "item.succeeded", worker, incarnation, attempt, epoch } as const;
  if (settleItem(ledger, turn, item, event, end) === "ignored") return false;
  workers.get(worker)?.held.delete(itemKeyOf(id));
  return true;
}

/** The result that was recorded first stays. Others that are being looked up are looked up again: they find this one. */
function keepEvidence(state: CoordinatorState, turn: Turn, late: LateReport, place: Place): void {
  const { id, attempt, worker, end } = late;
  const key = conflictKey(place);
  const record = { id, attempt, worker, ...end.result, arrivedAtWallMs: turn.wallMs };
  turn.put({ key, value: encodeRecord(conflictRecord, key, record) });
  state.ledger.lookups.touch(itemKeyOf(id));
  turn.warn("a worker reported another result for an item that is done", { worker_id: worker, key });
}
