// Items that a worker says it has and the ledger does not know of. A leader's assignments are not synced, so a loss of power
// takes the last of them, and the workers go on with what the ledger calls pending. Such an item is adopted: it runs on where
// it is, under the attempt that it is under, and is not executed a second time; one that has finished is settled by the result
// that comes, also when that comes before the worker has stated anything, as results by a call do. An attempt that is on record
// was given up, and stays so.
//
// The rows are looked up outside the reactor, so the verdict on the hello waits for them.
import { runsAlone } from "../../../machines/work-item.ts";
import type { AttemptKey, ItemContext } from "../../../machines/work-item.ts";
import { assert } from "../../base/assert.ts";
import type { Input } from "../turn/input.ts";
import type { Finding, FoundReport } from "../ledger/lookups.ts";
import { placeIn } from "../ledger/lookups.ts";
import { itemKeyOf, placeOf, priorityOf, sequenceOf } from "../ledger/place.ts";
import type { LateReport, RunningItem } from "../ledger/ledger.ts";
import { adoptItem, attemptOf, settleItem, unqueue } from "../items/transitions.ts";
import { queueReturned } from "../items/rows.ts";
import type { Place } from "../ledger/place.ts";
import { freshWindow } from "../ledger/queue.ts";
import type { Claim, SessionInput, Statement } from "../turn/session-frame.ts";
import { recallBacklog, recallTrialsOf } from "../schedule/recall.ts";
import { isCancelled, meaningOf } from "../run/run.ts";
import { holdsAlone, roomAt } from "../turn/state.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";

/** Attempts are counted in 32 bits on the wire; nobody comes near this honestly. */
const ATTEMPT_MAX = 2 ** 31;

/** Never given out, as far as the ledger knows. */
const NEVER_GIVEN = {
  ...{ attempt: 0, charged: 0, lost: 0 },
  ...{ failedBy: "", blamed: "", isApart: false, returnedAtMs: [], tried: "" },
};

/** The claims of a hello that an earlier leader may have given and forgotten. */
export function unheardOf(
  state: CoordinatorState,
  row: WorkerRow,
  hello: Extract<SessionInput, { kind: "hello" }>,
): Claim[] {
  const { workerId: worker, incarnation: own, ackedAssignment: number } = hello;
  const claims = hello.held.flatMap(({ id, incarnation, ...given }, at) =>
    !mayBeForgotten(state, row, given) || state.ledger.running.has(itemKeyOf(id))
      ? []
      : [
          {
            id,
            at,
            number,
            worker,
            incarnation: incarnation ?? own,
            attempt: given.attempt,
            epoch: given.epoch,
            version: given.pluginVersion ?? "",
          },
        ],
  );
  // No leader has given it more than that.
  return claims.slice(0, adoptable(row));
}

/** The worker gets its verdict, or what is not known is looked up first. */
export function reconcile(
  state: CoordinatorState,
  turn: Turn,
  row: WorkerRow,
  { port, keep, claims, settled }: Omit<Statement, "workerId">,
): void {
  if (row.session?.port !== port) return turn.settle({ settled });
  if (claims.length === 0 || isCancelled(state)) {
    turn.settle({ settled });
    row.session.isReconciled = true;
    // A cancelled run wants nothing any more, finished results included.
    turn.send(port, { kind: "verdict", keep: isCancelled(state) ? keep.map(() => false) : keep });
    if (meaningOf(state).isPaused) recallBacklog(row, turn);
    // The candidate's may have been recalled on a stream that broke off, and another release's may have been adopted.
    else recallTrialsOf(row, turn, state.releases.isRolling ? state.releases.underWay : "");
    return;
  }
  for (const claim of claims) state.ledger.lookups.begin(itemKeyOf(claim.id), claim);
  const statement = { workerId: row.id, port, keep, claims, settled };
  turn.effects.push({ kind: "examineClaims", statement, cursors: new Map(state.ledger.tally.cursors) });
}

export function onClaimsExamined(
  state: CoordinatorState,
  turn: Turn,
  { statement, found }: Extract<Input, { kind: "claimsExamined" }>,
): void {
  const { ledger } = state;
  const { workerId, port, claims, settled } = statement;
  const doesHold = claims.map((claim, index) =>
    ledger.lookups.end(itemKeyOf(claim.id), claim, placeIn(found.findings[index])),
  );
  const row = state.workers.get(workerId);
  // It has opened another session since, or is gone.
  if (row?.session?.port !== port) return turn.settle(statement);
  if (isCancelled(state)) return reconcile(state, turn, row, statement);
  const keep = [...statement.keep];
  const again: Claim[] = [];
  const fresh = new Map<Place, Claim>();
  for (const [index, claim] of claims.entries()) {
    const finding = found.findings[index];
    // Somebody has it by now.
    if (finding === undefined || ledger.running.has(itemKeyOf(claim.id))) continue;
    if (doesHold[index] !== true) again.push(claim);
    else if (!canHaveBeenGiven(state, row, claim, placeIn(finding))) continue;
    else if (finding.kind === "fresh") fresh.set(finding.place, claim);
    else if (adoptReturned(state, turn, row, claim, finding)) keep[claim.at] = true;
  }
  for (const lane of found.lanes.values())
    for (const { at } of adoptFresh(state, turn, row, lane, fresh)) keep[at] = true;
  reconcile(state, turn, row, { port, settled, keep, claims: again });
}

