// Pending items to workers that asked for them, at the end of each turn: in order of priority and submission, in batches, shared
// out so that a worker with much credit does not empty the queue before the others are served.
//
// An item goes to a worker that can execute the run's task, and is trusted; nothing beside an item that runs alone; an item
// that a worker has failed goes to another one where there is one; a worker at risk comes after the others.
//
// The schedule's room: `dispatch` gives items out, `recall` asks for those that have not begun, to steal them too.
import type { IncarnationId, WorkerId } from "../../base/ids.ts";
import { runsAlone } from "../../../machines/work-item.ts";
import { priorityOf } from "../ledger/place.ts";
import type { PendingItem } from "../ledger/ledger.ts";
import { assignItem } from "../items/transitions.ts";
import type { Stamp } from "../items/trials.ts";
import {
  countReady,
  hasOpen,
  nextAlone,
  nextOwnAlone,
  nextPending,
  nextTry,
  shelve,
} from "../ledger/queue.ts";
import { isClean } from "../ledger/shelf.ts";
import type { Taker } from "../ledger/shelf.ts";
import type { AssignedItem, GivenState, Session } from "../turn/session-frame.ts";
import {
  holdsAlone,
  isOfUse,
  isHandingBack,
  isTrusted,
  roomAt,
  stateVersionOf,
  takesWork,
} from "../turn/state.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import { isDueToTry, moveTrust } from "../workers/trust.ts";
import type { Turn } from "../turn/turn.ts";

/** Items in one frame, and bytes after which a frame takes no more; a worker may get several frames in a turn. */
const SHARE_MAX = 256;
const FRAME_BYTES_MAX = 1024 * 1024;
/** Items that one turn gives out at most: the rest follows in the next. */
const PER_TURN_MAX = 8_192;
/** A worker that does not say a word is given no more than this. */
const UNREAD_BYTES_MAX = 64 * 1024 * 1024;
/** One in so many workers is kept for items that run alone, as long as there are any: the others go on with the rest. */
const ALONE_SHARE = 4;
/** A worker that has handed back such an item gets none for so long. */
const REFUSED_ALONE_MS = 30_000;

/** The workers that are given items in a turn. */
interface Crew {
  readonly rows: readonly WorkerRow[];
  /** They are not trusted, and here because there is nobody else. */
  readonly isTrying: boolean;
  /** Cordoned workers that are due to show beside the others whether they are well again. */
  readonly onTrial: readonly WorkerRow[];
  /** The run has one worker for items that were failed, even if it does not work now: a worker that only tries gets none of them. */
  readonly isOnlyOne: boolean;
  /** The two workers that go on from the latest states of keys, and from which ones; none where no item has a key. */
  readonly latest: readonly { readonly row: WorkerRow; readonly version: number }[];
}

/** Reserved workers: they get nothing but an item which runs alone, now or as soon as they have nothing any more. */
export type Reserved = ReadonlySet<WorkerRow>;

export function dispatch(state: CoordinatorState, turn: Turn): Reserved {
  const crew = crewOf(state, turn);
  shelve(state.ledger, turn.nowMs);
  giveOutTries(state, turn, crew);
  giveOutAlone(state, turn, crew);
  const reserved = reservedOf(state, turn, crew);
  const others = crew.rows.filter((row) => !reserved.has(row));
  let left = PER_TURN_MAX;
  // Workers that may be gone soon get the items that the others have no room for.
  for (const isAtRisk of [false, true]) {
    const rows = others.filter((row) => row.isAtRisk === isAtRisk && takesWork(state, row));
    const asked = rows.reduce((sum, row) => sum + creditOf(row), 0);
    const isEnough = countReady(state.ledger) >= asked;
    // Where there is not enough for everybody, an item goes to where it can start, and what was just stolen does not go back to
    // the backlog that it was taken from.
    if (!isEnough) left = giveOut(state, turn, crew, { rows, left, roomOf: startable });
    // Items that a safe backlog handed back are not for one that may be gone soon either.
    const isLeft = isAtRisk && others.some((row) => !row.isAtRisk && isHandingBack(row, turn.nowMs));
    const takers = isEnough ? rows : isLeft ? [] : rows.filter((row) => !isHandingBack(row, turn.nowMs));
    left = giveOut(state, turn, crew, { rows: takers, left, roomOf: creditOf });
  }
  // Items that have come to light meanwhile need not wait for a turn that may not come.
  giveOutAlone(state, turn, crew);
  return reservedOf(state, turn, crew);
}

/** The trusted workers; when there are none, the others, one item at a time and rarely: a run does not stand still. */
function crewOf(state: CoordinatorState, turn: Turn): Crew {
  const rows = [...state.workers.values()].filter((row) => isOfUse(state, row));
  const trusted = rows.filter(isTrusted);
  const isAnybodyElse = trusted.length > 0;
  const able = (isAnybodyElse ? trusted : rows).filter((row) => !triesOnly(state, row));
  const isOnlyOne = able.length === 1;
  const latest = latestOf(state, able);
  if (trusted.length === rows.length) return { rows, isTrying: false, onTrial: [], isOnlyOne, latest };
  const due = rows.filter((row) => !isTrusted(row) && isDueToTry(row, turn.nowMs, isAnybodyElse));
  return isAnybodyElse
    ? { rows: trusted, isTrying: false, onTrial: due, isOnlyOne, latest }
    : { rows: due, isTrying: true, onTrial: [], isOnlyOne, latest };
}

