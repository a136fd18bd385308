// One time for a whole simulated cluster. Its history is a queue of moments (`Timeline`), so that nothing but the queue and the seed decides
// what comes next.
//
// Keeps true: the same seed gives the same events in the same order.
import type { Timer } from "../../src/base/clock.ts";
import type { Random } from "../../src/base/random.ts";
import { seededRandom } from "../../src/base/random.ts";
import { settlePromises } from "../support/settle.ts";
import { Timeline } from "../support/timeline.ts";
import { Trace } from "./trace.ts";

/** Something that the cluster must never do. */
export class Violation extends Error {
  override readonly name = "Violation";
}

export class SimWorld {
  readonly random: Random;
  readonly trace = new Trace();
  readonly #timeline = new Timeline(0, settlePromises);
  #violation: Error | undefined;

  constructor(seed: number) {
    this.random = seededRandom(seed);
  }

  get nowMs(): number {
    return this.#timeline.nowMs;
  }

  /** How many moments have passed. */
  get happened(): number {
    return this.#timeline.happened;
  }

  /** A source of chance of its own, so that one part's draws do not move another's. */
  newRandom(): Random {
    return seededRandom(Math.floor(this.random.unit() * 2 ** 32));
  }

  after(delayMs: number, run: () => void): Timer {
    return this.at(this.nowMs + Math.max(0, delayMs), run);
  }

  /** Not before now. Callbacks of one moment run in the order in which they were planned. */
  at(atMs: number, run: () => void): Timer {
    return this.#timeline.at(atMs, run);
  }

  say(who: string, what: string): void {
    this.trace.add(this.nowMs, who, what);
  }

  /** The first one ends the run: `step` throws it. */
  violate(what: unknown): void {
    this.#violation ??= what instanceof Error ? what : new Violation(String(what));
  }

  /** Lets the next thing happen. False when nothing ever will. Throws what was violated. */
  async step(): Promise<boolean> {
    const hasHappened = await this.#timeline.step();
    if (this.#violation !== undefined) throw this.#violation;
    return hasHappened;
  }
}

/** True with this chance. */
export function happens(random: Random, chance: number): boolean {
  return random.unit() < chance;
}

export function between(random: Random, min: number, max: number): number {
  return min + random.unit() * (max - min);
}
