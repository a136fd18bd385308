// One turn of the reactor: the time it happens at, what it writes and what it wants done. The writes are one batch; the
// effects leave when that batch is committed and not before (C2).
//
// The turn's room: `input` is what comes in, `session-frame` what travels on sessions, `state` what turns change, `turn` what
// they write and ask for; `run-view`, `worker-view` and `pulse` are shown to people.
import type { Answer } from "./input.ts";
import type { WindowLoad } from "../ledger/window-loads.ts";
import type { Place } from "../ledger/place.ts";
import type { ScrubRequest } from "../ledger/scrub.ts";
import type { LedgerNumbers } from "../ledger/tally.ts";
import type { LateResult, SessionFrame, SessionPort, Statement } from "./session-frame.ts";
import type { EventPayloads, Topic } from "../../observe/events.ts";
import type { LogFields } from "../../observe/log.ts";
import type { Damage } from "../../storage/codec.ts";
import type { Durability, Entry } from "../../storage/store.ts";

export type Effect =
  | { readonly kind: "event"; readonly emit: EventCall }
  | { readonly kind: "warning"; readonly message: string; readonly fields: LogFields }
  | {
      readonly kind: "transition";
      readonly address: string;
      readonly event: string;
      readonly from: string;
      readonly to: string;
    }
  | { readonly kind: "send"; readonly port: SessionPort; readonly frame: SessionFrame }
  | { readonly kind: "endSession"; readonly port: SessionPort }
  /** Sessions of these bearers end, and none begins. */
  | { readonly kind: "revoked"; readonly ids: readonly string[] }
  | { readonly kind: "loadWindow"; readonly load: WindowLoad }
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
  | { readonly kind: "verifyLedger"; readonly numbers: LedgerNumbers }
  | { readonly kind: "scrubLedger"; readonly request: ScrubRequest }
  /** The ledger is damaged: the process has to end. */
  | { readonly kind: "damaged"; readonly damage: Damage }
  /** Lets an answer go. Total. */
  | { readonly kind: "answer"; readonly deliver: () => void };

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
  readonly #puts = new Map<string, Uint8Array>();
  readonly #deletes = new Set<string>();
  #durability: Durability = "flush";

  constructor(nowMs: number, wallMs: number, steadyMs: number) {
    this.nowMs = nowMs;
    this.wallMs = wallMs;
    this.steadyMs = steadyMs;
  }

  /** The last write of a key in a turn counts. */
  put({ key, value }: Entry): void {
    this.#deletes.delete(key);
    this.#puts.set(key, value);
  }

  delete(key: string): void {
    this.#puts.delete(key);
    this.#deletes.add(key);
  }

  /** The turn's batch must survive the loss of power before its effects leave. */
  requireSync(): void {
    this.#durability = "sync";
  }

  emit<T extends Topic>(topic: T, payload: EventPayloads[T]): void {
    // A union of pairs cannot be told from a pair of unions without saying so.
    this.effects.push({ kind: "event", emit: { topic, payload } as EventCall });
  }

  send(port: SessionPort, frame: SessionFrame): void {
    this.effects.push({ kind: "send", port, frame });
  }

  /** `answer` leaves when this turn is committed. */
  answer<T>(to: Answer<T>, answer: T): void {
    this.effects.push({ kind: "answer", deliver: () => to(answer) });
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

  get writes(): { puts: Entry[]; deletes: string[]; durability: Durability } {
    return {
      puts: [...this.#puts].map(([key, value]) => ({ key, value })),
      deletes: [...this.#deletes],
      durability: this.#durability,
    };
  }
}