function latestOf({ keys, task }: CoordinatorState, rows: readonly WorkerRow[]): Crew["latest"] {
  if (!keys.isInUse) return [];
  const latest: Crew["latest"][number][] = [];
  for (const row of rows) {
    if (!row.takesKeys) continue;
    const version = stateVersionOf(row, task?.plugin ?? "");
    const at = latest.findIndex((one) => one.version < version);
    latest.splice(at === -1 ? latest.length : at, 0, { row, version });
    if (latest.length > 2) latest.pop();
  }
  return latest;
}

/**
 * One item to each that is on trial, one that nobody has failed: should it be failed again, it has not used up its attempts. Or one that
 * would wait for ever, because no trusted worker goes on from the state of its key.
 */
function giveOutTries(state: CoordinatorState, turn: Turn, crew: Crew): void {
  if (state.ledger.budgets.maxAttempts < 2) return;
  for (const row of crew.onTrial) {
    if (!takesWork(state, row) || !isReading(row)) continue;
    const taker = takerOf(state, row, crew, turn);
    const alone = row.held.size === 0 ? nextOwnAlone(state.ledger, taker) : undefined;
    const item = alone ?? nextTry(state.ledger, taker);
    if (item === undefined) continue;
    give(state, turn, row, [item]);
  }
}

/** Items that run alone, to workers that have nothing. */
function giveOutAlone(state: CoordinatorState, turn: Turn, crew: Crew): void {
  if (state.ledger.alone.size === 0) return;
  for (const row of reservedOf(state, turn, crew)) {
    if (row.held.size > 0 || !takesWork(state, row) || !mayTry(row, crew)) continue;
    const item = nextAlone(state.ledger, takerOf(state, row, crew, turn));
    if (item !== undefined) give(state, turn, row, [item]);
  }
}

/**
 * Workers that have least are reserved, and get nothing until they have nothing, so they stay those. One that could take none
 * of the items that wait is of no use for it. Workers that have nothing, and for which there is nothing else, are kept as well.
 */
function reservedOf(state: CoordinatorState, turn: Turn, crew: Crew): Reserved {
  const { ledger } = state;
  const { rows } = crew;
  const { alone, shelf } = ledger;
  if (alone.size === 0) return new Set();
  const atWork = rows.filter(holdsAlone).length;
  const share = Math.max(0, Math.max(1, Math.floor(rows.length / ALONE_SHARE)) - atWork);
  const able = rows.filter(
    (row) =>
      !holdsAlone(row) &&
      row.session?.isReconciled === true &&
      row.held.size + row.session.credit > 0 &&
      turn.nowMs - row.refusedAloneAtMs >= REFUSED_ALONE_MS &&
      alone.peek(takerOf(state, row, crew, turn)) !== undefined,
  );
  able.sort((one, other) => one.held.size - other.held.size);
  const wanted = able.slice(0, alone.size);
  const isRest = !hasOpen(ledger);
  const isIdle = (row: WorkerRow): boolean =>
    isRest && row.held.size === 0 && shelf.peek(takerOf(state, row, crew, turn)) === undefined;
  return new Set(wanted.filter((row, at) => at < share || isIdle(row)));
}

interface Round {
  readonly rows: readonly WorkerRow[];
  /** How many items may be given in all. */
  readonly left: number;
  readonly roomOf: (row: WorkerRow) => number;
}

/** Gives each worker as many items as there is room; returns how many more may be given in all. */
function giveOut(state: CoordinatorState, turn: Turn, crew: Crew, round: Round): number {
  const hasRoom = (row: WorkerRow): boolean =>
    takesWork(state, row) && round.roomOf(row) > 0 && isReading(row) && mayTry(row, crew);
  const freeSlots = (): Map<WorkerId, number> =>
    new Map(round.rows.filter(hasRoom).map((row) => [row.id, startable(row)]));
  const takeBack = state.ledger.keys.lend(freeSlots);
  const left = giveInTurns(state, turn, crew, round, hasRoom);
  // Other items came before them there.
  return takeBack?.() === true ? giveInTurns(state, turn, crew, { ...round, left }, hasRoom) : left;
}

function giveInTurns(
  state: CoordinatorState,
  turn: Turn,
  crew: Crew,
  { rows, roomOf, ...round }: Round,
  hasRoom: (row: WorkerRow) => boolean,
): number {
  let { left } = round;
  let hungry = rows.filter(hasRoom);
  while (hungry.length > 0 && left > 0) {
    const share = Math.min(SHARE_MAX, Math.ceil(countReady(state.ledger) / hungry.length));
    const served = new Set<WorkerRow>();
    for (const row of hungry) {
      const max = crew.isTrying ? 1 : Math.min(share, roomOf(row), left);
      const given = takeShare(state, row, takerOf(state, row, crew, turn), max);
      left -= given.length;
      if (given.length > 0) served.add(row);
      give(state, turn, row, given);
    }
    // A worker that found nothing will not find any in this turn.
    hungry = hungry.filter((row) => served.has(row) && hasRoom(row));
  }
  return left;
}

