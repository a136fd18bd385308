// An item on its way through the ledger, and the ledger itself: what is in memory of either. The rows in the store are in
// ledger-records.ts, and what may become of an item in its chart.
import type { AttemptKey, ItemContext } from "../../../machines/work-item.ts";
import type { WorkerId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { Row } from "../../runtime/compile.ts";
import type { FailureClass, ReturnedRecord } from "./ledger-records.ts";
import type { Place } from "./place.ts";
import type { Tally } from "./tally.ts";
import type { Window } from "./window.ts";

/** Budgets that every item starts with, from the run's configuration. */
export interface ItemBudgets {
  readonly maxAttempts: number;
  readonly maxLost: number;
}

/** An item that may be given out: in a window, with what a worker needs. */
export interface PendingItem {
  /** Its place, which is its key in the window. */
  readonly key: Place;
  readonly weight: number;
  readonly id: Uint8Array;
  readonly payload: Uint8Array;
  /** What it was before; null when it was never given out. */
  readonly returned: { readonly budgets: ReturnedRecord; readonly checksum: number } | null;
}

/** An item that a worker has. */
export interface RunningItem {
  readonly place: Place;
  readonly id: Uint8Array;
  row: Row<ItemContext>;
  /** Monotonic; the moment of leading for what an earlier leader assigned. */
  readonly assignedAtMs: number;
  /** Of its record in the store. */
  readonly checksum: number;
  /** Of the assignment, within the worker's incarnation. */
  readonly number: number;
}

/** An item that waits before it may be given out again. */
export interface DelayedItem {
  /** When it is due and its place; see `delayedKey`. */
  readonly key: string;
  readonly weight: number;
  readonly budgets: ReturnedRecord;
  readonly checksum: number;
}

export interface Ledger {
  readonly budgets: ItemBudgets;
  /** Jitter of the backoff: injected, so that a simulation repeats. */
  readonly random: Random;
  readonly tally: Tally;
  /** By `itemKeyOf`. */
  readonly running: Map<string, RunningItem>;
  /** Late results whose items are being looked up, by `itemKeyOf`; an item that is given out meanwhile leaves it. */
  readonly examined: Map<string, LateReport>;
  readonly returned: Window<PendingItem>;
  readonly delayed: Window<DelayedItem>;
  /** Priority → items of it that were never given out. */
  readonly fresh: Map<number, Window<PendingItem>>;
}

export interface Success {
  readonly output: Uint8Array;
  readonly digest: Uint8Array;
}

/** A success that names an attempt which nobody is running under. */
export interface LateReport extends AttemptKey {
  readonly id: Uint8Array;
  readonly worker: WorkerId;
  readonly success: Success;
}

export interface Failure {
  readonly class: FailureClass;
  readonly message: string;
}
