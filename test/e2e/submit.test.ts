import { execFileSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { expect } from "chai";
import { newRunId } from "../support/certificates.ts";
import { withCluster } from "../support/cluster.ts";
import { eventually } from "../support/eventually.ts";

describe("a mistake at the command line", () => {
  it("in line 3 of the input: the lines before it are submitted, as the refusal says, and only once", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      writeFileSync(cluster.file("items.jsonl"), '{"n":1}\n{"n":2}\n{"n":\n{"n":4}\n');
      const refused = await cluster.run("submit", "items.jsonl");
      expect(refused.code).to.equal(2);
      expect(refused.stderr).to.match(/^error: items\.jsonl:3: .* what stands before it is submitted\)\n$/);
      expect(JSON.parse((await cluster.run("status", "--json")).stdout)).to.include({ pending: 2 });

      writeFileSync(cluster.file("items.jsonl"), '{"n":1}\n{"n":2}\n{"n":3}\n{"n":4}\n');
      const corrected = await cluster.run("submit", "items.jsonl", "--json");
      expect(JSON.parse(corrected.stdout)).to.include({ added: 2, known: 2 });

      execFileSync("mkfifo", [cluster.file("fifo")]);
      const waiting = cluster.launch(["submit", "fifo"]);
      await eventually("it is said", () => waiting.stderr.includes("waiting for input from fifo"));
      await writeFile(cluster.file("fifo"), '{"n":5}\n');
      expect(await waiting.ended).to.deep.equal({ code: 0, signal: null });
    });
  });

  it("in the run's id: the worker is refused, and its state directory is still free for the right one", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      const refused = await cluster.run("worker", "run", "--run-id", newRunId());
      expect(refused.code).to.equal(2);
      expect(existsSync(cluster.file("data/state/workers")), "nothing was made").to.equal(false);
      await cluster.startWorker();
    });
  });
});
