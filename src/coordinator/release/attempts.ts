// The attempts of the current stage, from their assignment to their end. Each that is judged has a ticket: a number above 0 for the
// candidate, below 0 for stable, so that an item carries one number and the room no memory of items.
//
// Keeps true: an attempt is judged once, in the stage in which it was given out. Attempts of earlier leaders are judged by nobody, because
// their tickets are gone on both sides alike; those of the candidate count as open until they end.
import { addEnd, badnessOf } from "./counts.ts";
import type { StageCounts } from "./counts.ts";
import type { Ended } from "./ports.ts";
import { currentStage } from "./release.ts";
import type { Release } from "./release.ts";
import { armAlpha } from "./verdict.ts";

/** An attempt, as the room has marked it. */
export interface MarkedAttempt {
  /** 0 for one that this leader has not given out to be judged. */
  readonly ticket: number;
  /** The release whose candidate it was; empty: none's. */
  readonly trial: string;
  readonly worker: string;
}

export class Attempts {
  /** The last ticket, of all releases since this coordinator leads. */
  #ticket = 0;
  /** The last one before the current stage, and the last one when enough of it was judged. */
  #stageBegan = 0;
  #enoughAt = Infinity;
  /** Open attempts of the candidate without a ticket. */
  #untold = 0;
  /** Processes and workers that have failed several attempts at once count once in a turn. */
  readonly #blamed = new Set<string>();

  /** A new leader finds so many attempts of the candidate with workers. */
  restore(counts: StageCounts, open: number): void {
    this.#untold = open;
    counts.open = open;
    counts.early = counts.givenAtEnough === null ? open : Math.min(counts.early, open);
    if (counts.givenAtEnough !== null) this.#enoughAt = 0;
  }

  /** Attempts that were given out before are not judged from now on. */
  beginStage(): void {
    this.#stageBegan = this.#ticket;
    this.#enoughAt = Infinity;
    this.#untold = 0;
  }

  turnBegins(): void {
    this.#blamed.clear();
  }

  given(counts: StageCounts, arm: "stable" | "candidate"): number {
    counts[arm].given++;
    this.#ticket++;
    if (arm === "stable") return -this.#ticket;
    counts.open++;
    if (counts.givenAtEnough === null) counts.early++;
    return this.#ticket;
  }

  /** An attempt of the candidate that an earlier leader has forgotten. */
  adopted(counts: StageCounts): void {
    this.#untold++;
    counts.open++;
    if (counts.givenAtEnough === null) counts.early++;
  }

  /** `judged`: it says something of its version. `closed`: there is one fewer of the candidate. */
  ended(
    release: Release,
    attempt: MarkedAttempt,
    ended: Ended,
  ): { readonly closed: boolean; readonly judged: boolean } {
    const { counts, spec } = currentStage(release);
    const closed = attempt.trial === release.id && this.#close(counts, attempt.ticket);
    const isBad = Math.abs(attempt.ticket) <= this.#stageBegan ? undefined : badnessOf(ended);
    if (isBad === undefined || this.#isCounted(release, attempt, ended)) return { closed, judged: false };
    const arm = attempt.ticket > 0 ? counts.candidate : counts.stable;
    addEnd(arm, release.terms.metrics, { ...ended, isBad }, armAlpha(release.terms));
    if (counts.givenAtEnough === null && counts.candidate.judged >= spec.minItems) {
      counts.givenAtEnough = counts.candidate.given;
      counts.early = counts.open;
      this.#enoughAt = this.#ticket;
    }
    return { closed, judged: true };
  }

  #close(counts: StageCounts, ticket: number): boolean {
    if (ticket > this.#stageBegan) {
      counts.open--;
      if (ticket <= this.#enoughAt) counts.early--;
      return true;
    }
    if (ticket !== 0 || this.#untold === 0) return false;
    this.#untold--;
    counts.open--;
    // The early ones are taken to end last.
    counts.early = Math.min(counts.early, counts.givenAtEnough === null ? counts.open : this.#untold);
    return true;
  }

  /** One counts of those that a process has taken with it, and in a stage of workers of those that a worker has. */
  #isCounted(release: Release, { worker, ticket }: MarkedAttempt, { class: how }: Ended): boolean {
    const isOnce =
      how === "crash_shared" || (how === "lost" && currentStage(release).spec.kind === "workers");
    if (!isOnce) return false;
    const name = `${how} ${ticket > 0 ? "candidate" : "stable"} ${worker}`;
    if (this.#blamed.has(name)) return true;
    this.#blamed.add(name);
    return false;
  }
}
