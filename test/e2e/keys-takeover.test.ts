// A run with keys on a Postgres: its leader is killed with -9 while items of keys execute, and the other coordinator goes on with their order
// and their states.
import { writeFileSync } from "node:fs";
import { expect } from "chai";
import { QUICK, withCluster } from "../support/cluster.ts";
import { COUNTING_MANIFEST, expectKeysInOrder, writeCounting } from "./key-order.ts";
import { restartableAddress } from "../support/listeners.ts";
import { usePostgresDatabase } from "../support/postgres-database.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";
import { runUntil } from "../support/run-observer.ts";

const KEYS = 4;
/** Items that are done before the kill, and as many that are not. */
const WAVE = 3 * KEYS;

describe("keys on a Postgres", () => {
  const database = usePostgresDatabase();

  it("go on under another leader, in order and with their states", async () => {
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
      ...{ "worker.slots": 2, "worker.plugins": [COUNTING_MANIFEST] },
    };
    await withCluster(settings, async (cluster) => {
      writeCounting(cluster);
      const start = (address: string): RolloutProcess =>
        cluster.launchCoordinator({ env: { ROLLOUT_TRANSPORT_LISTEN_ADDR: address } });
      const leader = start(addresses[0]);
      await leader.event("coordinator_leading");
      const other = start(addresses[1]);
      await other.event("coordinator_following");
      const [stays, leaves] = [cluster.launchWorker(), cluster.launchWorker()];
      const values = Array.from({ length: 2 * WAVE }, (_, n) => ({
        ...{ k: n % KEYS, n },
        ...(n >= WAVE && { gate: "killed" }),
      }));
      await cluster.submit(values, "--key-field", "k", "--seal");
      await runUntil(cluster, ({ executing, done }) => executing === KEYS && done === WAVE);
      await leader.kill();
      await leaves.kill();
      writeFileSync(cluster.file("killed"), "");
      await other.event("coordinator_leading");
      await cluster.configure({ "transport.listen_addr": addresses[1] });
      const { done, failed } = await runUntil(cluster, ({ state }) => state === "complete");
      expect({ done, failed }).to.deep.equal({ done: values.length, failed: 0 });
      await expectKeysInOrder(cluster, values);
      expect(await stays.stop()).to.have.property("code", 0);
    });
  });
});
