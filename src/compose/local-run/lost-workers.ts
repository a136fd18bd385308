// Says when workers of a local run stop answering, and when they answer again: one that is frozen is still a process, so nobody
// else notices. Pure: numbers and times come in. Keeps true: one sentence for each change that lasts.
import type { WorkerNumbers } from "../../client/run-status.ts";

/** One that was killed and started again is back by then, and was told of by its end. */
const LASTING_MS = 3_000;

export class LostWorkers {
  /** So many were there at once. */
  #most = 0;
  #told = 0;
  /** The present number, if it is not the one that was told. */
  #change: { readonly lost: number; readonly sinceMs: number } | undefined;

  /** Numbers that were read at `nowMs`, monotonic. A sentence when there is something new to be told. */
  take(nowMs: number, { ready, draining, suspected, failed }: WorkerNumbers): string | undefined {
    this.#most = Math.max(this.#most, ready);
    // Workers of an earlier run that are not started again are not missed.
    const lost = Math.min(suspected + failed, Math.max(0, this.#most - ready - draining));
    if (lost === this.#told) {
      this.#change = undefined;
      return undefined;
    }
    if (this.#change?.lost !== lost) this.#change = { lost, sinceMs: nowMs };
    if (nowMs - this.#change.sinceMs < LASTING_MS) return undefined;
    this.#change = undefined;
    const isWorse = lost > this.#told;
    this.#told = lost;
    if (lost === 0) return "every worker answers again";
    const [who, rest] =
      lost === 1
        ? ["does not answer", "what it has runs elsewhere when it stays away"]
        : ["do not answer", "what they have runs elsewhere when they stay away"];
    return `${lost} of ${this.#most} workers ${who}${isWorse ? `: ${rest}` : ""}`;
  }
}
