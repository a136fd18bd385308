// Work that waits at one worker while another has nothing: the victim is asked to hand back what it has not started, and what it
// hands back is pending again and goes to whoever asks. Workers never talk to each other, and an item that has begun is
// never moved, so nothing runs twice because of a steal.
import type { RunningItem } from "./ledger/item.ts";
import { countReady } from "./ledger/ledger.ts";
import type { NamedAttempt } from "./session-frame.ts";
import { takesWork } from "./state.ts";
import type { CoordinatorState, WorkerRow } from "./state.ts";
import type { Turn } from "./turn.ts";

const MAX_STEAL_BATCH = 32;
/** What was assigned a moment ago is about to start; asking for it back is wasted. */
const MIN_AGE_MS = 200;
/** A victim that was asked is left alone for so long after its answer: no ping-pong. */
const PAUSE_MS = 500;

export function steal(state: CoordinatorState, turn: Turn): void {
  if (countReady(state.ledger) > 0) return;
  const thieves = [...state.workers.values()].filter(isIdle);
  for (const thief of thieves) {
    const victim = victimFor(state, turn, thief);
    if (victim === undefined) return;
    ask(victim, turn);
  }
}

/** Room, and nothing waiting: what a worker has beyond its slots is its backlog. */
function isIdle(row: WorkerRow): boolean {
  return takesWork(row) && row.held.size < row.slots;
}

/** The peer with the most backlog that is not being asked already. */
function victimFor({ workers }: CoordinatorState, turn: Turn, thief: WorkerRow): WorkerRow | undefined {
  let victim: WorkerRow | undefined;
  for (const row of workers.values()) {
    if (row === thief || row.session === undefined || row.session.isAsked) continue;
    if (turn.nowMs - row.session.askedAtMs < PAUSE_MS || backlogOf(row) === 0) continue;
    if (victim === undefined || backlogOf(row) > backlogOf(victim)) victim = row;
  }
  return victim;
}

function ask(victim: WorkerRow, turn: Turn): void {
  const { session } = victim;
  if (session === undefined) return;
  const count = Math.min(MAX_STEAL_BATCH, Math.ceil(backlogOf(victim) / 2));
  // The last that were assigned are the last to start.
  const wanted = [...victim.held.values()]
    .filter(({ assignedAtMs }) => turn.nowMs - assignedAtMs >= MIN_AGE_MS)
    .sort((one, other) => other.number - one.number)
    .slice(0, count);
  if (wanted.length === 0) return;
  session.isAsked = true;
  session.askedAtMs = turn.nowMs;
  turn.send(session.port, { kind: "release", attempts: wanted.map(named) });
}

/** The victim's answer: what it handed back is pending again by now. */
export function onStealAnswered(row: WorkerRow, turn: Turn, count: number): void {
  if (row.session === undefined) return;
  row.session.isAsked = false;
  row.session.askedAtMs = turn.nowMs;
  if (count > 0) turn.emit("work_stolen", { victim_id: row.id, items: count });
}

function backlogOf(row: WorkerRow): number {
  return Math.max(0, row.held.size - row.slots);
}

function named({ id, row }: RunningItem): NamedAttempt {
  return { id, attempt: row.context.attempt };
}
