// One worker, as an operator sees it, and its leaving.
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { failure } from "../base/errors.ts";
import type { WorkerId } from "../base/ids.ts";
import { ulidToBytes } from "../base/ids.ts";
import { RunService } from "../gen/rollout/v1/run_pb.ts";
import { workerOf } from "./list-workers.ts";
import type { WorkerSummary } from "./list-workers.ts";

export interface WorkerDetail extends WorkerSummary {
  /** Items that it has, started or not: at most 1,000. */
  readonly holds: readonly { readonly item: string; readonly attempt: number }[];
  /** Room that it has announced and that is not filled. */
  readonly credit: number;
  readonly hasSession: boolean;
  /** Straight failures, while others succeeded. */
  readonly failuresInRow: number;
}

/** Throws the transport's rows, and that of an unknown worker. */
export async function readWorker(transport: Transport, workerId: WorkerId): Promise<WorkerDetail> {
  const answer = await createClient(RunService, transport).getWorker({ workerId: ulidToBytes(workerId) });
  if (answer.info === undefined) {
    throw failure("request_invalid", { method: "GetWorker", reason: "the answer names no worker" });
  }
  return {
    ...workerOf(answer.info),
    holds: answer.held.map(({ itemId, attempt }) => ({ item: Buffer.from(itemId).toString("hex"), attempt })),
    credit: Number(answer.credit),
    hasSession: answer.hasSession,
    failuresInRow: answer.failuresInRow,
  };
}

/** The worker is asked to leave in good order; it has not left yet. Idempotent. Throws the transport's rows. */
export async function drainWorker(transport: Transport, workerId: WorkerId): Promise<void> {
  await createClient(RunService, transport).drainWorker({ workerId: ulidToBytes(workerId) });
}

const POLL_MS = 250;

/** Resolves when the worker has left, or is lost on the way: `failed` then. Throws the transport's rows. */
export async function untilGone(
  transport: Transport,
  workerId: WorkerId,
  { clock, signal }: { readonly clock: Clock; readonly signal?: AbortSignal },
): Promise<"gone" | "failed"> {
  for (;;) {
    const { state, liveness } = await readWorker(transport, workerId);
    if (state === "gone" || liveness === "removed") return "gone";
    if (liveness === "failed") return "failed";
    await sleep(clock, POLL_MS, signal);
    if (signal?.aborted === true) throw failure("interrupted", {});
  }
}
