// The status of a run that a test makes up: nothing has happened in it but what `change` says.
import { create } from "@bufbuild/protobuf";
import { statusOf } from "../../src/client/run-status.ts";
import type { RunStatus } from "../../src/client/run-status.ts";
import { GetRunResponseSchema, RunState } from "../../src/gen/rollout/v1/run_pb.ts";

export function madeStatus(change: Partial<RunStatus> = {}): RunStatus {
  const run = { state: RunState.OPEN, workers: {} };
  return { ...statusOf(create(GetRunResponseSchema, { run })), ...change };
}
