import { cp } from "node:fs/promises";
import { expect } from "chai";
import { newWorkerId } from "../support/certificates.ts";
import { withCluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";

describe("the identity of a worker", () => {
  const it = concurrentTests(4);

  it("survives its process: the next one without an id takes it over, as a newer incarnation", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      const [first, second] = [await cluster.startWorker(), await cluster.startWorker()];
      const before = await first.identity();
      await first.kill();
      const third = await cluster.startWorker();
      const after = await third.identity();
      expect(after.worker_id)
        .to.equal(before.worker_id)
        .and.not.equal(await second.id());
      expect(after.incarnation > before.incarnation).to.equal(true);
      expect(await cluster.workers()).to.have.length(2);
    });
  });

  it("belongs to one process: another one that asks for it is refused and told who has it", async () => {
    await withCluster({}, async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      const workerId = newWorkerId();
      const worker = await cluster.startWorker({ workerId });
      const second = await cluster.run("worker", "run", "--worker-id", workerId);
      expect(second).to.deep.include({ code: 6, stdout: "" });
      expect(second.stderr)
        .to.match(/^error: the database \S+ is held by another process: rollout worker run, pid /)
        .and.contain(`pid ${worker.pid} `);
      await coordinator.nextEvent("worker_heartbeat", { worker_id: workerId, state: "Ready" });
      expect(coordinator.seen("worker_superseded")).to.deep.equal([]);
    });
  });

  it("goes to the newer process when its state was copied, and the older process ends", async () => {
    await withCluster({}, async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      const workerId = newWorkerId();
      await (await cluster.startWorker({ workerId })).stop();
      await cp(cluster.file("data/state"), cluster.file("copy"), { recursive: true });
      const older = await cluster.startWorker({ workerId });
      const newer = await cluster.startWorker({ workerId, args: ["--state-dir", "copy"] });
      expect(await older.ended).to.deep.equal({ code: 3, signal: null });
      expect(older.stderr.at(-1)).to.match(/^error: worker \S+ was started again elsewhere/);
      const [old, fresh] = [await older.identity(), await newer.identity()];
      await coordinator.event("worker_superseded", {
        worker_id: workerId,
        incarnation: old.incarnation,
        superseded_by: fresh.incarnation,
      });
      await coordinator.nextEvent("worker_heartbeat", { incarnation: fresh.incarnation, state: "Ready" });
      expect(coordinator.seen("worker_failed")).to.deep.equal([]);
    });
  });
});
