// Waiting for an actor to come somewhere, by push: and not for ever where it cannot come any more.
import type { Client } from "@connectrpc/connect";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { failure, RolloutError } from "../base/errors.ts";
import type { Random } from "../base/random.ts";
import { printable } from "../base/safe-text.ts";
import { KeyNews } from "../client/key-news.ts";
import type { SeenKey } from "../client/key-news.ts";
import type { KeyService } from "../gen/rollout/v1/keys_pb.ts";
import { readActorState } from "../runtime/actor-state.ts";
import type { ActorState } from "../runtime/actor-state.ts";
import type { OperatorService } from "../gen/rollout/v1/run_pb.ts";
import { statusOf } from "../client/run-status.ts";
import { troubleWaitMs } from "../client/trouble.ts";
import { valueText } from "./actor-views.ts";

/** The calls that waiting makes. */
export interface WaitCalls {
  readonly keyCalls: Pick<Client<typeof KeyService>, "getKey">;
  readonly calls: Pick<Client<typeof OperatorService>, "getRun">;
}

export interface WaitOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Only a state of a later commit counts. */
  readonly sinceCommit?: number | undefined;
  /** Unless said, for ever. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Told once when the coordinator is gone, and once when it is back (undefined). */
  readonly onTrouble?: ((error: RolloutError | undefined) => void) | undefined;
}

/**
 * Resolves with what `found` makes of the key when it makes anything of it: of each state that is seen, not of each that there was. Rejects with
 * actor_parked for one that a failed event keeps, actor_ended for one that is final or whose run is over, actor_not_there_yet when the time is over; `interrupted` when the
 * signal aborts, and the transport's rows.
 */
export async function untilActor<Found>(
  calls: WaitCalls,
  actor: string,
  found: (seen: NonNullable<SeenKey["key"]>) => Found | undefined,
  options: WaitOptions,
): Promise<Found> {
  const { clock, sinceCommit = -1, timeoutMs, signal } = options;
  const news = new KeyNews(calls.keyCalls, actor, clock);
  const over = new AbortController();
  const timer = timeoutMs === undefined ? undefined : clock.after(timeoutMs, () => over.abort());
  const ended = AbortSignal.any([over.signal, ...(signal === undefined ? [] : [signal])]);
  let value = "no state yet";
  try {
    for (;;) {
      const { key, isOver } = await patiently(() => news.next(ended), ended, options);
      const state = key?.state && readActorState(key.state);
      if (state !== undefined) value = valueText(state.snapshot.value);
      const isNews = key !== undefined && (key.stateCommit ?? 0) > sinceCommit;
      const result = isNews ? found(key) : undefined;
      if (result !== undefined) return result;
      refuseVain(actor, key, isNews ? state : undefined);
      if (isOver || (key === undefined && (await isRunOver(calls))))
        throw failure("actor_ended", { actor, reason: `the run is over, and it is in ${value}` });
    }
  } catch (error) {
    const isTimeout = over.signal.aborted && signal?.aborted !== true;
    if (!isTimeout || !(error instanceof RolloutError) || error.code !== "interrupted") throw error;
    const seconds = String(Math.round((timeoutMs ?? 0) / 1_000));
    throw failure("actor_not_there_yet", { actor, seconds, value });
  } finally {
    timer?.cancel();
  }
}

/** A coordinator that is away is waited for. Throws what waiting does not help, and `interrupted`. */
async function patiently<Answer>(
  ask: () => Promise<Answer>,
  signal: AbortSignal,
  { clock, random, onTrouble }: WaitOptions,
): Promise<Answer> {
  for (let tried = 1; ; tried++) {
    let trouble: RolloutError;
    try {
      const answer = await ask();
      if (tried > 1) onTrouble?.(undefined);
      return answer;
    } catch (error) {
      if (signal.aborted) throw failure("interrupted", {});
      if (!(error instanceof RolloutError) || error.row.retry === "never") throw error;
      if (tried === 1) onTrouble?.(error);
      trouble = error;
    }
    await sleep(clock, troubleWaitMs(trouble, tried, random), signal);
  }
}

/** Throws where no event will bring it anywhere. */
function refuseVain(actor: string, key: SeenKey["key"], state: ActorState | undefined): void {
  if (key?.parkedBy === "failed") {
    const { class: as = "error", message = "an event of it has failed" } = key.error ?? {};
    throw failure("actor_parked", { actor, reason: printable(`${as}: ${message}`) });
  }
  if (state === undefined || state.snapshot.status === "active" || (key?.items ?? 0) > 0) return;
  throw failure("actor_ended", { actor, reason: `it is final, in ${valueText(state.snapshot.value)}` });
}

/** The answer about a key that is not there does not say so. */
async function isRunOver({ calls }: WaitCalls): Promise<boolean> {
  const { state } = statusOf(await calls.getRun({}));
  return state === "complete" || state === "cancelled";
}
