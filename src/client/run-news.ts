// The run in numbers for those who stay.
import type { Client } from "@connectrpc/connect";
import type { Clock } from "../base/clock.ts";
import type { GetRunResponse, OperatorService } from "../gen/rollout/v1/run_pb.ts";
import { LongCall } from "./long-call.ts";
import type { RunStatus } from "./run-status.ts";
import { statusOf } from "./run-status.ts";

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
  readonly #call: LongCall<GetRunResponse>;

  constructor(calls: Pick<Client<typeof OperatorService>, "getRun">, { clock, collectMs }: NewsOptions) {
    this.#call = new LongCall((waiting, options) => calls.getRun({ ...waiting, collectMs }, options), clock);
  }

  /** At once the first time, then when there is news, or none for a while. One call at a time. Throws the transport's rows; interrupted. */
  async next(signal?: AbortSignal): Promise<SeenRun> {
    const answer = await this.#call.next(signal);
    return { answer, status: statusOf(answer) };
  }
}
