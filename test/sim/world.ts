// One time for a whole simulated cluster. Its history is a queue of moments; between two of them every promise that can
// settle has settled, so that nothing but the queue and the seed decides what comes next.
//
// Keeps true: the same seed gives the same events in the same order.
import type { Timer } from "../../src/base/clock.ts";
import type { Random } from "../../src/base/random.ts";
import { seededRandom } from "../../src/base/random.ts";
import { settle } from "../support/settle.ts";
import { Trace } from "./trace.ts";

/** Something that the cluster must never do. */
export class Violation extends Error {
  override readonly name = "Violation";
}

interface Moment {
  readonly atMs: number;
  /** Breaks ties: what was planned first happens first. */
  readonly order: number;
  run: (() => void) | undefined;
}

export class World {
  readonly random: Random;
  readonly trace = new Trace();
  #nowMs = 0;
  #planned = 0;
  #happened = 0;
  /** A binary heap. */
  readonly #moments: Moment[] = [];
  #violation: Error | undefined;

  constructor(seed: number) {
    this.random = seededRandom(seed);
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** How many moments have passed. */
  get happened(): number {
    return this.#happened;
  }

  /** A source of chance of its own, so that one part's draws do not move another's. */
  newRandom(): Random {
    return seededRandom(Math.floor(this.random.unit() * 2 ** 32));
  }

  after(delayMs: number, run: () => void): Timer {
    return this.at(this.#nowMs + Math.max(0, delayMs), run);
  }

  /** Not before now. Callbacks of one moment run in the order in which they were planned. */
  at(atMs: number, run: () => void): Timer {
    const moment: Moment = { atMs, order: this.#planned++, run };
    this.#insert(moment);
    return { cancel: () => void (moment.run = undefined) };
  }

  say(who: string, what: string): void {
    this.trace.add(this.#nowMs, who, what);
  }

  /** The first one ends the run: `step` throws it. */
  violate(what: unknown): void {
    this.#violation ??= what instanceof Error ? what : new Violation(String(what));
  }

  /** Lets the next thing happen. False when nothing ever will. Throws what was violated. */
  async step(): Promise<boolean> {
    for (;;) {
      const next = this.#takeFirst();
      if (next === undefined) return false;
      const { run } = next;
      if (run === undefined) continue;
      this.#nowMs = next.atMs;
      this.#happened++;
      run();
      await settle();
      if (this.#violation !== undefined) throw this.#violation;
      return true;
    }
  }

  #insert(moment: Moment): void {
    const heap = this.#moments;
    let at = heap.push(moment) - 1;
    while (at > 0) {
      const above = (at - 1) >>> 1;
      const parent = heap[above];
      if (parent === undefined || !isBefore(moment, parent)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = moment;
  }

  #takeFirst(): Moment | undefined {
    const heap = this.#moments;
    const [first] = heap;
    const last = heap.pop();
    if (last === undefined || last === first) return first;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      const [left, right] = [heap[below], heap[below + 1]];
      if (left === undefined) break;
      if (right !== undefined && isBefore(right, left)) below++;
      const child = heap[below];
      if (child === undefined || !isBefore(child, last)) break;
      heap[at] = child;
      at = below;
    }
    heap[at] = last;
    return first;
  }
}

function isBefore(one: Moment, other: Moment): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}

/** True with this chance. */
export function happens(random: Random, chance: number): boolean {
  return random.unit() < chance;
}

export function between(random: Random, min: number, max: number): number {
  return min + random.unit() * (max - min);
}
