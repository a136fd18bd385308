// The database of a coordinator that starts while a command looks into it, which lets go before long. Keeps true: whoever else has
// it is an error at once, and so is such a command that does not let go.
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { RolloutError } from "../base/errors.ts";
import type { Store } from "../storage/store.ts";

/** Commands that open a database while nobody leads, to read it, and by which name. */
export const LOOKERS = { doctor: "rollout doctor", results: "rollout results" } as const;

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
