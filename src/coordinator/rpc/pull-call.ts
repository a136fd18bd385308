// One Pull, as the reactor sees it: a session that opens with what the worker holds, asks once, and takes one frame of work.
// So there is one way in which work is reconciled, given, stolen and dropped, and a call that answers what a stream would
// have said.
//
// Keeps true: an answer leaves after the reactor has said that nothing more is coming, so what was given is in it; every
// answer, a repeated one too, has passed the reactor, and so a leader that still leads.
import type { Clock, Timer } from "../../base/clock.ts";
import { failure } from "../../base/errors.ts";
import type { IncarnationId, WorkerId } from "../../base/ids.ts";
import type {
  HeldClaim,
  NamedAttempt,
  SessionFrame,
  SessionInput,
  SessionPort,
} from "../turn/session-frame.ts";
import type { Leader } from "./leader.ts";
import { submit } from "./leader.ts";

/** Memory that the name of an attempt costs. */
export const ATTEMPT_OVERHEAD_BYTES = 256;

/** A PullRequest in the coordinator's words. */
export interface Pull {
  readonly workerId: WorkerId;
  readonly incarnation: IncarnationId;
  readonly requestId: string;
  readonly held: readonly HeldClaim[];
  readonly released: readonly NamedAttempt[];
  readonly ackedAssignment: number;
  /** Grows with each call of a process; 0: it does not count them. */
  readonly callNumber: number;
  readonly credit: number;
  readonly waitMs: number;
}

export interface PullAnswer {
  readonly assignments: Extract<SessionFrame, { kind: "assignments" }> | undefined;
  readonly release: readonly NamedAttempt[];
  readonly drop: readonly NamedAttempt[];
}

/** The answer to a call that does not speak for the worker any more. */
export const NOTHING: PullAnswer = { assignments: undefined, release: [], drop: [] };

export class PullCall implements SessionPort {
  readonly pull: Pull;
  readonly #leader: Leader;
  readonly #clock: Clock;
  /** Told once, when there will be no answer (again). */
  readonly #onOver: (call: PullCall) => void;
  #answer: PullAnswer = NOTHING;
  /** Frames that come later are for the next call. */
  #isComplete = false;
  #isWelcome = false;
  #isHurried = false;
  #isOver = false;
  #waiting: Timer | undefined;
  /** Resolves when there is something to say, or nobody waits any longer. */
  readonly #heard = Promise.withResolvers<true>();
  /** Resolves with whether this is still the worker's session. */
  #withdrawal: PromiseWithResolvers<boolean> | undefined;

  constructor(pull: Pull, leader: Leader, clock: Clock, onOver: (call: PullCall) => void) {
    this.pull = pull;
    this.#leader = leader;
    this.#clock = clock;
    this.#onOver = onOver;
    // Nobody may be waiting when it fails.
    this.#heard.promise.catch(() => undefined);
  }

  /** Asks. `before` is the worker's last call, by which it was asked for what it releases now. Throws overloaded. */
  open(before: PullCall | undefined): void {
    const { workerId, incarnation, held, ackedAssignment, released, credit, callNumber } = this.pull;
    if (released.length > 0 && before !== undefined)
      submit(this.#leader, { kind: "released", workerId, port: before, attempts: released });
    const stated = { held, ackedAssignment, sessionNumber: callNumber };
    this.#say({ kind: "hello", incarnation, ...stated, takesOneFrame: true });
    if (credit > 0) this.#say({ kind: "credit", more: credit });
  }

  /**
   * The answer, when there is something to say or the wait is over; undefined when this is not the worker's session any more.
   * May be asked for again, and is the same. Throws overloaded, and request_invalid for a worker that nobody has heard of.
   */
  async answer(): Promise<PullAnswer | undefined> {
    await this.#heard.promise;
    const isCurrent = !this.#isOver && (await this.#withdraw());
    return isCurrent ? this.#answer : undefined;
  }

  /** Nobody waits any longer: what has come is the answer. Idempotent. */
  hurry(): void {
    this.#isHurried = true;
    if (this.#isWelcome) this.#heard.resolve(true);
  }

  /** Another session takes its place, or it cannot be remembered any longer. Idempotent. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#waiting?.cancel();
    this.#answer = NOTHING;
    if (this.#isWelcome) this.#heard.resolve(true);
    else this.#heard.reject(unheardOf());
    this.#withdrawal?.resolve(false);
    this.#onOver(this);
  }

  /** Bytes that it keeps in memory: the payloads of the answer, and the attempts that the question named. */
  get bytes(): number {
    const { held, released } = this.pull;
    const items = this.#answer.assignments?.items ?? [];
    const named = (held.length + released.length) * ATTEMPT_OVERHEAD_BYTES;
    return items.reduce((sum, { payload }) => sum + payload.length, named);
  }

  send(frame: SessionFrame): void {
    if (this.#isOver) return;
    if (frame.kind === "creditWithdrawn") {
      this.#isComplete = true;
      this.#withdrawal?.resolve(true);
      this.#withdrawal = undefined;
    } else if (!this.#isComplete) this.#take(frame);
  }

  #take(frame: SessionFrame): void {
    switch (frame.kind) {
      case "verdict":
        return this.#takeVerdict(frame.keep);
      case "assignments":
        this.#answer = { ...this.#answer, assignments: frame };
        return this.#heard.resolve(true);
      case "release":
        this.#answer = { ...this.#answer, release: frame.attempts };
        return this.#heard.resolve(true);
      case "drop":
        this.#answer = { ...this.#answer, drop: [...this.#answer.drop, ...frame.attempts] };
        return this.#heard.resolve(true);
      case "resultsAcknowledged":
      case "creditWithdrawn":
        return;
    }
  }

  #takeVerdict(keep: readonly boolean[]): void {
    this.#isWelcome = true;
    const drop = this.pull.held.filter((_, at) => keep[at] !== true);
    this.#answer = { ...this.#answer, drop };
    const { waitMs } = this.pull;
    if (drop.length > 0 || this.#isHurried || waitMs === 0) return this.#heard.resolve(true);
    this.#waiting = this.#clock.after(waitMs, () => this.#heard.resolve(true), { background: true });
  }

  #withdraw(): Promise<boolean> {
    this.#waiting?.cancel();
    if (this.#withdrawal !== undefined) return this.#withdrawal.promise;
    this.#say({ kind: "withdrawCredit" });
    return (this.#withdrawal = Promise.withResolvers()).promise;
  }

  #say(input: Unaddressed<SessionInput>): void {
    submit(this.#leader, { ...input, workerId: this.pull.workerId, port: this });
  }
}

type Unaddressed<Frame> = Frame extends unknown ? Omit<Frame, "workerId" | "port"> : never;

function unheardOf(): Error {
  const reason =
    "this process of the worker has not been heard of (it beats before it pulls), or a later call of it has";
  return failure("request_invalid", { method: "Pull", reason });
}
