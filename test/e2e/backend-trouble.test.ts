// An operator's view of a backend that does not do its work, and of attempts that took too long.
import { rmSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { systemClock } from "../../src/base/clock.ts";
import { newUlid } from "../../src/base/ids.ts";
import type { WorkerId } from "../../src/base/ids.ts";
import { systemRandom } from "../../src/base/random.ts";
import { RolloutClient } from "../../src/compose/rollout-client.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { eventually } from "../support/eventually.ts";
import { withFailingCalls } from "../support/failing-system-calls.ts";
import { restartableAddress } from "../support/listeners.ts";

describe("a backend in trouble", () => {
  const submit = async (cluster: Cluster, ...more: string[]): Promise<void> => {
    writeFileSync(cluster.file("items.jsonl"), '{"id":"stuck","prompt":"x"}\n');
    const { code, stderr } = await cluster.run(
      "submit",
      "items.jsonl",
      "--plugin",
      "job.toml",
      "--seal",
      ...more,
    );
    expect([code, stderr]).to.deep.equal([0, ""]);
  };
  const write = (cluster: Cluster, ...lines: string[]): void =>
    writeFileSync(cluster.file("job.toml"), ['name = "job"', 'version = "1"', ...lines, ""].join("\n"));

  it("is shown by every command that shows the worker or the item", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      const server = `http://${await restartableAddress()}`;
      write(cluster, 'backend = "http"', "[http]", `url = "${server}/v1?key=secret"`, "max_tries = 100");
      await submit(cluster, "--json");
      const worker = await cluster.startWorker({ args: ["--plugin", "job.toml"] });
      const id = await worker.id();
      const words = `waiting for the server at ${server}: the connection was refused, for `;
      const list = await eventually("its trouble", async () => {
        const { stdout } = await cluster.run("worker", "list");
        return stdout.includes(words) && stdout;
      });
      expect(list).to.include(`\nworker ${id}: ${words}`);
      const [explained, doctor, events] = [
        await cluster.run("explain", id),
        await cluster.run("doctor", "--json"),
        await cluster.run("events", "--json"),
      ];
      expect(explained.stdout).to.include(`It reports a problem: ${words}`);
      expect([doctor.code, doctor.stdout.includes(words)]).to.deep.equal([0, true]);
      const item = /([0-9a-f]{64})/.exec(explained.stdout)?.[1] ?? "";
      expect((await cluster.run("explain", item)).stdout).to.include(
        `That worker reports a problem: ${words}`,
      );
      expect(list + explained.stdout + doctor.stdout + events.stdout).not.to.include("secret");
    });
  });

  it("is a disk that is full: an attempt that has no place for its files waits for one, and is not charged", async () => {
    await withCluster({ "run.max_attempts": 1, "worker.state_dir": "./state" }, async (cluster) => {
      await cluster.startCoordinator();
      write(cluster, 'backend = "command"', "[command]", 'command = ["cat"]');
      await submit(cluster, "--json");
      const workerId = newUlid<WorkerId>(systemClock, systemRandom);
      const disk = cluster.file(`state/attempts/${workerId}`);
      const wrapper = withFailingCalls({ call: "mkdir", error: "ENOSPC", which: "1..6", path: disk });
      const worker = await cluster.startWorker({ workerId, wrapper, args: ["--plugin", "job.toml"] });
      const words = /waiting, for \d s: no space left on the disk/;
      // It has trouble for three seconds: a command might come too late.
      using client = await RolloutClient.connect({ config: cluster.file("rollout.toml") });
      await eventually("its trouble", async () =>
        (await client.workers()).some(({ trouble }) => words.test(trouble ?? "")),
      );
      await cluster.coordinator.event("run_completed", { done: 1, failed: 0 });
      expect(worker.isRunning).to.equal(true);
    });
  });

  it("is a state directory that is gone: it is made again", async () => {
    await withCluster({ "run.max_attempts": 1, "worker.state_dir": "./state" }, async (cluster) => {
      await cluster.startCoordinator();
      write(cluster, 'backend = "command"', "[command]", 'command = ["cat"]');
      await cluster.startWorker({ args: ["--plugin", "job.toml"] });
      for (const name of ["children", "attempts"])
        rmSync(cluster.file(`state/${name}`), { recursive: true, force: true });
      await submit(cluster);
      await cluster.coordinator.event("run_completed", { done: 1, failed: 0 });
    });
  });

  it("that can start no process ends its worker, and status, events and log say why", async () => {
    const settings = { "worker.state_dir": "./state", "worker.start_timeout": "1s", "run.max_attempts": 1 };
    await withCluster(settings, async (cluster) => {
      await cluster.startCoordinator();
      write(cluster, 'backend = "command"', "[command]", 'command = ["cat"]');
      const worker = await cluster.startWorker({ args: ["--plugin", "job.toml"] });
      const id = await worker.id();
      rmSync(cluster.file(`state/children`), { recursive: true });
      writeFileSync(cluster.file("state/children"), "");
      await submit(cluster, "--json");
      expect((await worker.ended).code).to.equal(2);
      const reason = "no record of it can be written: a part of the path is not a directory";
      expect(worker.stderr.join("\n")).to.include(
        `the backend of plugin job does not start: there was no room for`,
      );
      const [list, status, explained, ofItem] = [
        await cluster.run("worker", "list"),
        await cluster.run("status"),
        await cluster.run("explain", id),
        await cluster.run("explain", "stuck"),
      ].map(({ stdout }) => stdout);
      expect(list).to.include(`worker ${id}: the backend of job is broken: `).and.include(reason);
      expect(explained).to.include("It left because the backend of job is broken: ").and.include(reason);
      expect(status).to.include(reason);
      expect(ofItem).to.include(reason);
    });
  });

  it("whose item takes too long fails the item with the time that it was allowed", async () => {
    await withCluster({ "run.max_attempts": 1, "run.item_timeout": "500ms" }, async (cluster) => {
      await cluster.startCoordinator();
      write(cluster, 'backend = "command"', "[command]", 'command = ["sleep", "60"]');
      await submit(cluster, "--json");
      await cluster.startWorker({ args: ["--plugin", "job.toml"] });
      await cluster.coordinator.event("run_completed", { done: 0, failed: 1 });
      const { stdout } = await cluster.run("results");
      expect(stdout).to.include('"error":{"class":"timeout","message":"took longer than 500ms"}');
    });
  });
});
