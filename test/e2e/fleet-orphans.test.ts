// A coordinator that is gone for good: the workers of its fleet end by themselves, and what they could not deliver the next worker on the host
// delivers.
import { readFile, readdir, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { eventually } from "../support/eventually.ts";
import { GATED_MANIFEST, gatedItems } from "./gated-items.ts";
import { CONFIG, configureFleet, endWorkers, isRunning, lead, started, status } from "./local-fleet.ts";

describe("a fleet whose coordinator is gone for good", () => {
  it("ends by itself, and what its workers could not deliver the next one there does", async () => {
    const quick = {
      "worker.plugins": [GATED_MANIFEST],
      "liveness.worker_self_fence_timeout": "2s",
      "liveness.coordinator_failure_timeout": "3s",
    };
    await withCluster(quick, async (cluster) => {
      try {
        await story(cluster);
      } finally {
        await endWorkers(cluster);
      }
    });
  });
});

describe("a worker that is to end by itself", () => {
  it("does when it has nothing to do, and when its time is over, with exit code 0", () =>
    withCluster({}, async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      const limits = { idle: ["--idle-timeout", "1s"], lifetime: ["--leave-after", "2s"] };
      await cluster.submit([1, 2, 3], "--seal");
      for (const [cause, args] of Object.entries(limits)) {
        const worker = cluster.launchWorker({ args });
        await worker.event("drain_started", { cause });
        expect(await worker.ended).to.deep.equal({ code: 0, signal: null });
      }
      await coordinator.event("run_completed", { done: 3 });
      expect(coordinator.seen("worker_deregistered")).to.have.length(2);
    }));
});

async function story(cluster: Cluster): Promise<void> {
  await configureFleet(cluster, ['orphan_timeout = "2s"']);
  const first = await lead(cluster);
  const gate = cluster.file("gate");
  await cluster.submit(gatedItems(0, 2, { gate }), "--seal");
  await eventually("both execute", async () => (await status(cluster)).executing === 2);
  await first.kill();
  await writeFile(gate, "");
  const workers = await started(cluster);
  expect(workers.size).to.equal(2);
  await eventually("nobody is left", () => [...workers.values()].every(({ pid }) => !isRunning(pid)));
  for (const { log } of (await started(cluster)).values()) {
    expect(log).to.match(/"topic":"drain_started"[^\n]*"cause":"orphan"/);
    expect(log).to.match(/"topic":"drain_completed"[^\n]*"unacknowledged_results":1/);
  }

  // One worker: of two, the first to join would be given what the other is about to deliver.
  const settings = await readFile(cluster.file(CONFIG), "utf8");
  await writeFile(cluster.file(CONFIG), settings.replace("max = 2", "max = 1"));
  const next = await lead(cluster);
  await next.event("run_completed", { done: 2, failed: 0 });
  const executions = (await readFile(cluster.file("journal"), "utf8")).trim().split("\n");
  expect(executions, "each item was executed once").to.have.length(2);
  for (const { allocation } of next.seen("allocation_launched"))
    await next.event("allocation_ended", { allocation });
  const [all = ""] = await readdir(cluster.file("data/fleet"));
  const left = await readdir(cluster.file(`data/fleet/${all}/state/allocations`));
  const theirs = left.filter((id) => workers.has(id));
  expect(theirs, "nothing is left of workers whose results were delivered").to.deep.equal([]);
  expect(await next.stop()).to.deep.equal({ code: 0, signal: null });
}
