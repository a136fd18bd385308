// Waiting for what must come: at once when it is there, and with an error that says what did not come.
import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 2;
/** Longer than anything takes on a busy machine: a wait that reaches it has failed. */
const PATIENCE_MS = 60_000;

/** Resolves with the first value that is neither undefined nor false. */
export async function eventually<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`did not come within ${PATIENCE_MS} ms: ${what}`);
    // A wait that its test has left behind keeps no process alive.
    await sleep(POLL_MS, undefined, { ref: false });
  }
}
