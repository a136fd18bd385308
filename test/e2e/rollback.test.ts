// A database that went back: an older copy of its directory was put in its place, as somebody does who restores a backup.
import { cp, rename, rm } from "node:fs/promises";
import { expect } from "chai";
import { EXIT } from "../../src/base/error-row.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";
import { runUntil } from "../support/run-observer.ts";

const DATABASE = "data/rollout.db";
const ACCEPT = ["--on-rollback", "accept"];

async function submitAndFinish(cluster: Cluster, from: number, to: number): Promise<void> {
  const values = Array.from({ length: to - from }, (_, at) => ({ n: from + at }));
  await cluster.submit(values);
  await runUntil(cluster, ({ done }) => done === to);
}

/** Its copy is 6 results, 6 items and two leaderships behind when it is put back. A worker lives through all of it. */
async function goBack(cluster: Cluster): Promise<void> {
  await (await cluster.startCoordinator()).stop();
  const first = await cluster.startCoordinator();
  await cluster.startWorker();
  await submitAndFinish(cluster, 0, 4);
  await first.stop();
  await cp(cluster.file(DATABASE), cluster.file("backup"), { recursive: true });
  const second = await cluster.startCoordinator();
  await submitAndFinish(cluster, 4, 10);
  await second.stop();
  const third = await cluster.startCoordinator();
  await third.event("worker_heartbeat", { state: "Ready" });
  await third.stop();
  await rm(cluster.file(DATABASE), { recursive: true });
  await rename(cluster.file("backup"), cluster.file(DATABASE));
}

async function expectRefused(coordinator: RolloutProcess): Promise<void> {
  expect(await coordinator.ended).to.deep.equal({ code: EXIT.storage, signal: null });
  expect(coordinator.stderr.join("\n")).to.contain("went back to an older state");
}

describe("a database that went back to an older state", () => {
  const it = concurrentTests(2);

  it("is refused with exit code 6 and with what is missing, twice, and gone on with when that is accepted", async () => {
    await withCluster({}, async (cluster) => {
      await goBack(cluster);
      for (const time of [1, 2]) {
        const refused = cluster.launchCoordinator();
        await expectRefused(refused);
        expect(refused.stderr.join("\n"), `time ${time}`).to.contain("6 results and 6 items are missing");
        expect(refused.seen("store_rolled_back")[0]).to.deep.include({
          ...{ epoch: 1, seen_epoch: 3, missing_results: 6, missing_items: 6, accepted: 0 },
        });
        expect(refused.seen("coordinator_leading")).to.deep.equal([]);
      }

      const accepted = await cluster.startCoordinator({ args: ACCEPT });
      expect(accepted.seen("store_rolled_back")[0]).to.deep.include({ accepted: 1 });
      const { epoch } = await accepted.event("coordinator_leading");
      expect(epoch).to.be.greaterThan(3 + 65_535);
      // The worker has seen the epochs that were lost, and follows all the same.
      await accepted.event("worker_heartbeat", { state: "Ready" });
      await runUntil(cluster, ({ done }) => done === 4);
      await submitAndFinish(cluster, 4, 10);
      await accepted.stop();

      const next = await cluster.startCoordinator();
      expect(next.seen("coordinator_leading")[0]?.epoch).to.equal(epoch + 1);
      expect(next.seen("store_rolled_back")).to.deep.equal([]);
    });
  });

  it("is found out by what a worker has seen where this host has seen nothing of it", async () => {
    await withCluster({}, async (cluster) => {
      await goBack(cluster);
      await rm(cluster.file("data/state/coordinators"), { recursive: true });
      const misled = cluster.launchCoordinator();
      await expectRefused(misled);
      expect(misled.seen("store_rolled_back")[0]).to.deep.include({ seen_epoch: 3, accepted: 0 });
      // From then on this host knows it by itself.
      const refused = cluster.launchCoordinator();
      await expectRefused(refused);
      expect(refused.seen("coordinator_leading")).to.deep.equal([]);
      const accepted = await cluster.startCoordinator({ args: ACCEPT });
      expect((await accepted.event("coordinator_leading")).epoch).to.be.greaterThan(3 + 65_535);
      await accepted.event("worker_heartbeat", { state: "Ready" });
    });
  });
});
