// A batch of results as it lies in the worker's own store: the very message that is sent, so that what is delivered after a
// restart is what was stored.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { unreachable } from "../../base/assert.ts";
import {
  MeasureSchema,
  OutcomeClass,
  ResultBatchSchema,
  ResultSchema,
} from "../../gen/rollout/v1/work_pb.ts";
import type { Result, ResultBatch } from "../../gen/rollout/v1/work_pb.ts";
import type { RecordType } from "../../storage/codec.ts";
import { RECORD_KIND } from "../../storage/keys.ts";
import type { Finished, NotBegun } from "./execution.ts";
import { writeKeyed } from "./keyed-wire.ts";

/** An attempt that has ended here, or that was not begun. */
export type Told = Finished | NotBegun;

export const resultBatchRecord: RecordType<ResultBatch> = {
  kind: RECORD_KIND.resultBatch,
  name: "result batch",
  encode: (batch) => [toBinary(ResultBatchSchema, batch)],
  decode: (fields) => fromBinary(ResultBatchSchema, fields.bytes(0)),
};

const OUTCOME_CLASS: { readonly [Kind in Told["outcome"]["kind"]]: OutcomeClass } = {
  success: OutcomeClass.SUCCESS,
  error: OutcomeClass.ERROR,
  timeout: OutcomeClass.TIMEOUT,
  crash: OutcomeClass.CRASH,
  crash_shared: OutcomeClass.CRASH_SHARED,
  too_large: OutcomeClass.TOO_LARGE,
  preempted: OutcomeClass.PREEMPTED,
  fenced: OutcomeClass.FENCED,
  state_missing: OutcomeClass.STATE_MISSING,
};

/** How an attempt ended, as the coordinator is told. `incarnation` in bytes. */
export function resultOf(finished: Told, incarnation: Uint8Array): Result {
  const { assigned, outcome, checkpoint, outputDigest, startedAtMs, durationMs, log } = finished;
  const { pluginVersion, stateVersion = 0, measures } = finished;
  const { itemId, attempt, epoch } = assigned;
  return create(ResultSchema, {
    attempt: { itemId, attempt },
    epoch,
    incarnation,
    outcome: OUTCOME_CLASS[outcome.kind],
    checkpoint,
    outputDigest,
    pluginVersion,
    versionNamed: assigned.version !== "" && assigned.version === pluginVersion,
    startedAtMs: BigInt(Math.round(startedAtMs)),
    durationMs: BigInt(Math.round(durationMs)),
    log,
    ...(measures && { measures: measures.map((measure) => create(MeasureSchema, measure)) }),
    ...detailOf(outcome),
    ...(outcome.kind === "success" && keyedOf(assigned.keyed, outcome, stateVersion)),
  });
}

function keyedOf(
  ...given: Parameters<typeof writeKeyed>
): Pick<MessageInitShape<typeof ResultSchema>, "keyed"> {
  const keyed = writeKeyed(...given);
  return keyed === undefined ? {} : { keyed };
}

/** The result in place of one that the coordinator would not take. */
export function tooLargeFor({ keyed: _, ...result }: Result, limitBytes: number): Result {
  const bytes = result.output.length;
  return create(ResultSchema, {
    ...result,
    outcome: OutcomeClass.TOO_LARGE,
    output: new Uint8Array(),
    outputDigest: new Uint8Array(),
    measures: [],
    errorMessage: `the output is ${bytes} bytes; the limit is ${limitBytes} (limits.output of the coordinator)`,
  });
}

function detailOf(
  outcome: Told["outcome"],
): Partial<Pick<Result, "output" | "errorMessage" | "response" | "permanent" | "sparesKey">> {
  switch (outcome.kind) {
    case "success":
      return { output: outcome.output };
    case "error":
      return {
        errorMessage: outcome.message,
        permanent: outcome.isPermanent === true,
        sparesKey: outcome.sparesKey === true,
        ...(outcome.response !== undefined && { response: outcome.response }),
      };
    case "timeout":
    case "crash":
    case "crash_shared":
      return { errorMessage: outcome.message };
    case "preempted":
    case "fenced":
    case "state_missing":
      return {};
    case "too_large":
      return outcome.message === undefined ? {} : { errorMessage: outcome.message };
    default:
      return unreachable(outcome, "outcome");
  }
}
