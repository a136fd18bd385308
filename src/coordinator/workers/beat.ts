// A heartbeat: registers who is unknown, moves the worker's chart, and is answered when it is on disk, unless that can be done
// before (prompt-beats.ts). The same beat again is answered again and changes nothing.
import type { IncarnationId } from "../../base/ids.ts";
import { ulidTimeMs } from "../../base/ids.ts";
import { encodeRecord } from "../../storage/codec.ts";
import { heartbeatKey } from "../../storage/keys.ts";
import type { Beat, BeatVerdict, ClaimedState, Input } from "../turn/input.ts";
import { hasRoom, move, refresh, register, replaceIncarnation } from "./registry.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import { workerStateOf } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";
import { beatRecord } from "./worker-record.ts";

/**
 * The event that brings the coordinator's copy of the chart to where the worker says it is, from wherever it was: a beat
 * that was lost on the way leaves no gap. The chart ignores what already happened.
 */
const EVENT_OF: {
  readonly [State in ClaimedState]: "worker.welcomed" | "worker.drain" | "worker.left" | undefined;
} = {
  Init: undefined,
  Ready: "worker.welcomed",
  Draining: "worker.drain",
  Gone: "worker.left",
};

export function onBeat(
  state: CoordinatorState,
  turn: Turn,
  { beat, answer }: Extract<Input, { kind: "beat" }>,
): void {
  const verdict = take(state, turn, beat);
  turn.answer(answer, { sequence: beat.sequence, verdict });
}

function take(state: CoordinatorState, turn: Turn, beat: Beat): BeatVerdict {
  const known = knownAs(state, turn, beat);
  if (known !== undefined && beat.incarnation < known.chart.context.incarnation) return "superseded";
  const isNew = known?.chart.context.incarnation !== beat.incarnation;
  if (isNew && isAhead(beat.incarnation, turn)) return "ahead";
  if (known === undefined && !hasRoom(state, turn)) return "refused";
  const row = known ?? register(state, turn, beat);
  if (beat.incarnation > row.chart.context.incarnation) replaceIncarnation(state, turn, row, beat);
  if (beat.sequence <= row.sequence) return verdictOf(row);
  refresh(state, turn, row, beat);
  applyBeat(state, turn, row, beat);
  return verdictOf(row);
}

/**
 * As far as the clock of a new process may be ahead of this one, as far as `notBefore` of a certificate lies back. An incarnation
 * of some year to come would end every later process of that worker. One that lies back harms nobody, and a process
 * that has run for weeks may be new to a coordinator.
 */
const AHEAD_MAX_MS = 86_400_000;

function isAhead(incarnation: IncarnationId, { wallMs }: Turn): boolean {
  return ulidTimeMs(incarnation) > wallMs + AHEAD_MAX_MS;
}

/** The worker's row. One of a process from the future, which only a coordinator of 0.1 has let in, is forgotten when it is over. */
function knownAs(
  state: CoordinatorState,
  turn: Turn,
  { workerId, incarnation }: Beat,
): WorkerRow | undefined {
  const row = state.workers.get(workerId);
  const current = row?.chart.context.incarnation as IncarnationId | undefined;
  if (row !== undefined && current !== undefined && incarnation < current && isAhead(current, turn))
    move(state, turn, row, { type: "worker.expired" });
  return state.workers.get(workerId);
}

/** A worker that drains already, or has left, needs no telling. */
export function verdictOf(row: WorkerRow): BeatVerdict {
  const { lifecycle } = workerStateOf(row);
  return row.chart.context.isToDrain && (lifecycle === "Init" || lifecycle === "Ready")
    ? "drain"
    : "accepted";
}

function applyBeat(state: CoordinatorState, turn: Turn, row: WorkerRow, beat: Beat): void {
  const { incarnation } = beat;
  move(state, turn, row, { type: "beat.arrived", incarnation });
  const type = EVENT_OF[beat.state];
  if (type !== undefined) move(state, turn, row, { type, incarnation });
  const key = heartbeatKey(row.id);
  turn.put({ key, value: encodeRecord(beatRecord, key, { ...beat, arrivedAtWallMs: turn.wallMs }) });
  turn.emit("worker_heartbeat", {
    worker_id: row.id,
    incarnation,
    sequence: beat.sequence,
    state: beat.state,
    load: beat.load,
  });
}
