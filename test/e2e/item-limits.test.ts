// Large items through real processes: what the configuration allows gets through, and what it does not is refused by name.
import { writeFileSync } from "node:fs";
import { expect } from "chai";
import { doneRecord } from "../../src/coordinator/ledger/records.ts";
import { DONE_PREFIX } from "../../src/storage/keys.ts";
import { withCluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { readRows, runUntil } from "../support/run-observer.ts";

const LINE_BYTES = 15 * 2 ** 20;
const LARGE = { "limits.payload": "16MiB", "limits.output": "16MiB", "worker.slots": 3 };

describe("large items", () => {
  const it = concurrentTests(3);

  it("of 15 MiB are submitted, executed and recorded when the configuration says so, in a heap of 128 MiB", async () => {
    await withCluster(LARGE, async (cluster) => {
      const env = { NODE_OPTIONS: "--max-old-space-size=128" };
      const coordinator = await cluster.startCoordinator({ env });
      const worker = await cluster.startWorker();
      const values = ["a", "b", "c"].map((letter) => letter.repeat(LINE_BYTES));
      await cluster.submit(values, "--seal");
      expect(await runUntil(cluster, ({ state }) => state === "complete")).to.include({ done: 3, failed: 0 });
      expect(worker.isRunning).to.equal(true);
      await coordinator.stop();
      const rows = await readRows(cluster.file("data/rollout.db"), DONE_PREFIX, doneRecord);
      expect(rows).to.have.length(3);
    });
  });

  it("over the limit are refused before they are sent, with the line, the limit and the setting", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      writeFileSync(cluster.file("items.jsonl"), `1\n"${"x".repeat(2 ** 20)}"\n`);
      const { code, stderr } = await cluster.run("submit", "items.jsonl");
      expect(code).to.equal(2);
      expect(stderr).to.match(
        /^error: items\.jsonl:2: .*an item has 1048576 at most \([^\n]*--payload-limit[^\n]*\)\n$/,
      );
    });
  });

  it("that the submitter allows and the coordinator does not are refused by the coordinator, by name", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      writeFileSync(cluster.file("items.jsonl"), `"${"x".repeat(LINE_BYTES)}"\n`);
      const { code, stderr } = await cluster.run("submit", "items.jsonl", "--payload-limit", "16MiB");
      expect(code).to.equal(3);
      expect(stderr).to.match(/the limit is 1048576 \(limits\.payload\)/);
    });
  });
});
