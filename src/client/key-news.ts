// One key for those who stay: a call waits at the coordinator until the key stands otherwise than the answer before has said.
import type { Client } from "@connectrpc/connect";
import type { Clock } from "../base/clock.ts";
import { RolloutError } from "../base/errors.ts";
import type { KeyService } from "../gen/rollout/v1/keys_pb.ts";
import type { WholeKey } from "./keys.ts";
import { wholeKeyOf } from "./keys.ts";
import { LongCall } from "./long-call.ts";

/** How a key stands that is not there, as the coordinator says it. */
const ABSENT = "0";

export interface SeenKey {
  /** Undefined while the run has no such key. */
  readonly key: WholeKey | undefined;
  /** Nothing of the run changes any more, unless it is reopened. */
  readonly isOver: boolean;
}

interface Answer {
  readonly after: string;
  readonly seen: SeenKey;
}

export class KeyNews {
  readonly #call: LongCall<Answer>;

  constructor(calls: Pick<Client<typeof KeyService>, "getKey">, key: string, clock: Clock) {
    this.#call = new LongCall(async (waiting, options): Promise<Answer> => {
      try {
        const answer = await calls.getKey({ key, withState: true, ...waiting }, options);
        return { after: answer.after, seen: { key: wholeKeyOf(answer), isOver: answer.end } };
      } catch (error) {
        if (!(error instanceof RolloutError) || error.code !== "key_unknown") throw error;
        return { after: ABSENT, seen: { key: undefined, isOver: false } };
      }
    }, clock);
  }

  /** At once the first time, then when there is news, or none for a while. One call at a time. Throws the transport's rows; interrupted. */
  async next(signal?: AbortSignal): Promise<SeenKey> {
    return (await this.#call.next(signal)).seen;
  }
}
