// Two coordinators over a Postgres, of which the leader is killed in the middle of the work.
import { QUICK, withCluster } from "../support/cluster.ts";
import type { Cluster, Settings } from "../support/cluster.ts";
import { restartableAddress } from "../support/listeners.ts";
import type { PostgresDatabase } from "../support/postgres-database.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";

export interface TwoCoordinators {
  readonly cluster: Cluster;
  /** By `kill -9`. */
  readonly killLeader: () => Promise<void>;
  /** Resolves when the other one leads, whom `cluster` asks from then on. */
  readonly untilOtherLeads: () => Promise<void>;
}

/** Gives `use` a leader and a follower; workers of the cluster know both. */
export async function withTwoCoordinators(
  database: PostgresDatabase,
  settings: Settings,
  use: (two: TwoCoordinators) => Promise<void>,
): Promise<void> {
  const [first, second] = [await restartableAddress(), await restartableAddress()];
  const both: Settings = {
    ...QUICK,
    "storage.path": undefined,
    "storage.url": database.urlWithoutPassword,
    "storage.password_file": database.passwordFile,
    "coordinator.heartbeat_interval": "500ms",
    "coordinator.failover_threshold": "5s",
    "transport.listen_addr": first,
    "worker.coordinator_addr": [first, second],
  };
  await withCluster({ ...both, ...settings }, async (cluster) => {
    const start = (address: string): RolloutProcess =>
      cluster.launchCoordinator({ env: { ROLLOUT_TRANSPORT_LISTEN_ADDR: address } });
    const leader = start(first);
    await leader.event("coordinator_leading");
    const other = start(second);
    await other.event("coordinator_following");
    await use({
      cluster,
      killLeader: () => leader.kill(),
      untilOtherLeads: async () => {
        await other.event("coordinator_leading");
        await cluster.configure({ "transport.listen_addr": second });
      },
    });
  });
}
