// The run in the coordinator's words: what it executes, what is submitted to it, and how it is shown to people.
import type { FailuresAllowed } from "../../config/failures-allowed.ts";
import type { Place } from "../ledger/place.ts";
import type { SetAsideItem } from "../ledger/quarantine-record.ts";
import type { FailureMessage } from "../ledger/failure-messages.ts";
import type { FailureClass, ItemIndexRecord, ItemRecord, LineCount } from "../ledger/records.ts";

/** The task that a run executes: its first submission says so, for good. */
export interface RunTask {
  /** SHA-256 over what is run. */
  readonly digest: Uint8Array;
  /** Empty: whatever a worker has. */
  readonly plugin: string;
  /** In words for a person. */
  readonly summary: string;
}

/** From where the run's limits are counted: its first submission, its last resumption or its last reopening. */
export interface CountedFrom {
  /** A time of the steady clock. */
  readonly wallMs: number;
  /** Done items and failures that there had been. */
  readonly done: number;
  readonly failures: number;
}

/** A limit that is undefined does not apply. */
export interface RunLimits {
  /** Limit of one attempt: the worker sees to it. */
  readonly itemTimeoutMs?: number | undefined;
  readonly maxFails?: FailuresAllowed | undefined;
  readonly timeLimitMs?: number | undefined;
}

export const NEVER_STARTED: CountedFrom = { wallMs: 0, done: 0, failures: 0 };

/** The meaning of a run's state to operators: whether it takes items, gives out work, is over. */
export type RunPhase = "open" | "sealed" | "complete" | "cancelled";

export interface RunView {
  /** Name of the state in the compiled chart: `Open.Active`. */
  readonly state: string;
  readonly phase: RunPhase;
  /** Null when it is not paused. */
  readonly pauseReason: string | null;
  readonly task: RunTask | null;
  /** Waiting, `delayed` included. */
  readonly pending: number;
  readonly delayed: number;
  readonly running: number;
  readonly executing: number;
  readonly done: number;
  readonly failed: number;
  /** Items that stand in quarantine: how many, and some of them. */
  readonly setAside: number;
  readonly setAsideItems: readonly SetAsideItem[];
  readonly failedByClass: Readonly<Record<FailureClass, number>>;
  /** The most frequent first. */
  readonly failureMessages: readonly FailureMessage[];
  /** Items that became final in each of the last whole seconds, latest last. */
  readonly finishedPerSecond: readonly number[];
  readonly staleReports: number;
  readonly conflicts: number;
  readonly reassigned: number;
  readonly workers: WorkerCounts;
}

/** The answer to one batch: how many of its lines were new, and how many named items that were there. */
export interface SubmissionAnswer {
  readonly added: number;
  readonly known: number;
  /** Lines of both kinds that are equal to one that came before in the submission. */
  readonly duplicates: number;
}

/** One batch, compared with the ledger. */
export interface PlannedBatch {
  readonly submission: string;
  readonly batchNumber: number;
  readonly task: RunTask;
  /** Whether it is taken by a run that was sealed. */
  readonly reopen: boolean;
  readonly added: readonly (ItemRecord & {
    readonly priority: number;
    readonly counts: readonly LineCount[];
  })[];
  /** How many lines named items that were there. */
  readonly known: number;
  readonly duplicates: number;
  /** Index rows to write for known items that were met in this submission. */
  readonly counted: readonly { readonly id: Uint8Array; readonly index: ItemIndexRecord }[];
}

/** Why a run does not take a submission. */
export type Refusal =
  | { readonly kind: "sealed" }
  | { readonly kind: "cancelled" }
  /** It executes something else. */
  | { readonly kind: "otherTask"; readonly task: RunTask };

export type SubmissionVerdict = ({ readonly kind: "taken" } & SubmissionAnswer) | Refusal;

/** `cancelled`: nothing of a cancelled run is retried. */
export type RetryVerdict =
  { readonly kind: "retried"; readonly items: number } | { readonly kind: "cancelled" };

/** Each worker counts once; those that are about to join or have left do not. */
export interface WorkerCounts {
  readonly ready: number;
  readonly draining: number;
  readonly suspected: number;
  readonly failed: number;
  readonly cordoned: number;
  /** Counted in none of the others. */
  readonly revoked: number;
}

/** As much of the ledger as a reader of its results has to know. Committed when it is told. */
export interface LedgerExtent {
  readonly phase: RunPhase;
  /** Nothing becomes final any more, unless the run is reopened. */
  readonly isOver: boolean;
  /** How many items were submitted; they are numbered from 0. */
  readonly nextSequence: number;
  /** Priorities of items that there are, highest first. */
  readonly priorities: readonly number[];
  /** Number of the next record of completions. */
  readonly nextCompletion: number;
  /** Items that stand in quarantine, by place: nothing will become of them. */
  readonly setAside: ReadonlyMap<Place, SetAsideItem>;
}
