// An item on its way through the ledger, and the ledger itself: what is in memory of either. The rows in the store are in
// records.ts, and what may become of an item in its chart.
//
// The ledger's room. Stored: `place` names items, `records`, `attempt-records`, `completions`, `epoch-starts` and
// `quarantine-record` are kept of them. In memory: `tally` counts, `window`, `window-loads`, `shelf` and `queue`
// hold what is pending, `lookups` what is asked of the store, `scrub` how far the rows are checked, `failure-messages` why
// items failed; `leader-meter` counts for monitoring. Items of actors have an `origin`, and their results `asks`. `key-room` and `trial-room` are the
// doors to the rooms of keys and of releases.
import type { AttemptKey, ItemContext } from "../../../machines/work-item.ts";
import type { WorkerId } from "../../base/ids.ts";
import type { KeyPhase } from "../../gen/rollout/v1/run_pb.ts";
import type { Random } from "../../base/random.ts";
import type { Row } from "../../runtime/compile.ts";
import type { AttemptClass, LeftCheckpoint } from "./attempt-records.ts";
import type { SetAsideItem } from "./quarantine-record.ts";
import type { EpochStarts } from "./epoch-starts.ts";
import type { KeyRoom, LeftState } from "./key-room.ts";
import type { FailureMessages } from "./failure-messages.ts";
import type { Execution, FailureClass, ReturnedRecord } from "./records.ts";
import type { LeaderMeter } from "./leader-meter.ts";
import type { Measure } from "../../base/measure.ts";
import type { TrialRoom } from "./trial-room.ts";
import type { Lookups } from "./lookups.ts";
import type { Origin } from "./origin.ts";
import type { Place } from "./place.ts";
import type { Scrub } from "./scrub.ts";
import type { Shelf } from "./shelf.ts";
import type { Tally } from "./tally.ts";
import type { Window } from "./window.ts";

/** Budgets that every item starts with, from the run's configuration. */
export interface ItemBudgets {
  readonly maxAttempts: number;
  readonly maxLost: number;
  /** As the item's chart has it unless said. */
  readonly maxReturns?: number;
}

/** An item that may be given out: in a window, with what a worker needs. */
export interface PendingItem {
  /** Its place, which is its key in the window. */
  readonly key: Place;
  readonly weight: number;
  readonly id: Uint8Array;
  readonly payload: Uint8Array;
  /** The checkpoint of its last attempt that left one: for another attempt of the same version. */
  readonly checkpoint: LeftCheckpoint | null;
  /** Its row as a returned item; null when it was never given out. */
  readonly returned: { readonly budgets: ReturnedRecord; readonly checksum: number } | null;
  /** Undefined for one that was submitted. */
  readonly origin?: Origin | undefined;
  /** The key of one that has a key, and its state with the commit that the state is of. */
  readonly keyed?: {
    readonly key: string;
    readonly commit: number;
    readonly state: Uint8Array | null;
    /** The version of the state; 0: it has none. */
    readonly stateVersion: number;
    readonly origin?: Origin | undefined;
  };
}

