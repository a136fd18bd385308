// A stream of answers that is opened again when it breaks, for those who stay: events and charts.
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { RolloutError } from "../base/errors.ts";
import type { Random } from "../base/random.ts";
import { troubleWaitMs } from "./trouble.ts";

export interface FollowOptions {
  /** Go on with what happens from now. */
  readonly follow: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly signal?: AbortSignal;
  /** Told once when the coordinator is gone, and once when it is back (undefined). */
  readonly onTrouble?: (error: RolloutError | undefined) => void;
}

/**
 * Ends with the stream unless it follows; then it ends when the signal aborts, and a coordinator that is away is waited for, also one that
 * was never there. A stream that is opened again begins anew. Throws the transport's rows: for who follows those that waiting does not help.
 */
export async function* followed<Answer>(
  open: (how: { readonly signal?: AbortSignal }) => AsyncIterable<Answer>,
  { follow, clock, random, signal, onTrouble }: FollowOptions,
): AsyncGenerator<Answer> {
  let isTroubled = false;
  for (let tried = 1; ; tried++) {
    let trouble: RolloutError | undefined;
    try {
      for await (const answer of open(signal === undefined ? {} : { signal })) {
        if (isTroubled) onTrouble?.(undefined);
        [isTroubled, tried] = [false, 0];
        yield answer;
      }
      if (!follow) return;
    } catch (error) {
      if (signal?.aborted === true) return;
      const isWorthAnother = error instanceof RolloutError && error.row.retry !== "never";
      if (!isWorthAnother || !follow) throw error;
      if (!isTroubled) onTrouble?.(error);
      isTroubled = true;
      trouble = error;
    }
    await sleep(clock, troubleWaitMs(trouble, Math.max(1, tried), random), signal);
    if (signal?.aborted === true) return;
  }
}
