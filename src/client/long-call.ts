// A question that is asked again and again, whose call waits at the coordinator until it has news. Keeps true: nothing that happens between
// two calls is missed; a coordinator that does not have calls wait (one of 0.1, or one with too many of them) is not asked without pause.
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { failure } from "../base/errors.ts";

/** Less than a local run's coordinator stays for its followers, and than progress takes for silence. */
const WAIT_MS = 2_000;
/** Between calls that a coordinator does not have wait. */
const IDLE_MS = 500;

interface Waiting {
  /** As the answer before has said it; empty at first. */
  readonly after: string;
  readonly waitMs: number;
}

export class LongCall<Answer extends { readonly after: string }> {
  readonly #ask: (waiting: Waiting, options: { readonly signal?: AbortSignal }) => Promise<Answer>;
  readonly #clock: Clock;
  #after = "";
  /** The last answer came at once and said nothing new. */
  #isIdle = false;

  constructor(
    ask: (waiting: Waiting, options: { readonly signal?: AbortSignal }) => Promise<Answer>,
    clock: Clock,
  ) {
    [this.#ask, this.#clock] = [ask, clock];
  }

  /** At once the first time, then when there is news, or none for a while. One call at a time. Throws what `ask` throws; interrupted. */
  async next(signal?: AbortSignal): Promise<Answer> {
    if (this.#isIdle) await sleep(this.#clock, IDLE_MS, signal);
    if (signal?.aborted === true) throw failure("interrupted", {});
    const askedMs = this.#clock.monotonicMs();
    const answer = await this.#ask(
      { after: this.#after, waitMs: WAIT_MS },
      signal === undefined ? {} : { signal },
    );
    const hasWaited = this.#clock.monotonicMs() - askedMs >= WAIT_MS / 2;
    this.#isIdle = answer.after === this.#after && !hasWaited;
    this.#after = answer.after;
    return answer;
  }
}
