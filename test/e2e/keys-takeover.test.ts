// A run with keys on a Postgres: its leader is killed with -9 while items of keys execute, and the other coordinator goes on with their order
// and their states.
import { writeFileSync } from "node:fs";
import { expect } from "chai";
import { COUNTING_MANIFEST, expectKeysInOrder, writeCounting } from "./key-order.ts";
import { usePostgresDatabase } from "../support/postgres-database.ts";
import { runUntil } from "../support/run-observer.ts";
import { withTwoCoordinators } from "./two-coordinators.ts";

const KEYS = 4;
/** Items that are done before the kill, and as many that are not. */
const WAVE = 3 * KEYS;

describe("keys on a Postgres", () => {
  const database = usePostgresDatabase();

  it("go on under another leader, in order and with their states", async () => {
    const settings = { "worker.slots": 2, "worker.plugins": [COUNTING_MANIFEST] };
    await withTwoCoordinators(database, settings, async ({ cluster, killLeader, untilOtherLeads }) => {
      writeCounting(cluster);
      const [stays, leaves] = [cluster.launchWorker(), cluster.launchWorker()];
      const values = Array.from({ length: 2 * WAVE }, (_, n) => ({
        ...{ k: n % KEYS, n },
        ...(n >= WAVE && { gate: "killed" }),
      }));
      await cluster.submit(values, "--key-field", "k", "--seal");
      await runUntil(cluster, ({ executing, done }) => executing === KEYS && done === WAVE);
      await killLeader();
      await leaves.kill();
      writeFileSync(cluster.file("killed"), "");
      await untilOtherLeads();
      const { done, failed } = await runUntil(cluster, ({ state }) => state === "complete");
      expect({ done, failed }).to.deep.equal({ done: values.length, failed: 0 });
      await expectKeysInOrder(cluster, values);
      expect(await stays.stop()).to.have.property("code", 0);
    });
  });
});
