// How a worker stays in conversation with whoever coordinates: one stream after the other, with jittered waits between
// them, for as long as it lives. A coordinator that restarts finds its workers again, and not all of them at once.
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import type { Setback } from "./trouble.ts";
import { retryDelayMs } from "./trouble.ts";

/** How one stream ended. `superseded`: a newer process of this worker was seen, so there is no next stream. */
export type Ending = Setback | { readonly kind: "superseded" };

export interface Conversed {
  /** The coordinator has answered on it: the stream before this one is no reason to wait longer. */
  readonly heard: boolean;
  readonly ending: Ending;
}

export interface ReconnectOptions {
  /** One stream, from its opening to its end. */
  readonly converse: () => Promise<Conversed>;
  /** Called before the wait for the next stream. */
  readonly onSetback: (setback: Setback) => void;
  readonly clock: Clock;
  readonly random: Random;
  /** The longest wait after a setback that is no refusal; without it a few seconds. */
  readonly waitMaxMs?: number;
  /** Ends the wait; the stream in flight is the caller's to end. */
  readonly signal: AbortSignal;
}

/** Resolves when `signal` has aborted, or the worker is superseded; rejects with what `converse` throws. */
export async function stayConnected(options: ReconnectOptions): Promise<"stopped" | "superseded"> {
  const { converse, onSetback, clock, random, waitMaxMs, signal } = options;
  const isStopped = (): boolean => signal.aborted;
  for (let failures = 0; !isStopped();) {
    const { ending, heard } = await converse();
    if (isStopped()) break;
    if (ending.kind === "superseded") return "superseded";
    failures = heard ? 1 : failures + 1;
    onSetback(ending);
    await sleep(clock, retryDelayMs(ending, failures, random, waitMaxMs), signal);
  }
  return "stopped";
}
