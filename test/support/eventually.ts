// Waiting for what must come: at once when it is there, and with an error that says what did not come.
import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 2;

/** Resolves with the first value that is neither undefined nor false. */
export async function eventually<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  withinMs = 3_000,
): Promise<T> {
  const end = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`did not come within ${withinMs} ms: ${what}`);
    await sleep(POLL_MS);
  }
}
