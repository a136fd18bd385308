// Items from inside in numbers, apart from those that were submitted: mail, due timers, invocations and their ends, named actions. The
// ledger counts all items; these are a part of them.
import type { FailureClass } from "../ledger/records.ts";
import { byClass } from "../ledger/tally.ts";

export interface InsideNumbers {
  /** Made so far. */
  readonly items: number;
  readonly done: number;
  /** `cancelled`: ended before they could be, because nobody wanted them any more. */
  readonly failedByClass: Readonly<Record<FailureClass, number>>;
}

export const NO_INSIDE: InsideNumbers = { items: 0, done: 0, failedByClass: byClass(() => 0) };

export class InsideCounts {
  items: number;
  done: number;
  readonly failedByClass: Record<FailureClass, number>;
  /** With workers, and waiting after a failure: told by the rows of a new leader, not by its numbers. */
  running = 0;
  delayed = 0;

  constructor({ items, done, failedByClass }: InsideNumbers) {
    this.items = items;
    this.done = done;
    this.failedByClass = { ...failedByClass };
  }

  get numbers(): InsideNumbers {
    return { items: this.items, done: this.done, failedByClass: { ...this.failedByClass } };
  }

  get stopped(): number {
    return this.failedByClass.cancelled;
  }

  /** With those that were stopped. */
  get failed(): number {
    return Object.values(this.failedByClass).reduce((sum, count) => sum + count, 0);
  }

  get pending(): number {
    return this.items - this.done - this.failed - this.running;
  }
}
