// A batch of results as it lies in the worker's own store: the very message that is sent, so that what is delivered after a
// restart is what was stored.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { unreachable } from "../base/assert.ts";
import { OutcomeClass, ResultBatchSchema, ResultSchema } from "../gen/rollout/v1/work_pb.ts";
import type { Result, ResultBatch } from "../gen/rollout/v1/work_pb.ts";
import type { RecordType } from "../storage/codec.ts";
import { RECORD_KIND } from "../storage/keys.ts";
import type { Outcome } from "./backends/backend.ts";
import type { Finished } from "./executor.ts";

export const resultBatchRecord: RecordType<ResultBatch> = {
  kind: RECORD_KIND.resultBatch,
  name: "result batch",
  version: 1,
  migrations: {},
  encode: (batch) => [toBinary(ResultBatchSchema, batch)],
  decode: (fields) => fromBinary(ResultBatchSchema, fields.bytes(0)),
};

const OUTCOME_CLASS: { readonly [Kind in Outcome["kind"]]: OutcomeClass } = {
  success: OutcomeClass.SUCCESS,
  error: OutcomeClass.ERROR,
  timeout: OutcomeClass.TIMEOUT,
  crash: OutcomeClass.CRASH,
  too_large: OutcomeClass.TOO_LARGE,
  preempted: OutcomeClass.PREEMPTED,
};

/** How an attempt ended, as the coordinator is told. `incarnation` in bytes. */
export function resultOf({ assigned, outcome, outputDigest }: Finished, incarnation: Uint8Array): Result {
  const { itemId, attempt, epoch } = assigned;
  return create(ResultSchema, {
    attempt: { itemId, attempt },
    epoch,
    incarnation,
    outcome: OUTCOME_CLASS[outcome.kind],
    outputDigest,
    ...detailOf(outcome),
  });
}

function detailOf(outcome: Outcome): Partial<Pick<Result, "output" | "errorMessage" | "checkpoint">> {
  switch (outcome.kind) {
    case "success":
      return { output: outcome.output };
    case "error":
    case "crash":
      return { errorMessage: outcome.message };
    case "preempted":
      return outcome.checkpoint === undefined ? {} : { checkpoint: outcome.checkpoint };
    case "timeout":
    case "too_large":
      return {};
    default:
      return unreachable(outcome, "outcome");
  }
}
