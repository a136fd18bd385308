// How a snapshot that an older version of a chart left behind becomes one of the next version. A released version of a
// chart never changes: what changes its structure gets a new version and a migration from the one before.
import type { AnyStateMachine, StateValue } from "xstate";

export interface ChartSnapshot {
  readonly value: StateValue;
  /** Plain data: what msgpack can hold. */
  readonly context: unknown;
}

export interface Migration {
  readonly from: string;
  readonly to: string;
  /** Pure and total over every snapshot that version `from` could have written. */
  migrate(snapshot: ChartSnapshot): ChartSnapshot;
}

/** A chart as the registry holds it: the current machine, and one step from each older version that may be on a disk. */
export interface Chart<Machine extends AnyStateMachine = AnyStateMachine> {
  readonly machine: Machine;
  readonly migrations: readonly Migration[];
}
