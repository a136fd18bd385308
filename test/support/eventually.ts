// Waiting for what must come: at once when it is there, and with an error that says what did not come.
import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 2;
/** A look costs too, often more than what it waits for: the longer that takes, the rarer it looks. */
const POLL_SHARE = 0.05;
const POLL_MS_MAX = 50;
/** A look that starts a process takes most of it: the next one waits for as long, so that something else has the machine too. */
const LOOK_MS_MAX = 1_000;
/** Longer than anything takes on a busy machine, whose deadlines are stretched to a minute: a wait that reaches it has failed. */
const PATIENCE_MS = 170_000;

/** Resolves with the first value that is neither undefined nor false. */
export async function eventually<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const startMs = performance.now();
  for (;;) {
    const lookedMs = performance.now();
    const found = await look();
    if (found !== undefined && found !== false) return found;
    const lookMs = Math.min(LOOK_MS_MAX, performance.now() - lookedMs);
    const waitedMs = performance.now() - startMs;
    if (waitedMs > PATIENCE_MS) throw new Error(`did not come within ${PATIENCE_MS} ms: ${what}`);
    // A wait that its test has left behind keeps no process alive.
    const pauseMs = Math.max(lookMs, Math.min(POLL_MS_MAX, Math.max(POLL_MS, waitedMs * POLL_SHARE)));
    await sleep(pauseMs, undefined, { ref: false });
  }
}
