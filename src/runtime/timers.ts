// The armed timers of all actors of one process. The rows are in the actors' records; here are the clocks that fire them.
// Within a process time is monotonic; a restart bridges the gap by the wall clock, and a jump of that clock can make a
// timer early or late by no more than its own delay.
import type { Clock, Timer } from "../base/clock.ts";
import type { ArmedTimer } from "./snapshot.ts";

export class DurableTimers {
  readonly #clock: Clock;
  readonly #fire: (address: string, timer: ArmedTimer) => void;
  /** A row that has fired keeps its place until it is out of the record, so that it fires once. */
  readonly #armed = new Map<string, Map<ArmedTimer, Timer>>();
  /** When the rows that this process made are due, on its own clock. */
  readonly #dueMs = new WeakMap<ArmedTimer, number>();
  #stopped = false;

  constructor(clock: Clock, fire: (address: string, timer: ArmedTimer) => void) {
    this.#clock = clock;
    this.#fire = fire;
  }

  /** The row for a timer that is armed now. */
  row({ name, event, delayMs }: Pick<ArmedTimer, "name" | "event" | "delayMs">): ArmedTimer {
    const row = { name, event, delayMs, dueWallMs: this.#clock.wallMs() + delayMs };
    this.#dueMs.set(row, this.#clock.monotonicMs() + delayMs);
    return row;
  }

  /** Makes the clocks of one actor agree with its committed rows: what is new is armed, what is gone is cancelled. */
  sync(address: string, rows: readonly ArmedTimer[]): void {
    if (this.#stopped) return;
    const running = this.#armed.get(address) ?? new Map<ArmedTimer, Timer>();
    for (const [row, timer] of running) {
      if (rows.includes(row)) continue;
      timer.cancel();
      running.delete(row);
    }
    for (const row of rows) {
      if (running.has(row)) continue;
      running.set(
        row,
        this.#clock.after(this.#leftMs(row), () => this.#fire(address, row)),
      );
    }
    if (running.size > 0) this.#armed.set(address, running);
    else this.#armed.delete(address);
  }

  /** No timer fires after this, and none is armed any more. The rows stay where they are, for the next start. */
  stop(): void {
    this.#stopped = true;
    for (const running of this.#armed.values()) for (const timer of running.values()) timer.cancel();
    this.#armed.clear();
  }

  #leftMs(row: ArmedTimer): number {
    const dueMs = this.#dueMs.get(row);
    if (dueMs !== undefined) return Math.max(dueMs - this.#clock.monotonicMs(), 0);
    return Math.min(Math.max(row.dueWallMs - this.#clock.wallMs(), 0), row.delayMs);
  }
}
