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

/** An older version of a chart whose rows may stand in a ledger, and are read on. */
export interface Predecessor {
  readonly version: string;
  /** The hash of its structure: what a ledger is stamped with beside the version. */
  readonly structure: string;
  /** Every state that its rows can be in, by name, and the state of the current version that becomes of it. */
  readonly states: Readonly<Record<string, string>>;
}

/** A chart as the registry holds it: the current machine, and one step from each older version that may be on a disk. */
export interface Chart<Machine extends AnyStateMachine = AnyStateMachine> {
  readonly machine: Machine;
  readonly migrations: readonly Migration[];
  /** For a chart that moves rows of the ledger, which have no snapshots: every older version that has written such rows. */
  readonly predecessors?: readonly Predecessor[];
}
