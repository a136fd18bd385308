// The coordinator is killed with -9 again and again in the middle of a run. The evidence is the executions' own journal
// and the database, not the coordinator's word about itself.
import { expect } from "chai";
import { withCluster } from "../support/cluster.ts";
import { pace } from "../support/pace.ts";
import { readJournal, readResults, runUntil } from "../support/run-observer.ts";

const ITEMS = 2_000;
const KILLS = 20;

describe("witnesses", () => {
  it("coord_restart_no_duplicates", async () => {
    const settings = {
      "worker.slots": 4,
      // A restart takes longer on a busy machine: so does the work that is to outlast all of them.
      "mock.sleep": `${60 * pace()}ms`,
      "mock.distribution": "uniform",
      "mock.journal": "./journal",
    };
    await withCluster(settings, async (cluster) => {
      let coordinator = await cluster.startCoordinator();
      const workers = await cluster.startWorkers(3);
      const values = Array.from({ length: ITEMS }, (_, at) => ({ n: at % 1_500 }));
      expect(await cluster.submit(values, "--seal")).to.include({ added: ITEMS, known: 0 });

      let doneAtLastKill = 0;
      for (let kill = 0; kill < KILLS; kill++) {
        // A kill counts only where something runs and something was recorded since the last one.
        const { done } = await runUntil(cluster, (run) => run.running > 0 && run.done > doneAtLastKill);
        doneAtLastKill = done;
        await coordinator.kill();
        coordinator = await cluster.startCoordinator();
      }
      const { done, failed } = await runUntil(cluster, ({ state }) => state === "complete");
      expect({ done, failed }).to.deep.equal({ done: ITEMS, failed: 0 });
      expect(coordinator.seen("coordinator_leading")[0]?.epoch).to.equal(KILLS);

      for (const worker of workers) expect(worker.isRunning, "workers stayed up").to.equal(true);
      const registered =
        coordinator.seen("worker_registered").length + coordinator.seen("worker_failed").length;
      expect(registered, "the last coordinator knew its workers, and failed none").to.equal(0);
      await coordinator.stop();

      const results = await readResults(cluster.file("data/rollout.db"));
      expect(results.length, "every item has a result").to.equal(ITEMS);
      expect(new Set(results).size, "and exactly one").to.equal(ITEMS);
      const executions = readJournal(cluster.file("journal"));
      expect(new Set(executions.map(({ item }) => item)).size).to.equal(ITEMS);
      expect(executions.length, "nothing that a worker held ran again").to.equal(ITEMS);
    });
  });
});
