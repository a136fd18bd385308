// The run in numbers, and its sealing.
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import { RunService, RunState } from "../gen/rollout/v1/run_pb.ts";

export interface RunStatus {
  readonly state: "open" | "sealed" | "complete" | "cancelled" | "paused" | "unknown";
  readonly pending: number;
  readonly running: number;
  readonly done: number;
  readonly failed: number;
}

const STATES: Readonly<Record<RunState, RunStatus["state"]>> = {
  [RunState.UNSPECIFIED]: "unknown",
  [RunState.OPEN]: "open",
  [RunState.SEALED]: "sealed",
  [RunState.COMPLETE]: "complete",
  [RunState.CANCELLED]: "cancelled",
  [RunState.PAUSED]: "paused",
};

/** Throws the transport's rows. */
export async function readRunStatus(transport: Transport): Promise<RunStatus> {
  const { state, pending, running, done, failed } = await createClient(RunService, transport).getRun({});
  return {
    state: STATES[state] ?? "unknown",
    pending: Number(pending),
    running: Number(running),
    done: Number(done),
    failed: Number(failed),
  };
}

/** No more items will come: the run is complete when those that are there are final. Idempotent. */
export async function sealRun(transport: Transport): Promise<void> {
  await createClient(RunService, transport).seal({});
}
