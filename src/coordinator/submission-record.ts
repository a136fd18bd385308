// A submission in the store and on its way into the ledger.
import type { RecordType } from "../storage/codec.ts";
import { RECORD_KIND, SUBMISSIONS_PREFIX } from "../storage/keys.ts";
import type { ItemIndexRecord, ItemRecord, LineCount } from "./ledger/ledger-records.ts";

/** What was said to one batch: how many of its lines were new, and how many named items that were there. */
export interface SubmissionAnswer {
  readonly added: number;
  readonly known: number;
}

export const submissionRecord: RecordType<SubmissionAnswer> = {
  kind: RECORD_KIND.submission,
  name: "submission",
  version: 1,
  migrations: {},
  encode: ({ added, known }) => [added, known],
  decode: (fields) => ({ added: fields.integer(0), known: fields.integer(1) }),
};

/** Where the answer to one batch of a submission stands. */
export function submissionKey(submission: string, batchNumber: number): string {
  return `${SUBMISSIONS_PREFIX}${submission}/${String(batchNumber).padStart(16, "0")}`;
}

/** One batch, compared with the ledger. */
export interface PlannedBatch {
  readonly submission: string;
  readonly batchNumber: number;
  readonly added: readonly (ItemRecord & {
    readonly priority: number;
    readonly counts: readonly LineCount[];
  })[];
  /** How many lines named items that were there. */
  readonly known: number;
  /** Index rows to write for known items that were met in this submission. */
  readonly counted: readonly { readonly id: Uint8Array; readonly index: ItemIndexRecord }[];
}

/** `closed`: the run takes no more items. */
export type SubmissionVerdict = ({ readonly kind: "taken" } & SubmissionAnswer) | { readonly kind: "closed" };
