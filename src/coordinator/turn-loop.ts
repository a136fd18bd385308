// The reactor, running: inputs wait in a bounded inbox, a turn takes what is there, its batch is committed expecting this
// leader's epoch (C1), and only then do its effects leave (C2), but for most answers to beats. Turns are pipelined: the next
// one is computed while the last one is on its way to the disk.
//
// A batch that does not commit ends the loop, for the state in memory is then ahead of the store: `conflict` means that
// somebody else leads, `unknown` that the store cannot say, `expired` that this leader may not act any more. Either way
// nothing more leaves this process, and what would have is counted.
import { BoundedQueue } from "../base/bounded-queue.ts";
import type { Clock, Timer } from "../base/clock.ts";
import type { CommitOutcome, Expectation, Store } from "../storage/store.ts";
import type { StoreExtent } from "./lead/store-memory.ts";
import type { LeaderMeter } from "./ledger/leader-meter.ts";
import type { Input } from "./turn/input.ts";
import { PromptBeats } from "./workers/beat.ts";
import { react } from "./reactor.ts";
import { scanIntervalMs } from "./workers/scan-failures.ts";
import type { CoordinatorState } from "./turn/state.ts";
import type { Effect, Turn } from "./turn/turn.ts";

/** Why a turn did not take effect: what the store says, or that this leader's own deadline has passed. */
export type Setback = Exclude<CommitOutcome, { kind: "committed" }> | { readonly kind: "expired" };

/** Acts of a leader that may not act any more: counted, and not done. */
export interface Refused {
  readonly writes: number;
  readonly replies: number;
}

/** As the ledger's numbers say it. */
export type SyncedExtent = Omit<StoreExtent, "epoch">;

export interface TurnLoopOptions {
  readonly state: CoordinatorState;
  readonly store: Store;
  readonly clock: Clock;
  /** The epoch row as this leader wrote it. */
  readonly epochRow: Expectation;
  readonly inboxMax: number;
  readonly perform: (effect: Effect) => void;
  /**
   * Looks at the state that a turn has left. For tests: nothing is changed through it.
   * @internal
   */
  readonly inspect?: (state: CoordinatorState) => void;
  /** How far the ledger had got in a turn that is on stable storage now, and everything before it. Total. */
  readonly onSynced?: (extent: SyncedExtent) => void;
  /** The loop has ended by itself; called once. */
  readonly onBroken: (why: Setback) => void;
  /** Whether this leader may act at this moment: asked before each commit, and before effects leave. */
  readonly mayAct: () => boolean;
  /** Whether the store names this leader, read after the call. Never rejects. */
  readonly leads: () => Promise<boolean>;
}

const INPUTS_PER_TURN_MAX = 1_024;
const COMMITS_IN_FLIGHT_MAX = 4;
/** Turns of the event loop that a scan lets sockets be read for, at most, before it judges. */
const LISTENING_TURNS_MAX = 64;

export class TurnLoop {
  readonly #options: TurnLoopOptions;
  readonly #inbox: BoundedQueue<Input>;
  readonly #beats: PromptBeats;
  #fed: Input[] = [];
  #scheduled = false;
  #inFlight = 0;
  /** Nothing more is taken in. */
  #stopping = false;
  /** Nothing more is done. */
  #ended = false;
  #isBroken = false;
  #refused: Refused = { writes: 0, replies: 0 };
  #arrived = 0;
  #scanTimer: Timer | undefined;
  #wakeTimer: Timer | undefined;
  #holdsJudgement = false;
  #tail: Promise<void> = Promise.resolve();

  constructor(options: TurnLoopOptions) {
    this.#options = options;
    this.#inbox = new BoundedQueue(options.inboxMax);
    this.#beats = new PromptBeats(options);
    this.#armScan();
  }

