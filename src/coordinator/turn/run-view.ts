// The run in the coordinator's words: what is kept of it in the store, and how it is shown to people.
import type { FailuresAllowed } from "../../config/failures-allowed.ts";
import type { RecordType } from "../../storage/codec.ts";
import type { Fields } from "../../storage/fields.ts";
import { RECORD_KIND } from "../../storage/keys.ts";
import type { Place } from "../ledger/place.ts";
import type { SetAsideItem } from "../ledger/quarantine-record.ts";
import type { FailureMessage } from "../ledger/failure-messages.ts";
import type { FailureClass } from "../ledger/records.ts";

/** What a run executes: its first submission says so, for good. */
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
  /** Of the steady clock (steady-clock.ts). */
  readonly wallMs: number;
  /** Done items and failures that there had been. */
  readonly done: number;
  readonly failures: number;
}

/** What is undefined is not limited. */
export interface RunLimits {
  /** Of one attempt: the worker sees to it. */
  readonly itemTimeoutMs?: number | undefined;
  readonly maxFails?: FailuresAllowed | undefined;
  readonly timeLimitMs?: number | undefined;
}

export const NEVER_STARTED: CountedFrom = { wallMs: 0, done: 0, failures: 0 };

export interface RunRecord {
  /** Name of the state in the compiled chart: `Open.Active`. */
  readonly state: string;
  readonly pauseReason: string | null;
  /** Null before the first submission. */
  readonly task: RunTask | null;
  readonly countedFrom: CountedFrom;
}

export const runRecord: RecordType<RunRecord> = {
  kind: RECORD_KIND.run,
  name: "run",
  version: 1,
  migrations: {},
  encode: ({ state, pauseReason, task, countedFrom }) => [
    state,
    pauseReason,
    task === null ? null : [task.digest, task.plugin, task.summary],
    [countedFrom.wallMs, countedFrom.done, countedFrom.failures],
  ],
  decode: (fields) => {
    const counted = fields.tuple(3);
    return {
      state: fields.text(0),
      pauseReason: fields.isNull(1) ? null : fields.text(1),
      task: fields.isNull(2) ? null : taskFrom(fields.tuple(2)),
      countedFrom: { wallMs: counted.number(0), done: counted.integer(1), failures: counted.integer(2) },
    };
  },
};

function taskFrom(fields: Fields): RunTask {
  return { digest: fields.bytes(0), plugin: fields.text(1), summary: fields.text(2) };
}

/** What a run's state means to those who ask: which of them take items, give out work, are over. */
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

/** `cancelled`: nothing of a cancelled run is taken back. */
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
  /** Of the next record of completions. */
  readonly nextCompletion: number;
  /** Items that stand in quarantine, by place: nothing will become of them. */
  readonly setAside: ReadonlyMap<Place, SetAsideItem>;
}
