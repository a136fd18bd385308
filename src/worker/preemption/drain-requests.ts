// Hints that somebody makes rather than finds: the process got a SIGTERM, an operator wants the worker gone, a simulation
// preempts a machine.
//
// Keeps true: a hint that came before anybody watched is not lost.
import type { ComputeHint, Hint } from "./compute-hint.ts";

export class DrainRequests implements ComputeHint {
  readonly #said: Hint[] = [];
  readonly #listeners = new Set<(hint: Hint) => void>();

  /** Passes `hint` on to everybody who watches now or later. */
  say(hint: Hint): void {
    this.#said.push(hint);
    for (const listener of this.#listeners) listener(hint);
  }

  watch(signal: AbortSignal, onHint: (hint: Hint) => void): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      // A function of its own, so that one callback may watch twice.
      const listener = (hint: Hint): void => onHint(hint);
      signal.addEventListener("abort", () => {
        this.#listeners.delete(listener);
        resolve();
      });
      this.#listeners.add(listener);
      for (const hint of this.#said) if (this.#listeners.has(listener)) onHint(hint);
    });
  }
}
