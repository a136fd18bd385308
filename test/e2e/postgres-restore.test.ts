// A dump of a run's tables, made while the run went on, is put back in the same database as somebody does who restores a backup: real
// processes on two hosts, and a worker that lives through all of it.
import { writeFile } from "node:fs/promises";
import { expect } from "chai";
import { EXIT } from "../../src/base/error-row.ts";
import { COORDINATOR_LEASE_KEY, EPOCH_KEY } from "../../src/storage/keys.ts";
import { schemaOf } from "../../src/storage/postgres/statements.ts";
import { eventually } from "../support/eventually.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { GATED_MANIFEST, gatedItems, writeGatedFunction } from "./gated-items.ts";
import { restartableAddress } from "../support/listeners.ts";
import { usePostgresDatabase } from "../support/postgres-database.ts";
import { dumpSchema, restoreDump } from "./postgres-dump.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";
import { readJournal, runUntil } from "../support/run-observer.ts";

const ITEMS = 20;
/** So many are done when the dump is made; another one is running. */
const EARLY = 10;

describe("a Postgres whose tables were put back from a dump", () => {
  const database = usePostgresDatabase();

  it("is refused on the host that led, with what is missing, and gone on with when that is accepted: no epoch twice", async () => {
    const [first, second] = [await restartableAddress(), await restartableAddress()];
    const settings = {
      "storage.path": undefined,
      "storage.url": database.urlWithoutPassword,
      "storage.password_file": database.passwordFile,
      "worker.coordinator_addr": [first, second],
      "worker.plugins": [GATED_MANIFEST],
      "transport.listen_addr": first,
      // The leader that the dump names is waited for no longer.
      "coordinator.failover_threshold": "5s",
    };
    await withCluster(settings, async (cluster) => {
      const coordinators: RolloutProcess[] = [];
      const launch = (address: string, ...args: string[]): RolloutProcess => {
        const state = `./state-of-${address.replace(":", "-")}`;
        const env = { ROLLOUT_TRANSPORT_LISTEN_ADDR: address, ROLLOUT_WORKER_STATE_DIR: state };
        const launched = cluster.launchCoordinator({ env, args });
        coordinators.push(launched);
        return launched;
      };
      await writeGatedFunction(cluster.directory);
      const leader = launch(first);
      await leader.event("coordinator_leading");
      const worker = cluster.launchWorker();
      await leader.event("worker_heartbeat", { state: "Ready" });
      const schema = schemaOf(cluster.runId);

      await cluster.submit([...gatedItems(0, EARLY), ...gatedItems(EARLY, EARLY + 1, { gate: "dumped" })]);
      await runUntil(cluster, ({ done, executing }) => done === EARLY && executing === 1);
      const dump = await dumpSchema(database.url, schema);
      await writeFile(cluster.file("dumped"), "");
      await cluster.submit(gatedItems(EARLY + 1, ITEMS));
      await runUntil(cluster, ({ done }) => done === ITEMS);
      expect(await leader.stop()).to.deep.equal({ code: 0, signal: null });
      await database.query(`DROP SCHEMA ${schema} CASCADE`);
      await restoreDump(database.url, dump);
      const leadership = (): Promise<Record<string, unknown>[]> =>
        database.query(`SELECT key, value FROM ${schema}.kv WHERE key = ANY ($1::bytea[]) ORDER BY key`, [
          [COORDINATOR_LEASE_KEY, EPOCH_KEY].map((key) => Buffer.from(key)),
        ]);
      const restored = await leadership();
      expect(restored).to.have.length(2);

      const refused = launch(first);
      expect(await refused.ended).to.deep.equal({ code: EXIT.storage, signal: null });
      expect(refused.stderr.join("\n")).to.include(
        `${ITEMS - EARLY} results and ${ITEMS - EARLY - 1} items are missing`,
      );
      expect(refused.seen("coordinator_leading")).to.deep.equal([]);
      expect(await leadership(), "and nothing was claimed").to.deep.equal(restored);

      const accepting = launch(first, "--on-rollback", "accept");
      const { epoch } = await accepting.event("coordinator_leading");
      await accepting.event("worker_heartbeat", { state: "Ready" });
      await launch(second).event("coordinator_following");
      await submitAgain(cluster);
      const { done, failed } = await runUntil(cluster, ({ state }) => state === "complete");
      expect({ done, failed }).to.deep.equal({ done: ITEMS, failed: 0 });
      const journal = readJournal(cluster.file("journal")).map(({ item }) => item);
      expect(journal, "what was final in the dump did not run again").to.have.length(2 * ITEMS - EARLY);
      expect(new Set(journal).size).to.equal(ITEMS);
      const results = (await cluster.run("results")).stdout.trimEnd().split("\n");
      expect(new Set(results).size, "each item has one result").to.equal(ITEMS);
      expect(results).to.have.length(ITEMS);
      expect(worker.isRunning).to.equal(true);

      await eventually("both are known to be there", async () => {
        const { stdout } = await cluster.run("status", "--json");
        const { coordinators } = JSON.parse(stdout) as { coordinators: readonly { present: boolean }[] };
        return coordinators.filter(({ present }) => present).length === 2;
      });
      const handover = await cluster.run("coordinator", "step-down");
      expect(handover.code, handover.stderr).to.equal(0);
      const led = coordinators.flatMap((each) =>
        each.seen("coordinator_leading").map((event) => event.epoch),
      );
      expect(led).to.deep.equal([0, epoch, epoch + 1]);
      expect(epoch).to.be.above(65_535);
    });
  });
});

async function submitAgain(cluster: Cluster): Promise<void> {
  const { added } = await cluster.submit(
    [
      ...gatedItems(0, EARLY),
      ...gatedItems(EARLY, EARLY + 1, { gate: "dumped" }),
      ...gatedItems(EARLY + 1, ITEMS),
    ],
    "--seal",
  );
  expect(added, "the others are known").to.equal(ITEMS - EARLY - 1);
}
