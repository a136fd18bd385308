// One key for those who stay: a call waits at the coordinator until the key stands otherwise than the answer before has said. Keeps true:
// nothing that happens between two calls is missed; a coordinator that does not have calls wait is not asked without pause.
import type { Client } from "@connectrpc/connect";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { failure, RolloutError } from "../base/errors.ts";
import type { KeyService } from "../gen/rollout/v1/keys_pb.ts";
import type { WholeKey } from "./keys.ts";
import { wholeKeyOf } from "./keys.ts";

/** Less than a local run's coordinator stays for its followers. */
const WAIT_MS = 2_000;
/** Between calls that a coordinator does not have wait. */
const IDLE_MS = 500;
/** How a key stands that is not there, as the coordinator says it. */
const ABSENT = "0";

export interface SeenKey {
  /** Undefined while the run has no such key. */
  readonly key: WholeKey | undefined;
  /** Nothing of the run changes any more, unless it is reopened. */
  readonly isOver: boolean;
}

export class KeyNews {
  readonly #calls: Pick<Client<typeof KeyService>, "getKey">;
  readonly #key: string;
  readonly #clock: Clock;
  #after = "";
  /** The last answer came at once and said nothing new. */
  #isIdle = false;

  constructor(calls: Pick<Client<typeof KeyService>, "getKey">, key: string, clock: Clock) {
    [this.#calls, this.#key, this.#clock] = [calls, key, clock];
  }

  /** At once the first time, then when there is news, or none for a while. One call at a time. Throws the transport's rows; interrupted. */
  async next(signal?: AbortSignal): Promise<SeenKey> {
    if (this.#isIdle) await sleep(this.#clock, IDLE_MS, signal);
    if (signal?.aborted === true) throw failure("interrupted", {});
    const askedMs = this.#clock.monotonicMs();
    const { after, seen } = await this.#ask(signal);
    const hasWaited = this.#clock.monotonicMs() - askedMs >= WAIT_MS / 2;
    this.#isIdle = after === this.#after && !hasWaited;
    this.#after = after;
    return seen;
  }

  async #ask(signal: AbortSignal | undefined): Promise<{ readonly after: string; readonly seen: SeenKey }> {
    const request = { key: this.#key, withState: true, after: this.#after, waitMs: WAIT_MS };
    try {
      const answer = await this.#calls.getKey(request, signal === undefined ? {} : { signal });
      return { after: answer.after, seen: { key: wholeKeyOf(answer), isOver: answer.end } };
    } catch (error) {
      if (!(error instanceof RolloutError) || error.code !== "key_unknown") throw error;
      return { after: ABSENT, seen: { key: undefined, isOver: false } };
    }
  }
}
