// A backend whose executions end when the test says so.
import assert from "node:assert/strict";
import type { Backend, ItemAttempt, ItemReport, Outcome } from "../../src/worker/backends/backend.ts";

export interface HeldExecution {
  /** The first byte of the item's id. */
  readonly item: number;
  readonly attempt: ItemAttempt;
  readonly signal: AbortSignal;
  report(report: ItemReport): void;
  end(outcome: Outcome): void;
  fail(error: unknown): void;
}

export class HeldBackend implements Backend {
  /** Every execution there ever was. */
  readonly executions: HeldExecution[] = [];

  close(): Promise<void> {
    return Promise.resolve();
  }

  execute(attempt: ItemAttempt, signal: AbortSignal, report: (report: ItemReport) => void): Promise<Outcome> {
    const { promise, resolve: end, reject: fail } = Promise.withResolvers<Outcome>();
    this.executions.push({ item: attempt.itemId[0] ?? -1, attempt, signal, report, end, fail });
    return promise;
  }

  /** The items whose execution has begun, in order. */
  get started(): number[] {
    return this.executions.map(({ item }) => item);
  }

  /** The last execution of this item. */
  of(item: number): HeldExecution {
    const execution = this.executions.findLast((one) => one.item === item);
    assert(execution !== undefined, `item ${item} was started`);
    return execution;
  }

  /** Ends this item with its own number for output. */
  succeed(...items: number[]): void {
    for (const item of items) this.of(item).end({ kind: "success", output: Uint8Array.of(item) });
  }
}
