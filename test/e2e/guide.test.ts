// The steps of docs/guide.md that cannot be run from the page, because they stay in the foreground or need other machines: a
// directory stands for each machine.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { blocksOfFile } from "./document-blocks.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { paced } from "../support/pace.ts";

/** The other machines have no configuration file; their heartbeats are as quick as the coordinator expects here. */
const QUICK = {
  ROLLOUT_LIVENESS_HEARTBEAT_INTERVAL: "100ms",
  ROLLOUT_LIVENESS_CLOCK_SKEW_BUDGET: "150ms",
  ROLLOUT_LIVENESS_WORKER_SELF_FENCE_TIMEOUT: "1200ms",
  ROLLOUT_LIVENESS_COORDINATOR_FAILURE_TIMEOUT: "1500ms",
};

describe("the guide", () => {
  it("leads to workers on two other hosts, to results, and to a worker that leaves in good order", async () => {
    await withCluster({ "worker.plugins": ["./upper.toml"] }, async (cluster) => {
      writeProgram(cluster);
      const texts = Array.from({ length: 40 }, (_, n) =>
        JSON.stringify({ id: `text-${n}`, text: `line ${n}` }),
      );
      writeFileSync(cluster.file("texts.jsonl"), `${texts.join("\n")}\n`);
      await cluster.startCoordinator();
      const { address } = cluster;
      const issued = await cluster.run(
        "ca",
        "issue",
        "--coordinator-addr",
        address,
        "--out",
        "enrolment.pem",
      );
      expect(issued.code, issued.stderr).to.equal(0);
      const [a, b] = [await startHost(cluster, "a"), await startHost(cluster, "b")];

      const submitted = await cluster.run("submit", "texts.jsonl", "--seal");
      expect(submitted.code, submitted.stderr).to.equal(0);
      await cluster.coordinator.event("run_completed");

      const results = await cluster.run("results", "-o", "upper.jsonl", "--errors", "upper.errors.jsonl");
      expect(results.code, results.stderr).to.equal(0);
      const lines = readFileSync(cluster.file("upper.jsonl"), "utf8").trimEnd().split("\n");
      expect(lines).to.have.length(40);
      expect(new Set(lines.map((line) => (JSON.parse(line) as { worker: string }).worker))).to.have.all.keys(
        a,
        b,
      );
      expect((await cluster.run("explain", "text-7")).stdout).to.include("done");
      expect((await cluster.run("doctor")).code).to.equal(0);

      const drained = await cluster.run("worker", "drain", a, "--wait");
      expect(drained.code, drained.stderr).to.equal(0);
      await cluster.coordinator.event("worker_deregistered", { worker_id: a });
    });
  });
});

/** The manifest and the program of section 3, as they stand there. */
function writeProgram(cluster: Cluster): void {
  const [block] = blocksOfFile("docs/guide.md").filter(({ text }) => text.includes("cat > upper.py"));
  for (const [, name = "", text = ""] of (block?.text ?? "").matchAll(
    /cat > (\S+) <<'END'\n([\s\S]*?)END\n/g,
  ))
    writeFileSync(cluster.file(name), text);
}

/** The worker's id. */
async function startHost(cluster: Cluster, host: string): Promise<string> {
  mkdirSync(cluster.file(host));
  for (const file of ["enrolment.pem", "upper.toml", "upper.py"])
    copyFileSync(cluster.file(file), cluster.file(`${host}/${file}`));
  const worker = cluster.launchWorker({
    directory: host,
    env: paced(QUICK, cluster.pace),
    args: [...["--enrolment", "enrolment.pem"], ...["--plugin", "upper.toml", "--slots", "4"]],
  });
  const id = await worker.id();
  await cluster.coordinator.event("worker_heartbeat", { worker_id: id, state: "Ready" });
  return id;
}
