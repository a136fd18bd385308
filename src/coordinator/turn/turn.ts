// One turn of the reactor: the time it happens at, what it writes and what it wants done. The writes are one batch; the
// effects leave when that batch is committed and not before (C2).
//
// The turn's room: `input` is what comes in, `session-frame` what travels on sessions, `state` what turns change, `turn` what
// they write and ask for; `operator-message` says in which form; `run-terms` and `key-terms` are the words for the run and for keys.
import type { charts } from "../../../machines/index.ts";
import type { Answer } from "./input.ts";
import type { KeyNews } from "../keys/awaited-keys.ts";
import type { KeysLoad } from "../keys/key-memory.ts";
import type { KeyNumbers } from "../keys/key-records.ts";
import type { WindowLoad } from "../ledger/window-loads.ts";
import type { Place } from "../ledger/place.ts";
import type { ScrubRequest } from "../ledger/scrub.ts";
import type { LedgerNumbers } from "../ledger/tally.ts";
import type { RunReach } from "./run-terms.ts";
import type { LateResult, SessionFrame, SessionPort, Statement, StatesReading } from "./session-frame.ts";
import type { EventPayloads, Topic } from "../../observe/events.ts";
import type { LogFields } from "../../observe/log.ts";
import type { Damage } from "../../storage/codec.ts";
import type { Durability, Entry, Expectation } from "../../storage/store.ts";
import type { FleetQuestion } from "../fleet/ports.ts";
import type { ReleaseQuestion } from "../release/ports.ts";

type ChartName = keyof typeof charts;

export type Effect =
  | { readonly kind: "event"; readonly emit: EventCall }
  | { readonly kind: "warning"; readonly message: string; readonly fields: LogFields }
  | ({ readonly kind: "transition" } & SeenStep)
  | { readonly kind: "send"; readonly port: SessionPort; readonly frame: SessionFrame }
  | { readonly kind: "endSession"; readonly port: SessionPort }
  /** Sessions of these bearers end, and none begins. */
  | { readonly kind: "revoked"; readonly ids: readonly string[] }
  | { readonly kind: "loadWindow"; readonly load: WindowLoad }
  | { readonly kind: "loadKeys"; readonly load: KeysLoad }
  | { readonly kind: "readStates"; readonly reading: StatesReading }
  | {
      readonly kind: "examineClaims";
      readonly statement: Statement;
      /** Priority → the first sequence of it that was never given out. */
      readonly cursors: ReadonlyMap<number, number>;
    }
  | {
      readonly kind: "examineReport";
      readonly late: LateResult;
      /** As above; none for what this leader has given out. */
      readonly cursors: ReadonlyMap<number, number>;
    }
  | {
      readonly kind: "verifyLedger";
      readonly numbers: LedgerNumbers;
      /** Undefined while the run has no keys. */
      readonly keyNumbers: KeyNumbers | undefined;
    }
  | { readonly kind: "scrubLedger"; readonly request: ScrubRequest }
  | ReleaseQuestion
  /** For the provider of a fleet. */
  | { readonly kind: "askProvider"; readonly question: FleetQuestion }
  /** The ledger is damaged: the process has to end. */
  | { readonly kind: "damaged"; readonly damage: Damage }
  /** There is news of the run: more results, other numbers, a step of a chart. */
  | { readonly kind: "reached"; readonly reach: RunReach }
  /** Keys that calls wait for stand otherwise. */
  | { readonly kind: "keysMoved"; readonly news: readonly KeyNews[] }
  /** Lets an answer go. Total. */
  | { readonly kind: "answer"; readonly deliver: () => void };

/** A step of a chart, for those who look on. */
export interface SeenStep {
  readonly chart: ChartName;
  /** `worker/<id>`, `item/<digits>`, `coordinator/<address>`, `release/<id>`, `release-stage/<id>/<number>`, `fleet/<name>`, `allocation/<id>`, `run`. */
  readonly address: string;
  readonly event: string;
  readonly from: string;
  readonly to: string;
}

/** A topic with its own payload. */
export type EventCall = { [T in Topic]: { readonly topic: T; readonly payload: EventPayloads[T] } }[Topic];

