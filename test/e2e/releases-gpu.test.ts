// A release on machines whose GPU holds one model: a stage of one worker, versions of a `process` backend that take an exclusive lock on the GPU
// of their worker, and refuse at once where another process holds it. Each version is kept near the other one in the number of its executions, so that
// however slow the machine is neither is given all items before the verdict.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";

const ITEMS = 160;
/** So many executions of one version more than of the other wait. */
const AHEAD_MAX = 30;
const BUSY = 73;
const GPUS = ["one", "two"];

/** The kernel lets go of the lock with the process, however that ends. */
const GPU = `
flock -n -E ${BUSY} "gpu-$GPU" "$1" model.mjs "$2"
code=$?
if [ $code = ${BUSY} ]; then echo "$2" >> refused; fi
exit $code
`;

/** Executes one item at a time. */
const MODEL = `
import { appendFileSync, existsSync, statSync } from "node:fs";
import { createInterface } from "node:readline";
const own = process.argv[2];
const other = own === "1" ? "2" : "1";
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const count = (version) => statSync("begun-" + version, { throwIfNoEntry: false })?.size ?? 0;
const say = (message) => process.stdout.write(JSON.stringify(message) + "\\n");
appendFileSync("loaded", process.env.GPU + " " + own + "\\n");
say({ type: "ready" });
for await (const line of createInterface({ input: process.stdin })) {
  const { type, id, payload } = JSON.parse(line);
  if (type !== "item") continue;
  appendFileSync("begun-" + own, ".");
  while (existsSync("paced") && count(own) > count(other) + ${AHEAD_MAX}) await pause(10);
  say({ type: "result", id, output: { by: own, n: payload.n } });
}
`;

const SPEC = `
[release]
alpha = 0.2
[[stage]]
workers = 1
min_items = 20
min_time = "0ms"
[[metric]]
kind = "errors"
max_worse = "50%"
`;

interface Line {
  readonly ok: boolean;
  readonly attempt: number;
  readonly plugin_version: string;
  readonly output: { readonly by: string; readonly n: number };
}

function writeFiles(cluster: Cluster): void {
  writeFileSync(cluster.file("gpu.sh"), GPU);
  writeFileSync(cluster.file("model.mjs"), MODEL);
  writeFileSync(cluster.file("release.toml"), SPEC);
  for (const version of ["1", "2"]) {
    const command = JSON.stringify(["sh", "gpu.sh", process.execPath, version]);
    const head = `name = "p"\nversion = "${version}"\nbackend = "process"\n`;
    writeFileSync(cluster.file(`v${version}.toml`), `${head}[process]\ncommand = ${command}\n`);
  }
}

describe("a release on GPUs that hold one model", () => {
  it("goes over the workers one by one, where a second process beside the first would be refused at once", () =>
    withCluster({ "worker.slots": 1, "run.max_attempts": 1 }, async (cluster) => {
      writeFiles(cluster);
      const coordinator = await cluster.startCoordinator();
      const args = ["--plugin", "v1.toml", "--plugin", "v2.toml", "--loaded-versions", "1"];
      for (const gpu of GPUS) await cluster.startWorker({ args, env: { GPU: gpu } });
      const submit = (from: number, to: number, ...flags: string[]): Promise<unknown> => {
        const items = Array.from({ length: to - from }, (_, at) => ({ n: from + at }));
        return cluster.submit(items, "--plugin", "v1.toml", ...flags);
      };
      await submit(0, 4);
      writeFileSync(cluster.file("paced"), "");
      const begun = await cluster.run("release", "create", "release.toml", "--plugin", "v2.toml");
      expect(begun.code, begun.stderr).to.equal(0);
      await submit(4, ITEMS);
      await coordinator.event("release_completed");
      rmSync(cluster.file("paced"));
      await submit(ITEMS, ITEMS + 10, "--seal");
      await coordinator.event("run_completed");

      const { stdout } = await cluster.run("results");
      const lines = stdout.trim().split("\n");
      const results = lines.map((line) => JSON.parse(line) as Line);
      expect(results.map(({ output }) => output.n).sort((one, other) => one - other)).to.deep.equal(
        Array.from({ length: ITEMS + 10 }, (_, n) => n),
      );
      expect(results.filter(({ ok, output, plugin_version: by }) => !ok || output.by !== by)).to.deep.equal(
        [],
      );
      expect(results.filter(({ output }) => output.n >= ITEMS).map(({ output }) => output.by)).to.deep.equal(
        Array<string>(10).fill("2"),
      );
      expect(existsSync(cluster.file("refused")), "two were there at once").to.equal(false);
      const loaded = readFileSync(cluster.file("loaded"), "utf8");
      const tried = GPUS.filter((gpu) => loaded.includes(`${gpu} 2\n`));
      expect(tried, "somebody has changed the model").not.to.deep.equal([]);
      const words = tried.map((gpu) => ["-n", "-E", String(BUSY), `gpu-${gpu}`, "true"]);
      const refusals = words.map((lock) => spawnSync("flock", lock, { cwd: cluster.directory }).status);
      expect(refusals, "its GPU takes nobody else").to.deep.equal(tried.map(() => BUSY));
    }));
});
