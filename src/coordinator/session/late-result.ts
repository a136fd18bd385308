// Successes that come for items which nobody has, from attempts that were given up. One of an item that is pending again is
// taken; one that contradicts the result that is there is kept as evidence. Final items are not in memory, so the rows are
// looked up outside the reactor and come back as an input.
import { encodeRecord } from "../../storage/codec.ts";
import { mayBeForgotten, settleForgotten } from "./adoption.ts";
import { acknowledge, settle } from "./delivery.ts";
import type { Input } from "../turn/input.ts";
import type { LateReport } from "../ledger/ledger.ts";
import type { FoundReport } from "../ledger/lookups.ts";
import { placeIn } from "../ledger/lookups.ts";
import { itemKeyOf } from "../ledger/item-id.ts";
import { conflictRecord } from "../ledger/records.ts";
import { settleLate } from "../items/transitions.ts";
import { conflictKey } from "../ledger/place.ts";
import type { Place } from "../ledger/place.ts";
import { isCancelled } from "../run/run.ts";
import type { Delivery, LateResult } from "../turn/session-frame.ts";
import type { CoordinatorState } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";

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
  if (--late.delivery.undecided === 0) settle(late.delivery, turn);
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
    isUntouched &&
    !isCancelled(state) &&
    (((finding.kind === "returned" || finding.kind === "delayed") &&
      settleLate(ledger, turn, late, finding) === "done") ||
      settleForgotten(state, turn, late, found));
  if (!isTaken) counters.staleReports++;
}

/** The result that was recorded first stays. Others that are being looked up are looked up again: they find this one. */
function keepEvidence(state: CoordinatorState, turn: Turn, late: LateReport, place: Place): void {
  const { id, attempt, worker, success } = late;
  const key = conflictKey(place);
  const record = { id, attempt, worker, ...success, arrivedAtWallMs: turn.wallMs };
  turn.put({ key, value: encodeRecord(conflictRecord, key, record) });
  state.ledger.lookups.touch(itemKeyOf(id));
  turn.effects.push({
    kind: "warning",
    message: "a worker reported another result for an item that is done",
    fields: { worker_id: worker, key },
  });
}
