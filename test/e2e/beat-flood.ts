// A worker that makes its coordinator talk as much as it can: each of its beats is of a new incarnation with every plugin
// that a beat may name, so each is three events, one of them of some twenty kilobytes.
import { createClient } from "@connectrpc/connect";
import { systemClock } from "../../src/base/clock.ts";
import { ulidToBytes } from "../../src/base/ids.ts";
import { LIMITS } from "../../src/config/limits.ts";
import { WorkerState } from "../../src/gen/rollout/v1/common_pb.ts";
import { HeartbeatService } from "../../src/gen/rollout/v1/heartbeat_pb.ts";
import { silentLogger } from "../../src/observe/log.ts";
import { openClient } from "../../src/transport/client.ts";
import type { Authority } from "../../src/transport/tls/authority.ts";
import { newWorkerId } from "../support/certificates.ts";
import type { Cluster } from "../support/cluster.ts";
import { authorityIn } from "../support/real-authority.ts";

const WORKERS = 8;
const LONG = "x".repeat(LIMITS.pluginTextBytes);
/** Registered, its predecessor superseded, heard. */
export const EVENTS_PER_BEAT = 3;

/** Resolves when `count` beats have been answered. */
export async function floodWithBeats(cluster: Cluster, count: number): Promise<void> {
  const authority = await authorityIn(cluster.file("data/tls"));
  const workers = Array.from({ length: WORKERS }, () => beatInTurn(cluster, authority, count / WORKERS));
  await Promise.all(workers);
}

/** One worker, one beat after the other. */
async function beatInTurn(cluster: Cluster, authority: Authority, count: number): Promise<void> {
  const [runId, id] = [cluster.runId, newWorkerId()];
  const credentials = await authority.issue({ identity: { runId, role: "worker", id } });
  const { address } = cluster;
  const client = openClient({ address, runId, credentials, clock: systemClock, log: silentLogger });
  const service = createClient(HeartbeatService, client.transport);
  const plugins = Array.from({ length: LIMITS.pluginsPerBeat }, () => ({ name: LONG, version: LONG }));
  const incarnation = Buffer.from(ulidToBytes(newWorkerId()));
  try {
    for (let beat = 1; beat <= count; beat++) {
      // Each is greater than the one before: its last four bytes count.
      incarnation.writeUInt32BE(beat, incarnation.length - 4);
      const worker = { workerId: ulidToBytes(id), incarnation: Uint8Array.from(incarnation) };
      await service.beat({ beat: { worker, state: WorkerState.READY, sequence: 1n, slots: 1, plugins } });
    }
  } finally {
    client.close();
  }
}
