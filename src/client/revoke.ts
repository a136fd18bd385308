// A certificate made good for nothing, asked of the coordinator that leads.
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import type { WorkerId } from "../base/ids.ts";
import { ulidToBytes } from "../base/ids.ts";
import { RunService } from "../gen/rollout/v1/run_pb.ts";

export interface RevocationRequest {
  /** The id of a worker, a bundle or an operator. */
  readonly id: WorkerId;
  /** Also the workers that have joined by it, if it is a bundle's. */
  readonly withWorkers: boolean;
}

export interface Revocation {
  readonly isWorker: boolean;
  /** Workers that have joined by a bundle of this id. */
  readonly enrolled: number;
  readonly workersRevoked: number;
}

/** Resolves when no call of the bearer is taken any more, now and after a restart. Idempotent. Throws the transport's rows. */
export async function revokeBearer(
  transport: Transport,
  { id, withWorkers }: RevocationRequest,
): Promise<Revocation> {
  const client = createClient(RunService, transport);
  const { isWorker, enrolled, workersRevoked } = await client.revoke({
    bearerId: ulidToBytes(id),
    withWorkers,
  });
  return { isWorker, enrolled, workersRevoked };
}
