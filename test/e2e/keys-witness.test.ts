// Workers and the coordinator are killed with -9 while items of keys execute. The evidence is the executions' own journal, and the states
// that were kept: each counts the items of its key that have succeeded.
import { existsSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { QUICK, withCluster } from "../support/cluster.ts";
import { eventually } from "../support/eventually.ts";
import { pace } from "../support/pace.ts";
import { readJournal, runUntil } from "../support/run-observer.ts";
import { COUNTING_MANIFEST, expectKeysInOrder, writeCounting } from "./key-order.ts";

const KEYS = 5;
const KILLS = 3;
/** The items of a wave wait until the kill before it: what is to be killed has work in hand, and some is done. */
const WAVE = 3 * KEYS;
const ITEMS = (KILLS + 1) * WAVE;

describe("witnesses", () => {
  it("key_order_survives_kills, keyed_state_committed_once", async () => {
    await withCluster(
      { ...QUICK, "worker.slots": 4, "worker.plugins": [COUNTING_MANIFEST] },
      async (cluster) => {
        writeCounting(cluster);
        let coordinator = await cluster.startCoordinator();
        const workers = await cluster.startWorkers(2);
        const values = Array.from({ length: ITEMS }, (_, n) => {
          const wave = Math.floor(n / WAVE);
          return { k: n % KEYS, n, ...(wave > 0 && { gate: `killed-${wave}` }) };
        });
        expect(await cluster.submit(values, "--key-field", "k", "--seal")).to.include({ added: ITEMS });
        for (let kill = 1; kill <= KILLS; kill++) {
          await runUntil(cluster, ({ executing, done }) => executing === KEYS && done === kill * WAVE);
          if (kill % 2 === 1) {
            await coordinator.kill();
            coordinator = await cluster.startCoordinator();
          } else {
            await workers.pop()?.kill();
            workers.push(await cluster.startWorker());
          }
          writeFileSync(cluster.file(`killed-${kill}`), "");
        }
        const { done, failed } = await runUntil(cluster, ({ state }) => state === "complete");
        expect({ done, failed }).to.deep.equal({ done: ITEMS, failed: 0 });
        await expectKeysInOrder(cluster, values);
      },
    );
  });

  it("stale_worker_cannot_commit", async () => {
    const settings = {
      ...QUICK,
      "mock.sleep": `${1_000 * pace()}ms`,
      "mock.journal": "./journal",
      "mock.state": "20B",
    };
    await withCluster(settings, async (cluster) => {
      await cluster.startCoordinator();
      const stopped = await cluster.startWorker();
      await cluster.submit(
        [
          { k: "one", n: 1 },
          { k: "one", n: 2 },
        ],
        "--key-field",
        "k",
        "--seal",
      );
      const journal = cluster.file("journal");
      await eventually("it executes", () => existsSync(journal) && readJournal(journal).length > 0);
      stopped.send("SIGSTOP");
      await cluster.startWorker();
      await runUntil(cluster, ({ state }) => state === "complete");
      const state = async (): Promise<string> =>
        (await cluster.run("key", "get", "one", "--state")).stdout.trimEnd();
      expect(await state()).to.equal("2");

      // It wakes in the middle of the first item, ends it, and wants to tell.
      stopped.send("SIGCONT");
      const id = await stopped.id();
      await eventually("it is heard again", async () => (await cluster.listed(id))?.liveness === "alive");
      // It delivers what it has before it leaves.
      expect((await cluster.run("worker", "drain", id, "--wait")).code).to.equal(0);
      expect(await state()).to.equal("2");
      const { done, failed, state: left } = await runUntil(cluster, () => true);
      expect({ done, failed, left }).to.deep.equal({ done: 2, failed: 0, left: "complete" });
      const attempts = Map.groupBy(readJournal(journal), ({ item }) => item);
      const beginners = [...attempts.values()].map((again) => again.map(({ worker }) => worker === id));
      expect(beginners, "an item was begun by both").to.deep.include([true, false]);
    });
  });
});