  /** False when the inbox is full or the loop ends: the input was not taken and will not be answered. */
  push(input: Input): boolean {
    if (this.#stopping || this.#ended) return false;
    if (this.#inbox.size >= this.#options.inboxMax) {
      this.#meter.inboxRefused++;
      return false;
    }
    this.#inbox.push(input.kind === "beat" ? this.#beats.admit(input) : input);
    this.#arrived++;
    this.#schedule();
    return true;
  }

  /** An answer to something that the reactor itself asked for; there are few at a time, so it is always taken. */
  readonly feed = (input: Input): void => {
    if (this.#ended) return;
    this.#fed.push(input);
    this.#schedule();
  };

  /** From now on nobody can be heard, so nobody is judged for being silent. */
  stopJudging(): void {
    this.#scanTimer?.cancel();
  }

  /** While this leader may be the one that is cut off, nobody is judged for being silent; the time counts as its own. */
  holdJudgement(isHeld: boolean): void {
    this.#holdsJudgement = isHeld;
  }

  /** Handles what has arrived, commits it, lets its effects leave, and ends. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.stopJudging();
    while (!this.#ended && (this.waiting > 0 || this.#inFlight > 0)) {
      this.#run();
      await this.#tail;
    }
    this.#wakeTimer?.cancel();
    this.#ended = true;
  }

  /** Nothing more is taken in, committed or judged; resolves when no commit is under way, and the store may be closed. */
  async halt(): Promise<void> {
    this.#ended = true;
    this.#beats.end();
    this.stopJudging();
    this.#wakeTimer?.cancel();
    await this.#tail;
  }

  get refused(): Refused {
    return this.#refused;
  }

  /** Inputs that no turn has taken yet. */
  get waiting(): number {
    return this.#inbox.size + this.#fed.length;
  }

  get #meter(): LeaderMeter {
    return this.#options.state.ledger.meter;
  }

  #schedule(): void {
    if (this.#scheduled || this.#ended || this.#inFlight >= COMMITS_IN_FLIGHT_MAX) return;
    this.#scheduled = true;
    this.#options.clock.nextTurn(() => {
      this.#scheduled = false;
      this.#run();
    });
  }

  #run(): void {
    if (this.#ended || this.waiting === 0 || this.#inFlight >= COMMITS_IN_FLIGHT_MAX) return;
    const { clock, state } = this.#options;
    const inputs = [...this.#fed, ...this.#inbox.take(INPUTS_PER_TURN_MAX)];
    this.#fed = [];
    // C7: the one reading of the clocks that the turn knows.
    const nowMs = clock.monotonicMs();
    const turn = react(state, inputs, { nowMs, wallMs: clock.wallMs() });
    this.#meter.turnInputs.observe(inputs.length);
    this.#meter.turnDuration.observeMs(clock.monotonicMs() - nowMs);
    this.#options.inspect?.(state);
    this.#armWake();
    this.#inFlight++;
    const extent = turn.isSynced ? extentOf(state) : undefined;
    const outcome = this.#commit(turn);
    this.#tail = this.#tail.then(async () => this.#finish(turn, await outcome, extent));
    if (this.waiting > 0) this.#schedule();
  }

  #commit(turn: Turn): Promise<CommitOutcome | Setback> {
    if (!this.#options.mayAct()) return Promise.resolve({ kind: "expired" });
    // Nothing to write or to confirm: the effects still wait for the turns before.
    if (!turn.hasWrites && !turn.isSynced) return Promise.resolve({ kind: "committed" });
    const { puts, deletes, durability, expect: rows } = turn.writes;
    const expect = [this.#options.epochRow, ...rows];
    return this.#options.store.commit({ puts, deletes, expect, durability });
  }

  #finish(turn: Turn, outcome: CommitOutcome | Setback, extent: SyncedExtent | undefined): void {
    this.#inFlight--;
    if (extent !== undefined && outcome.kind === "committed") this.#options.onSynced?.(extent);
    const mayLeave = !this.#isBroken && this.#options.mayAct();
    if (outcome.kind !== "committed" || !mayLeave) return this.#refuse(turn, outcome);
    for (const effect of turn.effects) this.#options.perform(effect);
    if (this.waiting > 0) this.#schedule();
  }

  /** A leader that may not act any more goes on taking inputs, each to be refused, until the process is gone. */
  #refuse(turn: Turn, outcome: CommitOutcome | Setback): void {
    const isWrite = outcome.kind !== "committed" && turn.hasWrites;
    const { writes, replies } = this.#refused;
    this.#refused = {
      writes: writes + (isWrite ? 1 : 0),
      replies: replies + turn.effects.filter(leaves).length,
    };
    const setback = outcome.kind === "committed" ? ({ kind: "expired" } as const) : outcome;
    this.#ended ||= setback.kind !== "expired";
    if (this.waiting > 0) this.#schedule();
    if (this.#isBroken) return;
    this.#isBroken = true;
    this.#beats.end();
    this.#scanTimer?.cancel();
    this.#wakeTimer?.cancel();
    this.#options.onBroken(setback);
  }

  /** The room of keys may want a turn although nothing happens. */
  #armWake(): void {
    const { clock, state } = this.#options;
    const { wakesAtMs } = state.keys;
    if (wakesAtMs === undefined || this.#wakeTimer !== undefined) return;
    this.#wakeTimer = clock.after(Math.max(1, wakesAtMs - clock.monotonicMs()), () => {
      this.#wakeTimer = undefined;
      this.feed({ kind: "wake" });
    });
  }

  #armScan(): void {
    const { clock, state } = this.#options;
    this.#scanTimer = clock.after(scanIntervalMs(state), () => {
      this.#armScan();
      if (!this.#holdsJudgement) this.#listenThenScan(LISTENING_TURNS_MAX, this.#arrived);
    });
  }

  /** A scan judges by what has arrived, so what waits in the sockets is read first: until a turn brings nothing new. */
  #listenThenScan(turnsLeft: number, arrivedBefore: number): void {
    this.#options.clock.nextTurn(() => {
      if (this.#ended) return;
      if (turnsLeft > 0 && this.#arrived !== arrivedBefore)
        this.#listenThenScan(turnsLeft - 1, this.#arrived);
      // A full inbox is work enough: the next scan comes in half an interval, and forgives the delay.
      else this.push({ kind: "scan" });
    });
  }
}

function extentOf({ ledger: { tally, setAside } }: CoordinatorState): SyncedExtent {
  const done = tally.count("done") + setAside.size;
  return { completion: tally.nextCompletion, submitted: tally.nextSequence, done };
}

/** Whether others would have seen the effect; the rest are questions to the own store. */
function leaves({ kind }: Effect): boolean {
  return !QUESTIONS.has(kind);
}

const QUESTIONS: ReadonlySet<Effect["kind"]> = new Set([
  "loadWindow",
  "loadKeys",
  "verifyLedger",
  "scrubLedger",
  "examineClaims",
  "examineReport",
  "confirmLeadership",
  "readCounts",
]);
