// A submission in the store and on its way into the ledger.
import type { RecordType } from "../../storage/codec.ts";
import { RECORD_KIND, SUBMISSIONS_PREFIX } from "../../storage/keys.ts";
import type { RunTask } from "../turn/run-view.ts";
import type { ItemIndexRecord, ItemRecord, LineCount } from "../ledger/records.ts";

/** What was said to one batch: how many of its lines were new, and how many named items that were there. */
export interface SubmissionAnswer {
  readonly added: number;
  readonly known: number;
  /** Of both: equal to a line that came before in the submission. */
  readonly duplicates: number;
}

export const submissionRecord: RecordType<SubmissionAnswer> = {
  kind: RECORD_KIND.submission,
  name: "submission",
  version: 1,
  migrations: {},
  encode: ({ added, known, duplicates }) => [added, known, duplicates],
  decode: (fields) => ({
    added: fields.integer(0),
    known: fields.integer(1),
    duplicates: fields.integer(2),
  }),
};

/** Where the answer to one batch of a submission stands. */
export function submissionKey(submission: string, batchNumber: number): string {
  return `${SUBMISSIONS_PREFIX}${submission}/${String(batchNumber).padStart(16, "0")}`;
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

/** A run executes one task: undefined when `asked` is the one of `run`. */
export function otherTask(run: RunTask, asked: RunTask): Refusal | undefined {
  return Buffer.compare(run.digest, asked.digest) === 0 ? undefined : { kind: "otherTask", task: run };
}

export type SubmissionVerdict = ({ readonly kind: "taken" } & SubmissionAnswer) | Refusal;
