// Pending items to workers that asked for them, at the end of each turn: in order of priority and submission, in batches, shared
// out so that a worker with much credit does not empty the queue before the others are served.
import type { IncarnationId } from "../base/ids.ts";
import { itemKeyOf } from "./ledger/item-id.ts";
import type { PendingItem } from "./ledger/item.ts";
import { assignItem, countReady, nextPending } from "./ledger/ledger.ts";
import { priorityOf } from "./ledger/place.ts";
import type { AssignedItem } from "./session-frame.ts";
import { takesWork } from "./state.ts";
import type { CoordinatorState, WorkerRow } from "./state.ts";
import type { Turn } from "./turn.ts";

/** Items in one frame, and bytes after which a frame takes no more; a worker may get several frames in a turn. */
const SHARE_MAX = 256;
const FRAME_BYTES_MAX = 1024 * 1024;
/** Items that one turn gives out at most: the rest follows in the next. */
const PER_TURN_MAX = 8_192;

export function dispatch(state: CoordinatorState, turn: Turn): void {
  const hungry = [...state.workers.values()].filter(takesWork);
  const asked = hungry.reduce((sum, row) => sum + creditOf(row), 0);
  let left = PER_TURN_MAX;
  // Where there is not enough for everybody, an item goes to where it can start: what was just stolen must not go back
  // to the backlog that it was taken from.
  if (countReady(state.ledger) < asked) left = giveOut(state, turn, left, startable);
  giveOut(state, turn, left, creditOf);
}

/** Gives each worker as many items as `roomOf` says, and `left` in all; returns what is left of that. */
function giveOut(
  state: CoordinatorState,
  turn: Turn,
  left: number,
  roomOf: (row: WorkerRow) => number,
): number {
  const hasRoom = (row: WorkerRow): boolean => takesWork(row) && roomOf(row) > 0;
  let hungry = [...state.workers.values()].filter(hasRoom);
  while (hungry.length > 0 && left > 0) {
    const share = Math.min(SHARE_MAX, Math.ceil(countReady(state.ledger) / hungry.length));
    for (const row of hungry) {
      const given = takeShare(state, Math.min(share, roomOf(row), left));
      if (given.length === 0) return 0;
      left -= given.length;
      give(state, turn, row, given);
    }
    hungry = hungry.filter(hasRoom);
  }
  return left;
}

function creditOf({ session }: WorkerRow): number {
  return session?.credit ?? 0;
}

/** How many of what it asked for it would start at once. */
function startable(row: WorkerRow): number {
  return Math.min(creditOf(row), row.slots - row.held.size);
}

/** Up to `max` items, no more than a frame of bytes; at least one if there is one. */
function takeShare({ ledger }: CoordinatorState, max: number): PendingItem[] {
  const given: PendingItem[] = [];
  for (let bytes = 0; given.length < max && bytes < FRAME_BYTES_MAX;) {
    const item = nextPending(ledger);
    if (item === undefined) break;
    given.push(item);
    bytes += item.payload.length;
  }
  return given;
}

function give(state: CoordinatorState, turn: Turn, row: WorkerRow, items: readonly PendingItem[]): void {
  const { session } = row;
  if (items.length === 0 || session === undefined) return;
  const { incarnation } = row.chart.context;
  const firstNumber = session.nextNumber;
  const assigned = items.map((item): AssignedItem => {
    const number = session.nextNumber++;
    const to = { worker: row.id, incarnation: incarnation as IncarnationId, epoch: state.epoch, number };
    const running = assignItem(state.ledger, turn, item, to);
    row.held.set(itemKeyOf(item.id), running);
    return {
      id: item.id,
      attempt: running.row.context.attempt,
      payload: item.payload,
      priority: priorityOf(item.key),
    };
  });
  session.credit -= items.length;
  turn.send(session.port, { kind: "assignments", firstNumber, items: assigned });
}
