import { readdirSync } from "node:fs";
import { expect } from "chai";
import { withCluster } from "../support/cluster.ts";
import type { Cluster, WorkerProcess } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";
import { runProgram } from "../support/run-program.ts";

/** Long enough for workers that are held back until two commands have come and gone: nobody is to be failed here. */
const PATIENT = {
  "liveness.worker_self_fence_timeout": "25s",
  "liveness.coordinator_failure_timeout": "30s",
};

interface Fleet {
  readonly first: RolloutProcess;
  readonly workers: readonly WorkerProcess[];
  readonly ids: readonly string[];
}

async function startFleet(cluster: Cluster): Promise<Fleet> {
  const first = await cluster.startCoordinator();
  const workers = await cluster.startWorkers(2);
  const ids = await Promise.all(workers.map((worker) => worker.id()));
  return { first, workers, ids: ids.toSorted() };
}

/** The workers found the next coordinator by themselves, as who they were, and it has failed none of them. */
async function expectReunion(next: RolloutProcess, { workers }: Fleet): Promise<void> {
  for (const worker of workers) {
    const identity = await worker.identity();
    await next.event("worker_heartbeat", { ...identity, state: "Ready" });
    expect(worker.isRunning).to.equal(true);
    await worker.logLine({ message: "connected again" });
  }
  expect(next.seen("worker_failed")).to.deep.equal([]);
  expect(next.seen("worker_registered")).to.deep.equal([]);
}

describe("a coordinator", () => {
  const it = concurrentTests(4);

  it("that was killed with -9 knows its workers when it starts again, under a higher epoch, and fails none", async () => {
    await withCluster(PATIENT, async (cluster) => {
      const fleet = await startFleet(cluster);
      await fleet.first.kill();
      // The workers are held back, so that whatever the new one knows is from its disk.
      for (const worker of fleet.workers) worker.send("SIGSTOP");
      const next = await cluster.startCoordinator();
      const listed = await cluster.workers();
      const table = (await cluster.run("worker", "list")).stdout;
      expect(table).to.contain("before restart").and.not.contain("not yet");
      for (const worker of fleet.workers) worker.send("SIGCONT");
      expect(listed.map(({ worker_id }) => worker_id)).to.deep.equal(fleet.ids);
      expect(listed.map(({ last_beat_age_ms }) => last_beat_age_ms)).to.deep.equal([null, null]);
      expect(listed.map(({ liveness }) => liveness)).to.not.include("failed");

      const [before, after] = [fleet.first, next].map((process) => process.seen("coordinator_leading")[0]);
      expect(after?.epoch).to.equal((before?.epoch ?? NaN) + 1);
      expect(after?.store_id).to.equal(before?.store_id);
      await expectReunion(next, fleet);
    });
  });

  it("that gets SIGTERM ends with 0, and its workers wait for the next one", async () => {
    await withCluster(PATIENT, async (cluster) => {
      const fleet = await startFleet(cluster);
      expect(await fleet.first.stop()).to.deep.equal({ code: 0, signal: null });
      expect(fleet.first.events.at(-1)).to.include({ topic: "coordinator_stopped" });
      expect(fleet.first.seen("worker_failed")).to.deep.equal([]);
      expect(fleet.first.seen("worker_deregistered")).to.deep.equal([]);
      for (const worker of fleet.workers) await worker.logLine({ level: "warn" });
      await expectReunion(await cluster.startCoordinator(), fleet);
    });
  });

  it("that dies twice while nobody can tell is still followed, and the epoch has grown each time", async () => {
    await withCluster(PATIENT, async (cluster) => {
      const fleet = await startFleet(cluster);
      const epochs: number[] = [];
      for (const coordinator of [fleet.first, await restart(cluster), await restart(cluster)]) {
        epochs.push(coordinator.seen("coordinator_leading")[0]?.epoch ?? NaN);
      }
      expect(epochs).to.deep.equal([0, 1, 2]);
      await expectReunion(cluster.coordinator, fleet);
    });
  });

  it("says at its start how the one before it ended: killed with -9, or stopped", async () => {
    await withCluster({}, async (cluster) => {
      await (await cluster.startCoordinator()).kill();
      const second = await cluster.startCoordinator();
      await second.logLine({ message: "the coordinator before this one was killed while it led at epoch 0" });
      const { stdout } = await cluster.run("doctor");
      expect(stdout).to.match(/former coordinator +was killed while it led at epoch 0\n/);
      expect(await second.stop()).to.deep.equal({ code: 0, signal: null });
      const third = await cluster.startCoordinator();
      await third.logLine({ message: "the coordinator before this one resigned at epoch 1" });
      const files = readdirSync(cluster.file("data/state/coordinators"));
      expect(files.filter((file) => !/\.(?:lock|seen)$/.test(file))).to.have.length(1);
      expect(files.filter((file) => file.endsWith(".seen"))).to.have.length(1);
    });
  });

  it("that finds another one on its database is refused, is told who, and leaves that one unharmed", async () => {
    await withCluster(PATIENT, async (cluster) => {
      const fleet = await startFleet(cluster);
      const second = await cluster.run("coordinator", "run", "--listen-addr", "127.0.0.1:0");
      expect(second).to.deep.include({ code: 6, stdout: "" });
      expect(second.stderr)
        .to.match(/^error: the database \S+ is held by another process: rollout coordinator run, pid /)
        .and.contain(`pid ${fleet.first.pid} `)
        .and.match(/^[^\n]*\n$/);
      for (const id of fleet.ids) await fleet.first.nextEvent("worker_heartbeat", { worker_id: id });
      expect((await cluster.workers()).map(({ liveness }) => liveness)).to.deep.equal(["alive", "alive"]);
      // The loser's touch of the files must not have freed the winner's lock.
      const third = await runProgram("bin/rollout-coordinator.js", ["--listen-addr", "127.0.0.1:0"], {
        cwd: cluster.directory,
      });
      expect(third.stderr).to.equal(second.stderr);
      await fleet.first.kill();
      await expectReunion(await cluster.startCoordinator(), fleet);
    });
  });
});

async function restart(cluster: Cluster): Promise<RolloutProcess> {
  await cluster.coordinator.kill();
  return cluster.startCoordinator();
}