/** It has the candidate alone, which neither items with keys get nor items that were failed. */
function triesOnly({ releases }: CoordinatorState, row: WorkerRow): boolean {
  return releases.isRolling && releases.deskOf(row) === "candidate";
}

function takerOf(
  state: CoordinatorState,
  row: WorkerRow,
  { isOnlyOne, latest }: Crew,
  { nowMs }: Turn,
): Taker {
  const { task, releases } = state;
  const { id, takesKeys } = row;
  const [other] = latest.filter((one) => one.row !== row);
  const taker = {
    worker: id,
    isOnlyOne,
    nowMs,
    takesKeys,
    stateVersion: stateVersionOf(row, task?.plugin ?? ""),
    othersUpTo: other?.version ?? -1,
  };
  if (!triesOnly(state, row)) return taker;
  return { ...taker, takesKeys: false, triesOnly: releases.stampOf("candidate") };
}

/** In this turn it has not had its try yet, if tries are all there is. */
function mayTry({ held }: WorkerRow, { isTrying }: Crew): boolean {
  return !isTrying || held.size === 0;
}

function isReading({ session }: WorkerRow): boolean {
  return session !== undefined && session.unreadBytes < UNREAD_BYTES_MAX;
}

function creditOf(row: WorkerRow): number {
  return Math.min(row.session?.credit ?? 0, roomAt(row));
}

/** How many of what it asked for it would start at once. */
function startable(row: WorkerRow): number {
  return Math.min(creditOf(row), row.slots - row.held.size);
}

/** Up to `max` items, no more than a frame of bytes; at least one if there is one. */
function takeShare(
  { ledger }: CoordinatorState,
  { slots, held }: WorkerRow,
  taker: Taker,
  max: number,
): PendingItem[] {
  const given: PendingItem[] = [];
  const busy: Taker = { ...taker, hasFreeSlot: false };
  for (let bytes = 0; given.length < max && bytes < FRAME_BYTES_MAX;) {
    const item = nextPending(ledger, held.size + given.length < slots ? taker : busy);
    if (item === undefined) break;
    given.push(item);
    bytes += bytesOf(item);
  }
  return given;
}

function bytesOf({ payload, checkpoint, keyed }: PendingItem, state = keyed?.state): number {
  return payload.length + (checkpoint?.content.length ?? 0) + (state?.length ?? 0);
}

/** A checkpoint is for the version that has left it. */
function checkpointFor({ checkpoint }: PendingItem, { version }: Stamp): Uint8Array | null {
  return checkpoint?.version === version ? checkpoint.content : null;
}

/** Without the state where the worker has it. */
function giveState(
  { keys: { warmth, table } }: CoordinatorState,
  keyed: GivenState,
  { port }: Session,
): GivenState {
  if (keyed.state === null) return keyed;
  return warmth.give(warmth.isCold ? undefined : table.get(keyed.key), keyed, port);
}

function give(state: CoordinatorState, turn: Turn, row: WorkerRow, items: readonly PendingItem[]): void {
  const { session } = row;
  if (items.length === 0 || session === undefined) return;
  const { incarnation } = row.chart.context;
  const firstNumber = session.nextNumber;
  const { releases } = state;
  const desk = releases.isRolling ? releases.deskOf(row) : "none";
  const assigned = items.map((item): AssignedItem => {
    const number = session.nextNumber++;
    const arm =
      desk === "none" ? desk : releases.armOf(desk, item.id, isClean(item, releases.stampOf("candidate")));
    const stamp = releases.stampOf(arm);
    const by = { worker: row.id, incarnation: incarnation as IncarnationId, epoch: state.epoch, number };
    const to = { ...by, ...stamp };
    const running = assignItem(state.ledger, turn, item, to);
    row.held.set(running.itemKey, running);
    if (arm !== "none") running.ticket = releases.given(arm);
    // An assignment of a key is never forgotten, so none is ever adopted.
    if (item.keyed !== undefined) turn.requireSync();
    const keyed = item.keyed && giveState(state, item.keyed, session);
    session.unreadBytes += bytesOf(item, keyed?.state);
    return {
      id: item.id,
      attempt: running.row.context.attempt,
      payload: item.payload,
      priority: priorityOf(item.key),
      checkpoint: checkpointFor(item, stamp),
      alone: runsAlone(running.row.context),
      keyed,
      pluginVersion: stamp.version,
    };
  });
  session.credit = session.takesOneFrame ? 0 : session.credit - items.length;
  if (!isTrusted(row)) moveTrust(state, turn, row, { type: "worker.tried", incarnation, atMs: turn.nowMs });
  const pointers = desk === "none" ? undefined : releases.pointers;
  const how = { plugin: state.task?.plugin ?? "", itemTimeoutMs: state.limits.itemTimeoutMs ?? 0, pointers };
  turn.send(session.port, { kind: "assignments", firstNumber, items: assigned, ...how });
}
