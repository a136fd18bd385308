// The run in numbers for those who stay: a call waits at the coordinator until there is something new. Keeps true: nothing that happens
// between two calls is missed; a coordinator that does not have calls wait (one of 0.1, or one with too many of them) is not asked without pause.
import type { Client } from "@connectrpc/connect";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { failure } from "../base/errors.ts";
import type { GetRunResponse, OperatorService } from "../gen/rollout/v1/run_pb.ts";
import type { RunStatus } from "./run-status.ts";
import { statusOf } from "./run-status.ts";

/** Less than a local run's coordinator stays for its followers, and than progress takes for silence. */
const WAIT_MS = 2_000;
/** Between calls that a coordinator does not have wait. */
const IDLE_MS = 500;

export interface NewsOptions {
  readonly clock: Clock;
  /** Numbers that change are collected for so long. Steps of the run and of workers come at once. */
  readonly collectMs: number;
}

export interface SeenRun {
  readonly answer: GetRunResponse;
  readonly status: RunStatus;
}

export class RunNews {
  readonly #calls: Pick<Client<typeof OperatorService>, "getRun">;
  readonly #options: NewsOptions;
  #after = "";
  /** The last answer came at once and said nothing new. */
  #isIdle = false;

  constructor(calls: Pick<Client<typeof OperatorService>, "getRun">, options: NewsOptions) {
    [this.#calls, this.#options] = [calls, options];
  }

  /** At once the first time, then when there is news, or none for a while. One call at a time. Throws the transport's rows; interrupted. */
  async next(signal?: AbortSignal): Promise<SeenRun> {
    const { clock, collectMs } = this.#options;
    if (this.#isIdle) await sleep(clock, IDLE_MS, signal);
    if (signal?.aborted === true) throw failure("interrupted", {});
    const askedMs = clock.monotonicMs();
    const request = { after: this.#after, waitMs: WAIT_MS, collectMs };
    const answer = await this.#calls.getRun(request, signal === undefined ? {} : { signal });
    const hasWaited = clock.monotonicMs() - askedMs >= WAIT_MS / 2;
    this.#isIdle = answer.after === this.#after && !hasWaited;
    this.#after = answer.after;
    return { answer, status: statusOf(answer) };
  }
}
