// Timers in memory: all that are armed, the next one on top of a heap. They are due by the steady clock, which is the leader's own and read
// as wall time: a clock that is set moves none of them, a delay of years is a number like any other, and the next leader goes on with
// what is left.
//
// Keeps true: a timer is in the heap once, until it is due or disarmed; those that were disarmed are swept when they are half of it (C8).

import { NO_ROW } from "../ledger/tally.ts";
import type { TimerRecord } from "./timer-record.ts";

export class Timer implements TimerRecord {
  readonly key: string;
  readonly id: string;
  readonly number: number;
  readonly dueMs: number;
  readonly event: Uint8Array;
  readonly to: string;
  readonly isOptional: boolean;
  readonly asker: Uint8Array;
  readonly index: number;
  readonly priority: number;
  isArmed = false;
  /** The checksum of its row in the store. */
  checksum: number;

  constructor(record: TimerRecord, checksum = NO_ROW) {
    this.key = record.key;
    this.id = record.id;
    this.number = record.number;
    this.dueMs = record.dueMs;
    this.event = record.event;
    this.to = record.to;
    this.isOptional = record.isOptional;
    this.asker = record.asker;
    this.index = record.index;
    this.priority = record.priority;
    this.checksum = checksum;
  }
}

/** Swept when so many that are disarmed stand in it, beside half of all. */
const SWEPT_MIN = 1_024;

/** Timers of one actor that are due together go in the order in which they were set. */
function isBefore(one: Timer, other: Timer): boolean {
  return one.dueMs < other.dueMs || (one.dueMs === other.dueMs && one.number < other.number);
}

class TimerHeap {
  #timers: Timer[] = [];
  armed = 0;
  bytes = 0;

  put(timer: Timer): void {
    timer.isArmed = true;
    this.armed++;
    this.bytes += timer.event.length;
    const timers = this.#timers;
    let at = timers.push(timer) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = timers[above];
      if (parent === undefined || !isBefore(timer, parent)) break;
      timers[at] = parent;
      at = above;
    }
    timers[at] = timer;
  }

  remove(timer: Timer): void {
    if (!timer.isArmed) return;
    timer.isArmed = false;
    this.armed--;
    this.bytes -= timer.event.length;
    if (this.#timers.length > 2 * this.armed + SWEPT_MIN) this.#sweep();
  }

  peek(): Timer | undefined {
    for (let [top] = this.#timers; top !== undefined; [top] = this.#timers) {
      if (top.isArmed) return top;
      this.#dropTop();
    }
    return undefined;
  }

  #sweep(): void {
    this.#timers = this.#timers
      .filter(({ isArmed }) => isArmed)
      .sort((one, other) => (isBefore(one, other) ? -1 : 1));
  }

  #dropTop(): void {
    const timers = this.#timers;
    const last = timers.pop();
    if (last === undefined || timers.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      let child = timers[below];
      const right = timers[below + 1];
      if (child === undefined) break;
      if (right !== undefined && isBefore(right, child)) [below, child] = [below + 1, right];
      if (!isBefore(child, last)) break;
      timers[at] = child;
      at = below;
    }
    timers[at] = last;
  }
}

export class Timers {
  /** Events that somebody waits for. */
  readonly #events = new TimerHeap();
  /** Times at which final actors are forgotten. */
  readonly #retirements = new TimerHeap();

  arm(timer: Timer): void {
    this.#heapOf(timer).put(timer);
  }

  /** Idempotent. */
  disarm(timer: Timer): void {
    this.#heapOf(timer).remove(timer);
  }

  #heapOf({ id }: Timer): TimerHeap {
    return id === "" ? this.#retirements : this.#events;
  }

  /** Events that are to be sent still: a run with one of these is not complete. */
  get armed(): number {
    return this.#events.armed;
  }

  /** Bytes of the events of all of them. */
  get bytes(): number {
    return this.#events.bytes;
  }

  /** When the next event is sent; undefined while none is. */
  get nextEventMs(): number | undefined {
    return this.#events.peek()?.dueMs;
  }

  /** The next of all. */
  peek(): Timer | undefined {
    const [event, retirement] = [this.#events.peek(), this.#retirements.peek()];
    if (event === undefined || retirement === undefined) return event ?? retirement;
    return retirement.dueMs < event.dueMs ? retirement : event;
  }
}
