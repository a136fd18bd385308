// How long somebody who follows a run waits before the coordinator is asked again.
import type { RolloutError } from "../base/errors.ts";
import type { BackoffRange, Random } from "../base/random.ts";
import { backoffMs } from "../base/random.ts";

const TROUBLE: BackoffRange = { baseMs: 200, ceilingMs: 5_000 };
/** Another coordinator leads before long, and the connection itself waits between its rounds through them. */
const NEW_LEADER: BackoffRange = { baseMs: 50, ceilingMs: 250 };

/** The jittered wait after `tried` failures in a row; `error` is undefined where the coordinator ended its answer. */
export function troubleWaitMs(error: RolloutError | undefined, tried: number, random: Random): number {
  return backoffMs(error?.row.retry === "new-leader" ? NEW_LEADER : TROUBLE, tried, random);
}
