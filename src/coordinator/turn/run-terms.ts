// The run in the coordinator's words: what it executes, what is submitted to it, how far its ledger reaches, and its pulse.
import type { FailuresAllowed } from "../../config/failures-allowed.ts";
import type { Place } from "../ledger/place.ts";
import type { FullPartition } from "../keys/key-table.ts";
import type { SetAsideItem } from "../ledger/quarantine-record.ts";
import type { ItemIndexRecord, ItemRecord, LineCount } from "../ledger/records.ts";

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
  | { readonly kind: "otherTask"; readonly task: RunTask }
  /** It has come to this task by a release: its items have the names that its first task gives them. */
  | { readonly kind: "renamed"; readonly task: RunTask }
  /** A release is trying this task. */
  | { readonly kind: "onTrial"; readonly task: RunTask; readonly release: string }
  /** More timers would be armed than may. */
  | { readonly kind: "timersFull"; readonly limit: number }
  /** A partition would have more keys than it may. */
  | ({ readonly kind: "partitionFull" } & FullPartition)
  /** Its keys fall into another number of partitions than is configured. */
  | { readonly kind: "partitionsFixed"; readonly found: number; readonly configured: number };

export type SubmissionVerdict = ({ readonly kind: "taken" } & SubmissionAnswer) | Refusal;

/** `cancelled`: nothing of a cancelled run is retried. */
export type RetryVerdict =
  | { readonly kind: "retried"; readonly items: number }
  | { readonly kind: "cancelled" };

/** Tasks that a run has come to, or may come to, by releases. */
export interface ReleasedTasks {
  hasReached(digest: Uint8Array): boolean;
  /** The release that is trying the task. */
  triedBy(digest: Uint8Array): string | undefined;
}

/** As much of the ledger as a reader of its results has to know. Committed when it is told. */
export interface LedgerExtent {
  readonly phase: RunPhase;
  /** Null before the first submission. */
  readonly task: RunTask | null;
  /** Other tasks that it has to do with, by its releases. */
  readonly releases: ReleasedTasks;
  /** Nothing becomes final any more, unless the run is reopened. */
  readonly isOver: boolean;
  /** How many items were submitted; they are numbered from 0. */
  readonly nextSequence: number;
  /** Priorities of items that there are, highest first. */
  readonly priorities: readonly number[];
  /** The same of items that have keys. */
  readonly keyedPriorities: readonly number[];
  /** Number of the next record of completions. */
  readonly nextCompletion: number;
  /** Items that stand in quarantine, by place: nothing will become of them. */
  readonly setAside: ReadonlyMap<Place, SetAsideItem>;
}

/** How often there was something new to be shown of the run. */
export interface News {
  /** Steps of the run and of workers: each is worth telling at once. */
  steps: number;
  /** Turns after which other numbers are shown. */
  changes: number;
}

/** How far a run has got: what its followers wait for. Told with each turn that changes any of it. */
export type RunReach = LedgerExtent & Readonly<News>;

/** One more than is shown: the current second. */
const SECONDS = 61;

/**
 * How many items became final in each of the last seconds, for people who watch: from when a worker first had one, as what went before says
 * nothing of how fast they are. Bounded (C8); time comes from the turns.
 */
export class Pulse {
  /** Monotonic, as all times here. */
  #beganMs: number | undefined;
  /** The second `n` stands at `n % SECONDS`; seconds from `#second - SECONDS + 1` to `#second` are here. */
  readonly #counts = new Array<number>(SECONDS).fill(0);
  /** The latest one that was touched, counted from the beginning. */
  #second = 0;

  /** `isAtWork`: workers have items. */
  count(nowMs: number, finished: number, isAtWork: boolean): void {
    if (finished > 0 || isAtWork) this.#beganMs ??= nowMs;
    const at = this.#advance(nowMs) % SECONDS;
    this.#counts[at] = (this.#counts[at] ?? 0) + finished;
  }

  /**
   * Counts of the whole seconds that have passed, latest last; fewer when there have been fewer. The current one is not over
   * yet.
   */
  read(nowMs: number): number[] {
    const current = this.#advance(nowMs);
    const length = Math.min(current, SECONDS - 1);
    return Array.from({ length }, (_, at) => this.#counts[(current - length + at) % SECONDS] ?? 0);
  }

  /** The current second. Seconds that were skipped are empty. */
  #advance(nowMs: number): number {
    const current = Math.floor((nowMs - (this.#beganMs ?? nowMs)) / 1_000);
    const skipped = Math.min(current - this.#second, SECONDS);
    for (let step = 0; step < skipped; step++) this.#counts[(current - step) % SECONDS] = 0;
    this.#second = Math.max(this.#second, current);
    return this.#second;
  }
}