function adoptReturned(
  { ledger, releases }: CoordinatorState,
  turn: Turn,
  row: WorkerRow,
  claim: Claim,
  finding: Finding,
): boolean {
  if (finding.kind !== "returned" && finding.kind !== "delayed") return false;
  if (!mayHold(row, finding.budgets)) return false;
  const running = adoptItem(ledger, turn, finding, claim, releases.stampNamed(claim.version));
  if (running === undefined) return false;
  releases.adopted(running.row.context.trial);
  const itemKey = itemKeyOf(claim.id);
  unqueue(ledger, turn, itemKey, finding);
  take(row, itemKey, running);
  return true;
}

/**
 * Items behind the cursor of their priority. The cursor moves past the last one, so those that it passes are written down as
 * what they are: not given out, as far as is known. Returns what was adopted.
 */
function adoptFresh(
  { ledger, releases }: CoordinatorState,
  turn: Turn,
  row: WorkerRow,
  lane: readonly Place[],
  claims: ReadonlyMap<Place, Claim>,
): Claim[] {
  const [first] = lane;
  if (first === undefined || !mayHold(row, NEVER_GIVEN)) return [];
  const priority = priorityOf(first);
  const cursor = ledger.tally.cursors.get(priority) ?? 0;
  const left = lane.filter((place) => sequenceOf(place) >= cursor);
  const last = left.findLastIndex((place) => claims.has(place));
  const adopted: Claim[] = [];
  for (const place of left.slice(0, last + 1)) {
    if (ledger.setAside.has(place)) continue;
    const claim = claims.get(place);
    const mayTake = claim !== undefined && adoptable(row) > 0;
    const running = mayTake
      ? adoptItem(ledger, turn, { place, budgets: null }, claim, releases.stampNamed(claim.version))
      : undefined;
    if (running === undefined || claim === undefined) {
      queueReturned(ledger, turn, place, NEVER_GIVEN);
      // Somebody else may be asking for it.
      ledger.lookups.touchPlace(place);
      continue;
    }
    releases.adopted(running.row.context.trial);
    take(row, itemKeyOf(claim.id), running);
    adopted.push(claim);
  }
  const end = left[last];
  if (end === undefined) return adopted;
  ledger.tally.moveCursor(priority, sequenceOf(end) + 1);
  freshWindow(ledger, priority).dropBelow(placeOf(priority, sequenceOf(end) + 1));
  return adopted;
}

/**
 * The success of an attempt that the ledger has not heard of: it is adopted and settled at once. A worker that has no session
 * yet, or calls, may report before it has stated what it has. False when nothing has changed.
 */
export function settleForgotten(
  state: CoordinatorState,
  turn: Turn,
  { worker, end, ...late }: LateReport,
  { finding, lane }: FoundReport,
): boolean {
  const { ledger } = state;
  const row = state.workers.get(worker);
  if (!canHaveBeenGiven(state, row, late, placeIn(finding)) || row === undefined) return false;
  const claim: Claim = { ...late, worker, at: 0, number: 0, version: "" };
  const isAdopted =
    finding.kind === "fresh"
      ? adoptFresh(state, turn, row, lane, new Map([[finding.place, claim]])).length > 0
      : adoptReturned(state, turn, row, claim, finding);
  const item = isAdopted ? row.held.get(itemKeyOf(late.id)) : undefined;
  if (item === undefined) return false;
  row.held.delete(itemKeyOf(late.id));
  const settled = settleItem(ledger, turn, item, { type: "item.succeeded", ...attemptOf(item) }, end);
  assert(settled === "done", "what was adopted is under the attempt that is reported");
  return true;
}

/** Whether an earlier leader may have given it to this worker, and forgotten it. */
export function mayBeForgotten(
  { epoch }: CoordinatorState,
  row: WorkerRow | undefined,
  { attempt, epoch: givenIn }: Pick<AttemptKey, "attempt" | "epoch">,
): boolean {
  return givenIn < epoch && attempt <= ATTEMPT_MAX && adoptable(row) > 0;
}

/** The same, once it is known which item it is: one that came in later was not there to be given. */
function canHaveBeenGiven(
  state: CoordinatorState,
  row: WorkerRow | undefined,
  given: Pick<AttemptKey, "attempt" | "epoch">,
  place: Place | undefined,
): boolean {
  const end = state.ledger.epochStarts.endOf(given.epoch);
  if (end === undefined || place === undefined || state.ledger.setAside.has(place)) return false;
  return mayBeForgotten(state, row, given) && sequenceOf(place) < end;
}

/**
 * How many more items it can have from earlier leaders. None has given it more than it may have at once without writing down, for
 * good, how what it had before has ended.
 */
function adoptable(row: WorkerRow | undefined): number {
  if (row?.adopted === undefined) return 0;
  return Math.min(roomAt(row), roomAt({ slots: row.slots, held: NOTHING }) - row.adopted);
}

const NOTHING: WorkerRow["held"] = new Map();

function take(row: WorkerRow, itemKey: string, running: RunningItem): void {
  row.held.set(itemKey, running);
  row.adopted = (row.adopted ?? 0) + 1;
}

/** Nothing is beside an item that runs alone. */
function mayHold(row: WorkerRow, budgets: Pick<ItemContext, "lost" | "isApart">): boolean {
  return !holdsAlone(row) && (row.held.size === 0 || !runsAlone(budgets));
}
