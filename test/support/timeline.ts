// Time that passes only from one moment to the next: a queue of moments, and the one loop that lets them happen. Between two of them
// every promise that can settle has settled, so that nothing but the queue decides what comes next. `VirtualClock` and the simulated
// cluster are both made of it.
//
// Keeps true: moments happen in the order of their times, those of one time in the order in which they were planned, turns before them.
// Real I/O is not part of it: what waits for a socket or a disk is not waited for.
import type { Timer } from "../../src/base/clock.ts";
import { settle } from "./settle.ts";

interface Moment {
  readonly atMs: number;
  /** Breaks ties. */
  readonly order: number;
  /** Undefined when it was cancelled. */
  run: (() => void) | undefined;
}

/** Below the order of every moment that is no turn. */
const TURNS_FROM = Number.MIN_SAFE_INTEGER;

export class Timeline {
  #nowMs: number;
  #planned = 0;
  #happened = 0;
  /** Planned, not cancelled, and no turn. */
  #armed = 0;
  /** A binary heap. */
  readonly #moments: Moment[] = [];
  readonly #settle: () => Promise<void>;

  /** `settled` resolves when everything that can happen in a moment has happened. */
  constructor(startMs: number, settled = settle) {
    this.#nowMs = startMs;
    this.#settle = settled;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** How many moments have passed. */
  get happened(): number {
    return this.#happened;
  }

  /** How many are to come, turns not counted. */
  get armed(): number {
    return this.#armed;
  }

  /** When the next one is due; undefined when there is none. */
  get nextAtMs(): number | undefined {
    return this.#first()?.atMs;
  }

  /** Not before now. */
  at(atMs: number, run: () => void): Timer {
    const moment: Moment = { atMs: Math.max(atMs, this.#nowMs), order: this.#planned++, run };
    this.#insert(moment);
    this.#armed++;
    const cancel = (): void => {
      if (moment.run !== undefined) this.#armed--;
      moment.run = undefined;
    };
    return { cancel };
  }

  /** At this time, before all that waits for it and behind the turns that were asked for already. */
  turn(run: () => void): void {
    this.#insert({ atMs: this.#nowMs, order: TURNS_FROM + this.#planned++, run });
  }

  /** Lets the next moment happen. False when none is due until then. Rejects with what it throws. */
  async step(untilMs = Infinity): Promise<boolean> {
    const next = this.#first();
    if (next === undefined || next.atMs > untilMs) return false;
    this.#takeFirst();
    const { run } = next;
    if (next.order >= 0) this.#armed--;
    next.run = undefined;
    this.#nowMs = next.atMs;
    this.#happened++;
    run?.();
    await this.#settle();
    return true;
  }

  /** No moment happens on the way. */
  passTo(atMs: number): void {
    this.#nowMs = atMs;
  }

  /** The next one that was not cancelled. */
  #first(): Moment | undefined {
    while (this.#moments[0] !== undefined && this.#moments[0].run === undefined) this.#takeFirst();
    return this.#moments[0];
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

  #takeFirst(): void {
    const heap = this.#moments;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
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
  }
}

function isBefore(one: Moment, other: Moment): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}
