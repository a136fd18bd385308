// Processes that have a database open, by their names in what others are told of it, and the waiting for those that let go before long.
// Keeps true: a process of a local run, which leaves with it, has another name than the same one that somebody has started by hand and has
// to end; a coordinator that starts waits for a command that only looks, and for nobody else, and not for ever.
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { RolloutError } from "../base/errors.ts";
import type { Store } from "../storage/store.ts";

/** Commands that open a database while nobody leads, to read it, and by which name. */
export const LOOKERS = { doctor: "rollout doctor", results: "rollout results" } as const;

const BY_HAND = { coordinator: "rollout coordinator run", worker: "rollout worker run" } as const;
const OF_LOCAL_RUN = {
  coordinator: "the coordinator of rollout run",
  worker: "a worker of rollout run",
} as const;

const PATIENCE_MS = 60_000;
const WAIT_MS = 250;

export interface Waiting {
  readonly clock: Clock;
  /** A sentence, once. */
  readonly tell: (sentence: string) => void;
  readonly signal: AbortSignal;
}

/** The store that `open` opens; undefined when the signal came first. Throws what `open` throws. */
export async function openAwaited(
  open: () => Promise<Store>,
  { clock, tell, signal }: Waiting,
): Promise<Store | undefined> {
  const startMs = clock.monotonicMs();
  for (let isTold = false; ; isTold = true) {
    try {
      return await open();
    } catch (error) {
      if (!isLookedInto(error) || clock.monotonicMs() - startMs >= PATIENCE_MS) throw error;
      if (!isTold) tell(`${error.message}; it is waited for`);
    }
    await sleep(clock, WAIT_MS, signal);
    if (signal.aborted) return undefined;
  }
}

function isLookedInto(error: unknown): error is RolloutError {
  if (!(error instanceof RolloutError) || error.code !== "store_held") return false;
  return Object.values(LOOKERS).some((name) => error.params["holder"]?.startsWith(`${name},`));
}

/** Whether a process of that name only reads, and will never lead. */
export function isLooker(holderName: string): boolean {
  return Object.values<string>(LOOKERS).includes(holderName);
}

/** `isOfLocalRun`: by the hidden flag with which a local run starts its processes. */
export function holderNameOf(who: keyof typeof BY_HAND, isOfLocalRun: boolean): string {
  return (isOfLocalRun ? OF_LOCAL_RUN : BY_HAND)[who];
}

/** Whether nothing ends it but the person who has started it. */
export function isByHand(holderName: string): boolean {
  return Object.values<string>(BY_HAND).includes(holderName);
}
