// A checkpoint outlives its attempt, however that ends: the worker is killed with -9, or the process that executes the item.
import { expect } from "chai";
import { readFileSync, writeFileSync } from "node:fs";
import { RolloutClient } from "../../src/compose/rollout-client.ts";
import { QUICK, withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { eventually } from "../support/eventually.ts";

interface Explained {
  readonly worker: string | null;
  readonly checkpoint_bytes: number;
}

interface ResultLine {
  readonly output: unknown;
  readonly attempt: number;
  readonly worker: string;
}

/** Its costly step is done when its snapshot has become large. */
const MACHINE = `
  import { appendFileSync, existsSync } from "node:fs";
  import { assign, fromPromise, setup } from "xstate";
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const gate = fromPromise(async () => { while (!existsSync("open")) await pause(10); });
  const note = () => appendFileSync("journal", process.env.ROLLOUT_ATTEMPT + "\\n");
  export default setup({ actors: { gate }, actions: { note, fill: assign({ model: "x".repeat(9_000) }) } }).createMachine({
    id: "job",
    context: { model: "" },
    initial: "costly",
    states: {
      costly: { after: { 50: { target: "waiting", actions: ["note", "fill"] } } },
      waiting: { invoke: { src: "gate", onDone: "done" } },
      done: { type: "final" },
    },
    output: ({ context }) => context.model.length,
  });`;

/** Saves, and dies; what goes on from there succeeds. */
const PROCESS = `
  import { createInterface } from "node:readline";
  const say = (message, then) => process.stdout.write(JSON.stringify(message) + "\\n", then);
  say({ type: "ready" });
  for await (const line of createInterface(process.stdin)) {
    const { type, id, checkpoint } = JSON.parse(line);
    if (type !== "item") continue;
    if (checkpoint !== null) say({ type: "result", id, output: Buffer.from(checkpoint, "base64").toString() });
    else say({ type: "checkpoint", id, checkpoint: Buffer.from("half way").toString("base64") }, () => process.exit(9));
  }`;

async function submit(cluster: Cluster, backend: string, source: string, table: string): Promise<string[]> {
  writeFileSync(cluster.file("job.mjs"), source);
  writeFileSync(
    cluster.file("job.toml"),
    `name = "job"\nversion = "1"\nbackend = "${backend}"\n[${backend}]\n${table}\n`,
  );
  const args = ["--plugin", "job.toml"];
  await cluster.submit([{ id: "long" }], ...args, "--seal");
  return args;
}

async function result(cluster: Cluster): Promise<ResultLine> {
  const { code, stdout, stderr } = await cluster.run("results");
  expect(code, stderr).to.equal(0);
  return JSON.parse(stdout) as ResultLine;
}

describe("checkpoints", () => {
  const it = concurrentTests(2);

  it("of a machine go to another worker when the one that has it is killed with -9", async () => {
    await withCluster({ ...QUICK, "worker.checkpoint_interval": "100ms" }, async (cluster) => {
      await cluster.startCoordinator();
      const args = await submit(
        cluster,
        "machine",
        MACHINE,
        `module = "job.mjs"\ncheckpoint_interval = "0ms"`,
      );
      const workers = await Promise.all([cluster.startWorker({ args }), cluster.startWorker({ args })]);
      using client = await RolloutClient.connect({ config: cluster.file("rollout.toml") });
      await eventually(
        "the costly step is saved",
        async () => (await client.item("long")).checkpointBytes > 9_000,
      );
      const { stdout } = await cluster.run("explain", "long", "--json");
      const item = JSON.parse(stdout) as Explained;
      expect(item.checkpoint_bytes).to.be.above(9_000);
      for (const worker of workers) if ((await worker.id()) === item.worker) await worker.kill();
      writeFileSync(cluster.file("open"), "");
      await cluster.coordinator.event("run_completed", { done: 1, failed: 0 });
      const { output, attempt, worker } = await result(cluster);
      expect([output, attempt]).to.deep.equal([9_000, 2]);
      expect(worker).not.to.equal(item.worker);
      expect(readFileSync(cluster.file("journal"), "utf8"), "it was done once").to.equal("1\n");
    });
  });

  it("of a process that crashes are what its next attempt begins with", async () => {
    await withCluster({ "worker.checkpoint_interval": "1h" }, async (cluster) => {
      await cluster.startCoordinator();
      const args = await submit(cluster, "process", PROCESS, `command = ["${process.execPath}", "job.mjs"]`);
      await cluster.startWorker({ args });
      await cluster.coordinator.event("run_completed", { done: 1, failed: 0 });
      expect(await result(cluster)).to.deep.include({ output: "half way", attempt: 2 });
    });
  });
});
