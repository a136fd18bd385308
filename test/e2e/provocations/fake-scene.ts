// Scenes with a coordinator that is not one: it is made to say what a real one says rarely.
import { systemClock } from "../../../src/base/clock.ts";
import { failure } from "../../../src/base/errors.ts";
import type { ErrorCode, ErrorParams } from "../../../src/base/errors.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { keepHostCredentials } from "../../../src/transport/tls/host-credentials.ts";
import type { Cluster } from "../../support/cluster.ts";
import { restartableAddress } from "../../support/listeners.ts";
import { authorityIn } from "../../support/real-authority.ts";
import { startFakeCoordinator } from "./fake-coordinator.ts";
import type { Scene } from "./scene.ts";

/** The files that a coordinator's first start leaves for commands on its machine, without a database. */
export async function withOperator(cluster: Cluster): Promise<void> {
  const [clock, random, tlsDir] = [systemClock, systemRandom, cluster.file("data/tls")];
  const authority = await authorityIn(tlsDir);
  const coordinatorAddr = await restartableAddress();
  const { runId } = cluster;
  const parts = { authority, tlsDir, runId, hosts: [], clock, random };
  await keepHostCredentials({ ...parts, coordinatorAddr: [coordinatorAddr] });
  await cluster.configure({ "transport.listen_addr": coordinatorAddr });
}

/** A coordinator that refuses every command with this row. */
export async function fakeScene<Code extends ErrorCode>(
  cluster: Cluster,
  code: Code,
  params: ErrorParams<Code>,
): Promise<Scene<Code>> {
  await withOperator(cluster);
  const server = await startFakeCoordinator(cluster, failure(code, params));
  return {
    args: ["worker", "list", "--coordinator-addr", server.address],
    params,
    after: () => server.close(0),
  };
}
