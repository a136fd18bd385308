// The workers of a run, as an operator sees them: plain values instead of wire messages.
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import { assert } from "../base/assert.ts";
import { parseUlidBytes } from "../base/ids.ts";
import type { IncarnationId, WorkerId } from "../base/ids.ts";
import { WorkerLiveness, WorkerState } from "../gen/rollout/v1/common_pb.ts";
import { RunService } from "../gen/rollout/v1/run_pb.ts";
import type { WorkerInfo } from "../gen/rollout/v1/run_pb.ts";

export interface WorkerSummary {
  readonly workerId: WorkerId;
  readonly incarnation: IncarnationId;
  readonly state: "init" | "ready" | "draining" | "gone" | "unknown";
  readonly liveness: "alive" | "suspected" | "failed" | "removed" | "unknown";
  /** 0.0 to 1.0. */
  readonly load: number;
  readonly slots: number;
  readonly plugins: readonly { readonly name: string; readonly version: string }[];
  /** Milliseconds since 1970 on the coordinator's clock. */
  readonly registeredAtMs: number;
  /** Undefined while the coordinator has not heard of the worker since it began to lead. */
  readonly lastBeatAgeMs: number | undefined;
  /** Items that it has, started or not. */
  readonly held: number;
  /** Why it is given no work although it asks for some. */
  readonly cordonReason: string | undefined;
  /** Trouble that kept it from executing when it was last heard, in words: a model that loads, a server that is not there. */
  readonly trouble: string | undefined;
  /** Whether its certificate was revoked: nothing of it is taken any more. */
  readonly revoked: boolean;
}

const STATES: Readonly<Record<WorkerState, WorkerSummary["state"]>> = {
  [WorkerState.UNSPECIFIED]: "unknown",
  [WorkerState.INIT]: "init",
  [WorkerState.READY]: "ready",
  [WorkerState.DRAINING]: "draining",
  [WorkerState.GONE]: "gone",
};

const LIVENESSES: Readonly<Record<WorkerLiveness, WorkerSummary["liveness"]>> = {
  [WorkerLiveness.UNSPECIFIED]: "unknown",
  [WorkerLiveness.ALIVE]: "alive",
  [WorkerLiveness.SUSPECTED]: "suspected",
  [WorkerLiveness.FAILED]: "failed",
  [WorkerLiveness.REMOVED]: "removed",
};

/** All workers in order of id, a page a call. Throws the transport's rows. */
export async function listWorkers(transport: Transport): Promise<WorkerSummary[]> {
  const client = createClient(RunService, transport);
  const workers: WorkerSummary[] = [];
  let afterWorkerId: Uint8Array = new Uint8Array();
  for (;;) {
    const page = await client.listWorkers({ afterWorkerId });
    workers.push(...page.workers.map(workerOf));
    const last = page.workers.at(-1);
    if (!page.more || last === undefined) return workers;
    afterWorkerId = last.workerId;
  }
}

/** The worker with this id, in any case of its letters. */
export function findWorker(workers: readonly WorkerSummary[], name: string): WorkerSummary | undefined {
  return workers.find(({ workerId }) => workerId === name.toUpperCase());
}

/** The plain form of what stands in a page. */
export function workerOf(info: WorkerInfo): WorkerSummary {
  const workerId = parseUlidBytes<WorkerId>(info.workerId);
  const incarnation = parseUlidBytes<IncarnationId>(info.incarnation);
  assert(workerId !== undefined && incarnation !== undefined, "a coordinator names workers by 16 bytes");
  return {
    workerId,
    incarnation,
    // A newer coordinator may say a word that this version does not have.
    state: STATES[info.state] ?? "unknown",
    liveness: LIVENESSES[info.liveness] ?? "unknown",
    load: info.load,
    slots: info.slots,
    plugins: info.plugins.map(({ name, version }) => ({ name, version })),
    registeredAtMs: Number(info.registeredAtMs),
    lastBeatAgeMs: info.lastBeatAgeMs === undefined ? undefined : Number(info.lastBeatAgeMs),
    held: info.held,
    cordonReason: info.cordonReason === "" ? undefined : info.cordonReason,
    trouble: info.trouble === "" ? undefined : info.trouble,
    revoked: info.revoked,
  };
}
