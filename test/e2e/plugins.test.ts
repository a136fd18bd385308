import { expect } from "chai";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { eventually } from "../support/eventually.ts";
import { AwsMetadataServer } from "../support/metadata-server.ts";

interface ResultLine {
  readonly id: string | null;
  readonly ok: boolean;
  readonly output: unknown;
  readonly plugin_version: string;
  readonly worker: string;
}

const TRAINING = fileURLToPath(new URL("../../examples/long-machine/training.toml", import.meta.url));

/** A cloud's notice is seen within five seconds: that many take longer. */
const EPOCHS = 24;

function writePlugin(cluster: Cluster, version: string, source: string, more = ""): void {
  const head = `name = "job"\nversion = "${version}"\nbackend = "module"\n`;
  writeFileSync(cluster.file("job.toml"), `${head}${more}[module]\nmodule = "job.ts"\n`);
  writeFileSync(cluster.file("job.ts"), source);
}

async function results(cluster: Cluster): Promise<ResultLine[]> {
  const { code, stdout, stderr } = await cluster.run("results", "--order", "completion");
  expect(code, stderr).to.equal(0);
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as ResultLine);
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

describe("plugins", () => {
  const it = concurrentTests(2);

  it("execute what was submitted for them, and only where they are", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      writePlugin(cluster, "1.4", `export default (item: { n: number }) => ({ double: item.n * 2 });`);
      await cluster.submit([{ id: "a", n: 21 }, { n: 4 }], "--plugin", "job.toml", "--seal");
      const other = await cluster.startWorker();
      const worker = await cluster.startWorker({ args: ["--plugin", "job.toml"] });
      await cluster.coordinator.event("run_completed", { done: 2, failed: 0 });
      const { worker_id: id } = await worker.identity();
      const { plugins } = await cluster.coordinator.event("worker_registered", { worker_id: id });
      expect(plugins).to.deep.equal([{ name: "job", version: "1.4" }]);
      const lines = await results(cluster);
      expect(lines.map(({ id: label, output }) => [label, output])).to.have.deep.members([
        ["a", { double: 42 }],
        [null, { double: 8 }],
      ]);
      for (const line of lines) expect([line.plugin_version, line.worker]).to.deep.equal(["1.4", id]);
      expect(await other.id()).not.to.equal(id);
    });
  });

  it("that block their thread for longer than a worker may be silent lose no heartbeat", async () => {
    const settings = {
      "liveness.worker_self_fence_timeout": "1600ms",
      "liveness.coordinator_failure_timeout": "2s",
    };
    await withCluster(settings, async (cluster) => {
      await cluster.startCoordinator();
      const blockedMs = 2 * cluster.durationMs("liveness.coordinator_failure_timeout");
      writePlugin(
        cluster,
        "1",
        `export default () => { const end = Date.now() + ${blockedMs}; while (Date.now() < end); return "awake"; };`,
      );
      await cluster.submit([1], "--plugin", "job.toml", "--seal");
      await cluster.startWorker({ args: ["--plugin", "job.toml"] });
      await cluster.coordinator.event("run_completed", { done: 1, failed: 0 });
      expect((await results(cluster)).map(({ output }) => output)).to.deep.equal(["awake"]);
      expect(cluster.coordinator.seen("worker_failed")).to.deep.equal([]);
    });
  });

  it("are taken up in another version between items, when their files change", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      const slow = (word: string): string => `
        import { appendFileSync, existsSync } from "node:fs";
        export default async (item: string) => {
          appendFileSync("journal", item + " began\\n");
          while (!existsSync(item)) await new Promise((resolve) => setTimeout(resolve, 5));
          return "${word}";
        };`;
      writePlugin(cluster, "1", slow("old"));
      await cluster.submit(["first"], "--plugin", "job.toml");
      const worker = await cluster.startWorker({ args: ["--plugin", "job.toml", "--hot-reload"] });
      await eventually("the first item runs", () => textOf(cluster.file("journal")).includes("first"));

      writePlugin(cluster, "2", slow("new"));
      await worker.event("plugin_reloaded", { plugin: "job", version: "2", previous_version: "1" });
      await cluster.submit(["second"], "--plugin", "job.toml", "--seal");
      for (const item of ["first", "second"]) writeFileSync(cluster.file(item), "");
      await cluster.coordinator.event("run_completed", { done: 2 });
      expect((await results(cluster)).map((line) => [line.output, line.plugin_version])).to.have.deep.members(
        [
          ["old", "1"],
          ["new", "2"],
        ],
      );
    });
  });

  it("that cannot be executed end their worker, whose items others execute uncharged", async () => {
    await withCluster({ "run.max_attempts": 1 }, async (cluster) => {
      await cluster.startCoordinator();
      const source = `import { existsSync } from "node:fs"; if (!existsSync("model")) throw new Error("no model"); export default () => "fine";`;
      writePlugin(cluster, "1", source);
      await cluster.submit([1, 2, 3], "--plugin", "job.toml", "--seal");
      const broken = cluster.launchWorker({ args: ["--plugin", "job.toml"] });
      expect(await broken.ended).to.deep.equal({ code: 2, signal: null });
      expect(broken.stderr.at(-1)).to.match(
        /^error: the backend of plugin job does not start: .*job\.ts: no model/,
      );

      writeFileSync(cluster.file("model"), "");
      await cluster.startWorker({ args: ["--plugin", "job.toml"] });
      await cluster.coordinator.event("run_completed", { done: 3, failed: 0 });
    });
  });

  it("of a machine go on from its snapshot on another worker after a preemption", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      const journal = cluster.file("journal");
      const item = { id: "long", epochs: EPOCHS, epoch_ms: 350 * cluster.pace, journal };
      await cluster.submit([item], "--plugin", TRAINING, "--seal");
      const args = ["--plugin", TRAINING];
      const metadata = await AwsMetadataServer.start();
      try {
        const preemptible = ["--preemption", "aws", "--metadata-addr", new URL(metadata.url).host];
        const first = await cluster.startWorker({ args: [...args, ...preemptible] });
        await eventually("two epochs", () => textOf(journal).includes("long 2\n"));
        // It leaves no time at all.
        metadata.preempt({ action: "hibernate" });
        expect(await first.ended).to.deep.equal({ code: 0, signal: null });
      } finally {
        await metadata.close();
      }
      expect(textOf(journal), "it was preempted in the middle").not.to.include(`long ${EPOCHS}\n`);
      const second = await cluster.startWorker({ args });
      await cluster.coordinator.event("run_completed", { done: 1, failed: 0 });
      expect(await second.id()).to.equal((await results(cluster))[0]?.worker);
      const epochs = Array.from({ length: EPOCHS }, (_, at) => `long ${at + 1}\n`);
      expect(textOf(journal)).to.equal(epochs.join(""));
    });
  });
});
