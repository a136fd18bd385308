// The files of an operator, without a coordinator that has made them.
import { systemClock } from "../../../src/base/clock.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { keepHostCredentials } from "../../../src/transport/tls/host-credentials.ts";
import type { Cluster } from "../../support/cluster.ts";
import { restartableAddress } from "../../support/listeners.ts";
import { authorityIn } from "../../support/real-authority.ts";

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