/** An item that a worker has. */
export interface RunningItem {
  readonly place: Place;
  readonly id: Uint8Array;
  /** By `itemKeyOf`. */
  readonly itemKey: string;
  row: Row<ItemContext>;
  /** Monotonic; the moment of leading for what an earlier leader assigned. */
  readonly assignedAtMs: number;
  /** From when on its worker can be expected to have received it, monotonic: later than that by what this process did not run. */
  receivedFromMs: number;
  /** Checksum of its record in the store. */
  readonly checksum: number;
  /** Number of the assignment, within the worker's incarnation. */
  readonly number: number;
  /** The version of the plugin that the assignment named; empty: the worker's own. */
  readonly version: string;
  /** Whether a checkpoint of it may be in the store: what is done has none. */
  mayHaveCheckpoint: boolean;
  /** When it was first recalled from its worker, monotonic; undefined while it was not. */
  recalledAtMs: number | undefined;
  /** Its worker has said so, in whatever way. */
  hasBegun: boolean;
  /** The mark of a release that judges the attempt; 0: none does. */
  ticket: number;
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
  readonly meter: LeaderMeter;
  readonly failureMessages: FailureMessages;
  /** Reads all of it once, a little at a time. */
  readonly scrub: Scrub;
  /** By `itemKeyOf`. */
  readonly running: Map<string, RunningItem>;
  /** By `itemKeyOf`: items whose steps somebody looks at. Few, and none while nobody does. */
  readonly sampled: Set<string>;
  /** Items of keys, which no window has. */
  readonly keys: KeyRoom<PendingItem>;
  /** Is told how attempts have ended that releases judge. */
  readonly trials: TrialRoom;
  readonly lookups: Lookups;
  readonly epochStarts: EpochStarts;
  /** Items that stand in quarantine. */
  readonly setAside: ReadonlyMap<Place, SetAsideItem>;
  readonly returned: Window<PendingItem>;
  /** The same of those that run with nothing beside them: there may be many, and few workers for them. */
  readonly returnedAlone: Window<PendingItem>;
  /** Taken out of `returned`: what somebody has failed, for whoever may have it. */
  readonly shelf: Shelf<PendingItem>;
  /** Taken out of `returnedAlone`. */
  readonly alone: Shelf<PendingItem>;
  readonly delayed: Window<DelayedItem>;
  /** Priority → items of it that were never given out; highest priority first. */
  readonly fresh: Map<number, Window<PendingItem>>;
}

export interface Success {
  readonly output: Uint8Array;
  readonly digest: Uint8Array;
}

/** How an attempt ended, told by its worker or by the lack of a word from it. */
export interface AttemptEnd {
  readonly class: AttemptClass | "success";
  readonly message: string;
  /** The item's, if this attempt decides it; null when it does not. */
  readonly result: Success | Failure | null;
  readonly execution: Execution;
  /** The end of its standard error; empty when there is none. */
  readonly log: Uint8Array;
  /** Empty: it left none, and an earlier one stays. */
  readonly checkpoint: Uint8Array;
  /** Numbers that were looked for in its output, in the order of the pointers that its assignment came with. */
  readonly measures?: readonly Measure[] | undefined;
  /** The state of its key, if it is a success that says so. */
  readonly left?: LeftState | undefined;
}

/** A success that names an attempt which nobody is running under. */
export interface LateReport extends AttemptKey {
  readonly id: Uint8Array;
  readonly worker: WorkerId;
  readonly end: AttemptEnd & { readonly result: Success };
}

/** An item that failed, as it stands in the store. */
export interface FailedItem {
  readonly place: Place;
  readonly id: Uint8Array;
  readonly attempt: number;
  readonly class: FailureClass;
  readonly message: string;
  readonly isApart: boolean;
  /** Checksum of its record. */
  readonly checksum: number;
  /** Undefined for one that no room of keys has. */
  readonly key?: string | undefined;
}

/** An item as the coordinator has it in memory. */
export interface ItemSighting {
  readonly budgets: ItemBudgets;
  /** Undefined while nobody has it. */
  readonly running:
    | {
        readonly worker: WorkerId;
        readonly attempt: number;
        readonly charged: number;
        readonly lost: number;
        readonly isAlone: boolean;
        /** Undefined when another leader gave it out. */
        readonly assignedAgeMs: number | undefined;
      }
    | undefined;
  /** Priority → the first sequence of it that was never given out. */
  readonly cursors: ReadonlyMap<number, number>;
  /** The key of the item; undefined for one that has none. */
  readonly keyed?:
    | {
        readonly phase: KeyPhase;
        readonly partition: number;
        readonly head: Place | undefined;
        /** It has not failed. */
        readonly isHeadOpen: boolean;
      }
    | undefined;
}

export interface Failure {
  readonly class: FailureClass;
  readonly message: string;
  /** The answer that a server gave in place of a result. */
  readonly response?: Uint8Array;
  /** The key of the item goes on without it. */
  readonly sparesKey?: boolean;
}
