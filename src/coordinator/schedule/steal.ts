// Work that waits at one worker while another has nothing: items that the victim has not started are recalled, and those that
// it hands back are pending again and go to a worker that asks. Workers never talk to each other, and an item that has begun is
// never moved, so nothing runs twice because of a steal.
import type { RunningItem } from "../ledger/ledger.ts";
import { hasOpen } from "../ledger/queue.ts";
import type { NamedAttempt } from "../turn/session-frame.ts";
import type { Reserved } from "./dispatch.ts";
import { noteRecalled } from "../workers/hand-back.ts";
import { isOfUse, isHandingBack, isTrusted, takesWork } from "../turn/state.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";

const MAX_STEAL_BATCH = 32;
/** An item that was assigned a moment ago is about to start; a recall of it is wasted. */
const MIN_AGE_MS = 200;

/** Workers that are reserved take nothing that is stolen. */
export function steal(state: CoordinatorState, turn: Turn, reserved: Reserved): void {
  for (const row of cordoned(state)) if (mayBeAsked(row, turn)) ask(row, turn, waitingAt(row, turn));
  if (hasOpen(state.ledger)) return;
  const thieves = [...state.workers.values()].filter((row) => isIdle(state, row) && !reserved.has(row));
  if (thieves.length === 0) return;
  const isOnlyOne = isOneOfUse(state);
  let victims = victimsOf(state, turn);
  for (const thief of thieves) {
    if (victims.length === 0) return;
    for (const victim of victims) {
      // Nothing moves to where it is less safe, nor to who has failed it: there it would only wait for another.
      if (thief.isAtRisk && !victim.row.isAtRisk) continue;
      victim.waiting ??= waitingAt(victim.row, turn);
      const wanted = victim.waiting.filter(({ row }) => isOnlyOne || row.context.failedBy !== thief.id);
      if (wanted.length === 0) continue;
      ask(victim.row, turn, wanted.slice(0, Math.ceil(backlogOf(victim.row) / 2)));
      break;
    }
    victims = victims.filter(
      ({ row, waiting }) => row.session?.isRecalled === false && waiting?.length !== 0,
    );
  }
}

interface Victim {
  readonly row: WorkerRow;
  /** Once it was looked at. */
  waiting: readonly RunningItem[] | undefined;
}

/** Peers that are not being asked already, the most backlog first. */
function victimsOf({ workers }: CoordinatorState, turn: Turn): Victim[] {
  const rows = [...workers.values()].filter((row) => mayBeAsked(row, turn));
  rows.sort((one, other) => backlogOf(other) - backlogOf(one));
  return rows.map((row) => ({ row, waiting: undefined }));
}

/** The run has one worker to count on, whatever others still hold. */
function isOneOfUse(state: CoordinatorState): boolean {
  let count = 0;
  for (const row of state.workers.values()) if (isTrusted(row) && isOfUse(state, row)) count++;
  return count === 1;
}

/** A cordoned worker would only fail what it has not started; others are there for it. */
function cordoned(state: CoordinatorState): readonly WorkerRow[] {
  const rows = [...state.workers.values()];
  const out = rows.filter((row) => !isTrusted(row));
  return out.length > 0 && rows.some((row) => isTrusted(row) && isOfUse(state, row)) ? out : [];
}

function mayBeAsked(row: WorkerRow, turn: Turn): boolean {
  return row.session?.isReconciled === true && !isHandingBack(row, turn.nowMs) && backlogOf(row) > 0;
}

/** Room, and nothing waiting: what a worker has beyond its slots is its backlog. */
function isIdle(state: CoordinatorState, row: WorkerRow): boolean {
  return takesWork(state, row) && isTrusted(row) && row.held.size < row.slots;
}

/** The items that it has not started, as far as can be told and it says, and was not given just now; the last to start first. */
function waitingAt(row: WorkerRow, turn: Turn): RunningItem[] {
  // The last that were assigned are the last to start.
  return [...row.held.values()]
    .filter(({ hasBegun }) => !hasBegun)
    .sort((one, other) => other.number - one.number)
    .slice(0, backlogOf(row))
    .filter(({ assignedAtMs }) => turn.nowMs - assignedAtMs >= MIN_AGE_MS);
}

function ask({ session }: WorkerRow, turn: Turn, items: readonly RunningItem[]): void {
  if (session === undefined || items.length === 0) return;
  session.isRecalled = true;
  session.recalledAtMs = turn.nowMs;
  const asked = items.slice(0, MAX_STEAL_BATCH);
  noteRecalled(asked, turn);
  turn.send(session.port, { kind: "release", attempts: asked.map(named) });
}

/** The victim's answer: what it handed back is pending again by now. */
export function onStealAnswered(row: WorkerRow, turn: Turn, count: number): void {
  if (row.session === undefined) return;
  row.session.isRecalled = false;
  row.session.recalledAtMs = turn.nowMs;
  if (count > 0) turn.emit("work_stolen", { victim_id: row.id, items: count });
}

function backlogOf(row: WorkerRow): number {
  return Math.max(0, row.held.size - row.slots);
}

function named({ id, row }: RunningItem): NamedAttempt {
  return { id, attempt: row.context.attempt };
}
