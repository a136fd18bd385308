// One Pull, as the reactor sees it: a session that opens with what the worker holds, asks once, and takes one frame of work.
// So there is one way in which work is reconciled, given, stolen and dropped, and a call that answers what a stream would
// have said.
//
// Keeps true: an answer leaves after the reactor has said that nothing more is coming, so what was given is in it; every
// answer, a repeated one too, has passed the reactor, and so a leader that still leads.
//
// The last Pull of each worker is remembered, so that one that is repeated has the answer of the first, which may have been lost on its way.
//
// Keeps true: a call that was overtaken on its way changes nothing; one call of a worker waits at a time, the newest (the
// reactor ends the session before it); answers that are remembered are bounded, and one that was forgotten is no loss: what the
// worker does not name with its next Pull never arrived, and is given out again.
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
  readonly handedBack: readonly NamedAttempt[];
  readonly ackedAssignment: number;
  /** Grows with each call of a process; 0: it does not count them. */
  readonly callNumber: number;
  readonly credit: number;
  readonly waitMs: number;
}

export interface PullAnswer {
  readonly assignments: Extract<SessionFrame, { kind: "assignments" }> | undefined;
  readonly recall: readonly NamedAttempt[];
  readonly drop: readonly NamedAttempt[];
}

/** The answer to a call that does not speak for the worker any more. */
const NOTHING: PullAnswer = { assignments: undefined, recall: [], drop: [] };

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

  /** Asks. `before` is the worker's last call, by which it was asked for what it hands back now. Throws overloaded. */
  open(before: PullCall | undefined): void {
    const { workerId, incarnation, held, ackedAssignment, handedBack, credit, callNumber } = this.pull;
    if (handedBack.length > 0 && before !== undefined)
      submit(this.#leader, { kind: "handedBack", workerId, port: before, attempts: handedBack });
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
    const { held, handedBack } = this.pull;
    const items = this.#answer.assignments?.items ?? [];
    const named = (held.length + handedBack.length) * ATTEMPT_OVERHEAD_BYTES;
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
      case "recall":
        this.#answer = { ...this.#answer, recall: frame.attempts };
        return this.#heard.resolve(true);
      case "drop":
        this.#answer = { ...this.#answer, drop: [...this.#answer.drop, ...frame.attempts] };
        return this.#heard.resolve(true);
      // One that makes calls keeps no states.
      case "checkpointRequest":
      case "partitionStates":
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

/** Bytes of all answers that are remembered, and of their questions. */
const REMEMBERED_BYTES_MAX = 64 * 1024 * 1024;

export class PullDesk {
  readonly #leader: Leader;
  readonly #clock: Clock;
  readonly #rememberedBytesMax: number;
  readonly #calls = new Map<WorkerId, PullCall>();
  /** Calls that have answered, oldest first, and their bytes. */
  readonly #answered = new Map<PullCall, number>();
  #rememberedBytes = 0;

  constructor(leader: Leader, clock: Clock, rememberedBytesMax = REMEMBERED_BYTES_MAX) {
    this.#leader = leader;
    this.#clock = clock;
    this.#rememberedBytesMax = rememberedBytesMax;
  }

  /** Answers at the latest soon after `cancelled` aborts. Throws what `PullCall.answer` throws. */
  async pull(pull: Pull, cancelled: AbortSignal): Promise<PullAnswer> {
    const last = this.#calls.get(pull.workerId);
    if (last !== undefined && isSame(last.pull, pull)) {
      const answer = await this.#await(last, cancelled);
      // Its session has ended, by another call or otherwise: then it is asked anew.
      if (answer !== undefined || this.#calls.has(pull.workerId)) return answer ?? NOTHING;
    }
    if (last !== undefined && isOvertaken(last.pull, pull)) return NOTHING;
    const call = this.#open(pull);
    return (await this.#await(call, cancelled)) ?? NOTHING;
  }

  #open(pull: Pull): PullCall {
    const last = this.#calls.get(pull.workerId);
    const call = new PullCall(pull, this.#leader, this.#clock, (over) => this.#forget(over));
    this.#calls.set(pull.workerId, call);
    try {
      call.open(last);
    } catch (error) {
      call.end();
      throw error;
    }
    return call;
  }

  async #await(call: PullCall, cancelled: AbortSignal): Promise<PullAnswer | undefined> {
    const hurry = (): void => call.hurry();
    cancelled.addEventListener("abort", hurry);
    if (cancelled.aborted) hurry();
    try {
      const answer = await call.answer();
      if (answer !== undefined) this.#remember(call);
      return answer;
    } finally {
      cancelled.removeEventListener("abort", hurry);
    }
  }

  #remember(call: PullCall): void {
    if (this.#answered.has(call)) return;
    this.#answered.set(call, call.bytes);
    this.#rememberedBytes += call.bytes;
    for (const [oldest] of this.#answered) {
      if (this.#rememberedBytes <= this.#rememberedBytesMax || oldest === call) return;
      oldest.end();
    }
  }

  #forget(call: PullCall): void {
    this.#rememberedBytes -= this.#answered.get(call) ?? 0;
    this.#answered.delete(call);
    const { workerId } = call.pull;
    if (this.#calls.get(workerId) === call) this.#calls.delete(workerId);
  }
}

/** By `last`. It states what the worker had before that: what has been given since would be taken for lost. */
function isOvertaken(last: Pull, { incarnation, callNumber }: Pull): boolean {
  return incarnation === last.incarnation && callNumber > 0 && callNumber < last.callNumber;
}

function isSame(last: Pull, pull: Pull): boolean {
  return last.requestId === pull.requestId && last.incarnation === pull.incarnation;
}
