// The last Pull of each worker, so that one that is repeated has the answer of the first, which may have been lost on its way.
//
// Keeps true: a call that was overtaken on its way changes nothing; one call of a worker waits at a time, the newest (the
// reactor ends the session before it); answers that are remembered are bounded, and one that was forgotten is no loss: what the
// worker does not name with its next Pull never arrived, and is given out again.
import type { Clock } from "../../base/clock.ts";
import type { WorkerId } from "../../base/ids.ts";
import type { Leader } from "./leader.ts";
import { NOTHING, PullCall } from "./pull-call.ts";
import type { Pull, PullAnswer } from "./pull-call.ts";

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
