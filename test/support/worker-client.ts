// A worker's way to a coordinator, with nothing of the worker behind it: calls with whatever in them.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Client as Calls } from "@connectrpc/connect";
import { createClient } from "@connectrpc/connect";
import { systemClock } from "../../src/base/clock.ts";
import type { IncarnationId, WorkerId } from "../../src/base/ids.ts";
import { ulidToBytes } from "../../src/base/ids.ts";
import { WorkerState } from "../../src/gen/rollout/v1/common_pb.ts";
import type { BeatSchema } from "../../src/gen/rollout/v1/heartbeat_pb.ts";
import { HeartbeatService } from "../../src/gen/rollout/v1/heartbeat_pb.ts";
import { EnrolmentService } from "../../src/gen/rollout/v1/enrolment_pb.ts";
import { RunService } from "../../src/gen/rollout/v1/run_pb.ts";
import { WorkService } from "../../src/gen/rollout/v1/work_pb.ts";
import { silentLogger } from "../../src/observe/log.ts";
import { openClient } from "../../src/transport/client.ts";
import type { Role } from "../../src/transport/tls/identity.ts";
import { newWorkerId } from "./certificates.ts";
import { incarnationId } from "./reactor-harness.ts";
import type { ListeningCoordinator } from "./test-coordinator.ts";

export interface NamedWorker {
  readonly id: WorkerId;
  readonly incarnation: IncarnationId;
}

export interface WorkerClient {
  readonly worker: NamedWorker;
  readonly beats: Calls<typeof HeartbeatService>;
  readonly work: Calls<typeof WorkService>;
  readonly run: Calls<typeof RunService>;
  readonly enrolment: Calls<typeof EnrolmentService>;
  readonly close: () => void;
}

/** Where a coordinator of which run is. */
export interface Reachable extends Pick<ListeningCoordinator, "runId" | "ca"> {
  readonly server: Pick<ListeningCoordinator["server"], "address">;
}

/** Calls by the bearer of a certificate of this role; a worker's with this id. */
export async function workerClient(
  { runId, ca, server }: Reachable,
  { id = newWorkerId(), role = "worker" }: { readonly id?: string; readonly role?: Role } = {},
): Promise<WorkerClient> {
  const credentials = await ca.issue({ runId, role, id });
  const { address } = server;
  const client = openClient({ address, runId, credentials, clock: systemClock, log: silentLogger });
  return {
    worker: { id: id as WorkerId, incarnation: incarnationId(1) },
    beats: createClient(HeartbeatService, client.transport),
    work: createClient(WorkService, client.transport),
    run: createClient(RunService, client.transport),
    enrolment: createClient(EnrolmentService, client.transport),
    close: () => client.close(),
  };
}

type BeatInit = Extract<MessageInitShape<typeof BeatSchema>, { readonly $typeName?: never }>;

/** A good beat, but for what `parts` say. */
export function beatMessage({ id, incarnation }: NamedWorker, parts: BeatInit = {}): BeatInit {
  return {
    worker: { workerId: ulidToBytes(id), incarnation: ulidToBytes(incarnation) },
    sequence: 1n,
    state: WorkerState.READY,
    load: 0.5,
    sentAtMs: 0n,
    slots: 1,
    ...parts,
  };
}
