// Transfers between accounts on a Postgres: the leader is killed with -9 in the middle of them, with a worker, and the other coordinator goes
// on with their states, their mail and their timers.
import { QUICK, withCluster } from "../support/cluster.ts";
import { restartableAddress } from "../support/listeners.ts";
import { usePostgresDatabase } from "../support/postgres-database.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";
import { runUntil } from "../support/run-observer.ts";
import { Bank, expectAllKept, expectSendsOnce, expectTimersOnce, outcomeOf, writeBank } from "./bank.ts";

describe("actors on a Postgres", () => {
  const database = usePostgresDatabase();

  it("go on under another leader: money, messages and timers", async () => {
    const addresses = [await restartableAddress(), await restartableAddress()] as const;
    const settings = {
      ...QUICK,
      "storage.path": undefined,
      "storage.url": database.urlWithoutPassword,
      "storage.password_file": database.passwordFile,
      "coordinator.heartbeat_interval": "500ms",
      "coordinator.failover_threshold": "2s",
      "transport.listen_addr": addresses[0],
      "worker.coordinator_addr": addresses,
      "worker.slots": 3,
    };
    await withCluster(settings, async (cluster) => {
      await writeBank(cluster);
      const bank = new Bank(cluster);
      const start = (address: string): RolloutProcess =>
        cluster.launchCoordinator({ env: { ROLLOUT_TRANSPORT_LISTEN_ADDR: address } });
      const leader = start(addresses[0]);
      await leader.event("coordinator_leading");
      const other = start(addresses[1]);
      await other.event("coordinator_following");
      const leaves = bank.launchWorker();
      bank.launchWorker();
      await bank.give(0);
      await bank.give(1);
      await runUntil(cluster, ({ done }) => done > 0);
      await leader.kill();
      await leaves.kill();
      await other.event("coordinator_leading");
      await cluster.configure({ "transport.listen_addr": addresses[1] });
      await bank.give(2);
      await bank.give(3);
      const outcome = await outcomeOf(bank);
      expectAllKept(outcome);
      expectTimersOnce(outcome);
      expectSendsOnce(outcome);
    });
  });
});