export class Turn {
  /** Monotonic; read once per turn (C7). */
  readonly nowMs: number;
  /** For people and for records that nothing is decided by. */
  readonly wallMs: number;
  /** For waits of items, their restlessness and the run's time limit, which outlive a restart; see `steadyMsOf`. */
  readonly steadyMs: number;
  readonly effects: Effect[] = [];
  /** Items that became final in this turn, in order. */
  readonly completed: Place[] = [];
  /** False when many workers went down together: then silence is not the items' doing. */
  countsLosses = true;
  /** Whether the run was paused in this turn. */
  hasPaused = false;
  /** Whether the ledger's numbers changed and have to be written. */
  ledgerTouched = false;
  /** Whether the run or a worker has moved, or is new. */
  hasStepped = false;
  /** Whether a worker says other things of itself than before. */
  hasOtherWords = false;
  /** Whether it takes a number of completions although nothing became final: states that it has taken from elsewhere have it. */
  takesCompletion = false;

  /** Whether workers are to hand back what they have of a release's candidate and have not started. */
  hasRecalledTrials = false;
  /** Whether the turn publishes a snapshot of what it has left. */
  publishes = false;
  readonly #puts = new Map<string, Entry>();
  readonly #deletes = new Set<string>();
  readonly #expected: Expectation[] = [];
  #durability: Durability = "flush";

  constructor(nowMs: number, wallMs: number, steadyMs: number) {
    this.nowMs = nowMs;
    this.wallMs = wallMs;
    this.steadyMs = steadyMs;
  }

  /** The last write of a key in a turn counts. */
  put(entry: Entry): void {
    this.#deletes.delete(entry.key);
    this.#puts.set(entry.key, entry);
  }

  delete(key: string): void {
    this.#puts.delete(key);
    this.#deletes.add(key);
  }

  /** The turn's batch is committed only if that row is as is said, beside the epoch's. One that this turn has written is. */
  expect(row: Expectation): void {
    if (!this.#puts.has(row.key)) this.#expected.push(row);
  }

  /** A question that is answered to a later turn. */
  ask(question: ReleaseQuestion): void {
    this.effects.push(question);
  }

  /** Leaves when the turn is committed, and is answered to a later one. */
  askProvider(question: FleetQuestion): void {
    this.effects.push({ kind: "askProvider", question });
  }

  recallTrials(): void {
    this.hasRecalledTrials = true;
  }

  /**
   * The turn's batch must survive the loss of power before its effects leave. It is committed also where it writes nothing: an answer that rests
   * on a decision of before leaves only when the store has confirmed that it knows this leader and has lost nothing of what it was told.
   */
  requireSync(): void {
    this.#durability = "sync";
  }

  emit<T extends Topic>(topic: T, payload: EventPayloads[T]): void {
    // A union of pairs cannot be told from a pair of unions without saying so.
    this.effects.push({ kind: "event", emit: { topic, payload } as EventCall });
  }

  /** A step of a chart of which there are few: one of an item is no news of its own. */
  stepped(step: SeenStep): void {
    this.hasStepped = true;
    this.effects.push({ kind: "transition", ...step });
  }

  warn(message: string, fields: LogFields): void {
    this.effects.push({ kind: "warning", message, fields });
  }

  send(port: SessionPort, frame: SessionFrame): void {
    this.effects.push({ kind: "send", port, frame });
  }

  /** `answer` leaves when this turn is committed. */
  answer<T>(to: Answer<T>, answer: T): void {
    this.effects.push({ kind: "answer", deliver: () => to(answer) });
  }

  /** The input is not in memory any more, as the edge is told when this turn is committed. */
  settle({ settled }: { readonly settled?: (() => void) | undefined }): void {
    if (settled !== undefined) this.answer(settled, undefined);
  }

  /** The worker opens another session, and states in it what it has. */
  endSession(port: SessionPort): void {
    this.effects.push({ kind: "endSession", port });
  }

  /**
   * The ledger is damaged, and nobody may lead by what is not so: the process ends. A leader that was followed by another and has
   * not noticed yet takes that one's rows for damage, so the turn writes something: its batch then fails by the epoch (C1).
   */
  foundDamage(damage: Damage): void {
    this.ledgerTouched = true;
    this.effects.push({ kind: "damaged", damage });
  }

  get isSynced(): boolean {
    return this.#durability === "sync";
  }

  get hasWrites(): boolean {
    return this.#puts.size + this.#deletes.size > 0;
  }

  get writes(): { puts: Entry[]; deletes: string[]; durability: Durability; expect: Expectation[] } {
    return {
      expect: this.#expected,
      puts: [...this.#puts.values()],
      deletes: [...this.#deletes],
      durability: this.#durability,
    };
  }
}
