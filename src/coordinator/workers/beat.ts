// A heartbeat: registers who is unknown, moves the worker's chart, and is answered when it is on disk, unless that can be done
// before. The same beat again is answered again and changes nothing.
//
// Answers that do not wait for the disk: a disk that stalls for longer than workers wait would fence every one of them, although
// their leader lives (docs/adr/0024). Keeps true (C2): such an answer says that this leader leads and has heard this process of the
// worker, and nothing that a turn has decided; it leaves only if the store, read after the beat had come, names no later leader.
import type { IncarnationId } from "../../base/ids.ts";
import { ulidTimeMs } from "../../base/ids.ts";
import { encodeRecord } from "../../storage/codec.ts";
import { heartbeatKey } from "../../storage/keys.ts";
import type { Beat, BeatVerdict, ClaimedState, Input, Answer, BeatAnswer } from "../turn/input.ts";
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
  turn.answer(answer, { sequence: beat.sequence, verdict, ...assignmentOf(state) });
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
function verdictOf(row: WorkerRow): BeatVerdict {
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

/** The epoch of the partitions that is on disk. */
function assignmentOf({ keys }: CoordinatorState): Pick<BeatAnswer, "assignmentEpoch"> {
  return keys.isInUse ? { assignmentEpoch: keys.assignment.committedEpoch } : {};
}

export interface PromptBeatsOptions {
  readonly state: CoordinatorState;
  readonly mayAct: () => boolean;
  /** Whether the store names this leader, read after the call. Never rejects. */
  readonly leads: () => Promise<boolean>;
}

type BeatInput = Extract<Input, { readonly kind: "beat" }>;

interface Waiting {
  readonly sequence: number;
  readonly answer: Answer<BeatAnswer>;
}

export class PromptBeats {
  readonly #options: PromptBeatsOptions;
  /** Those whose turns are not committed. No more than there are inputs (C8). */
  readonly #waiting = new Set<Waiting>();
  #isAsking = false;
  #isOver = false;

  constructor(options: PromptBeatsOptions) {
    this.#options = options;
  }

  /** The input for its turn. It is answered once: by its turn, or before it. */
  admit(input: BeatInput): BeatInput {
    const { beat, answer } = input;
    if (this.#isOver || !isForNow(this.#options.state, beat)) return input;
    const waiting: Waiting = { sequence: beat.sequence, answer };
    this.#waiting.add(waiting);
    void this.#answer();
    return {
      ...input,
      answer: (given) => {
        if (this.#waiting.delete(waiting)) answer(given);
      },
    };
  }

  /** Nothing more is answered before its turn. */
  end(): void {
    this.#isOver = true;
  }

  async #answer(): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    const { leads, mayAct } = this.#options;
    while (this.#waiting.size > 0) {
      const asked = [...this.#waiting];
      // The next beat asks again.
      if (!(await leads()) || !mayAct() || this.#isOver) break;
      for (const waiting of asked)
        if (this.#waiting.delete(waiting))
          waiting.answer({
            sequence: waiting.sequence,
            verdict: "accepted",
            ...assignmentOf(this.#options.state),
          });
    }
    this.#isAsking = false;
  }
}

/**
 * Whether the process is known and has nothing to be told. A goodbye is on disk before it is answered, and so is whatever else
 * a worker acts upon: that it is superseded, that it is to drain.
 */
function isForNow({ workers }: CoordinatorState, { workerId, incarnation, state }: Beat): boolean {
  const row = workers.get(workerId);
  if (row === undefined || state === "Gone" || row.chart.context.incarnation !== incarnation) return false;
  return workerStateOf(row).lifecycle !== "Gone" && verdictOf(row) === "accepted";
}
