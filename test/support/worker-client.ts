// A worker's way to a coordinator, with nothing of the worker behind it: calls with whatever in them.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Client as Calls, Transport } from "@connectrpc/connect";
import { createClient } from "@connectrpc/connect";
import { systemClock } from "../../src/base/clock.ts";
import type { IncarnationId, WorkerId } from "../../src/base/ids.ts";
import { ulidToBytes } from "../../src/base/ids.ts";
import { WorkerState } from "../../src/gen/rollout/v1/common_pb.ts";
import type { BeatSchema } from "../../src/gen/rollout/v1/heartbeat_pb.ts";
import { HeartbeatService } from "../../src/gen/rollout/v1/heartbeat_pb.ts";
import { EnrolmentService } from "../../src/gen/rollout/v1/enrolment_pb.ts";
import { OperatorService } from "../../src/gen/rollout/v1/run_pb.ts";
import type { Run } from "../../src/gen/rollout/v1/run_pb.ts";
import { WorkService } from "../../src/gen/rollout/v1/work_pb.ts";
import { silentLogger } from "../../src/observe/log.ts";
import { openClient } from "../../src/transport/client.ts";
import type { Role } from "../../src/transport/tls/identity.ts";
import { newWorkerId } from "./certificates.ts";
import { incarnationId } from "./world-worker.ts";
import type { ListeningCoordinator } from "./test-coordinator.ts";

export interface NamedWorker {
  readonly id: WorkerId;
  readonly incarnation: IncarnationId;
}

export interface WorkerClient {
  readonly worker: NamedWorker;
  /** The same, as it stands in a message. */
  readonly envelope: { readonly workerId: Uint8Array; readonly incarnation: Uint8Array };
  readonly transport: Transport;
  readonly beats: Calls<typeof HeartbeatService>;
  readonly work: Calls<typeof WorkService>;
  readonly run: Calls<typeof OperatorService>;
  readonly enrolment: Calls<typeof EnrolmentService>;
  readonly close: () => void;
}

/** Where a coordinator of which run is. */
export interface Reachable extends Pick<ListeningCoordinator, "runId" | "ca"> {
  readonly server: Pick<ListeningCoordinator["server"], "address">;
}

export interface CallerOptions {
  readonly id?: string;
  readonly role?: Role;
  /** As the client's: what this coordinator says is the answer, also that another one leads. */
  readonly isAlone?: boolean;
}

/** Calls by the bearer of a certificate of this role; a worker's with this id. */
export async function workerClient(
  { runId, ca, server }: Reachable,
  { id = newWorkerId(), role = "worker", isAlone = false }: CallerOptions = {},
): Promise<WorkerClient> {
  const credentials = await ca.issue({ runId, role, id });
  const { address } = server;
  const client = openClient({ address, isAlone, runId, credentials, clock: systemClock, log: silentLogger });
  const { transport } = client;
  const worker: NamedWorker = { id: id as WorkerId, incarnation: incarnationId(1) };
  return {
    worker,
    envelope: envelopeOf(worker),
    transport,
    beats: createClient(HeartbeatService, transport),
    work: createClient(WorkService, transport),
    run: createClient(OperatorService, transport),
    enrolment: createClient(EnrolmentService, transport),
    close: () => client.close(),
  };
}

function envelopeOf({ id, incarnation }: NamedWorker): WorkerClient["envelope"] {
  return { workerId: ulidToBytes(id), incarnation: ulidToBytes(incarnation) };
}

/** The run in numbers, as an operator is told. */
export async function seenRun(run: Pick<Calls<typeof OperatorService>, "getRun">): Promise<Run> {
  const { run: told } = await run.getRun({});
  if (told === undefined) throw new Error("an answer without the run");
  return told;
}

type BeatInit = Extract<MessageInitShape<typeof BeatSchema>, { readonly $typeName?: never }>;

/** A good beat, but for what `parts` say. */
export function beatMessage(worker: NamedWorker, parts: BeatInit = {}): BeatInit {
  return {
    worker: envelopeOf(worker),
    sequence: 1n,
    state: WorkerState.READY,
    load: 0.5,
    sentAtMs: 0n,
    slots: 1,
    ...parts,
  };
}
