// Keys and the first version that kept a run on a Postgres, which knew of none: a run of its own, on its own database, is gone on with, its worker
// gets no item of a key, and what has keys it refuses to lead.
import { expect } from "chai";
import { EXIT } from "../../src/base/error-row.ts";
import { RolloutClient } from "../../src/compose/rollout-client.ts";
import { QUICK, withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { eventually } from "../support/eventually.ts";
import { readJournal, runUntil } from "../support/run-observer.ts";
import { earlierProgram } from "./earlier/earlier-program.ts";

/** Items of the earlier version: they have keys, and stand where items without stand. */
const EARLIER_ITEMS = 6;
const KEYED_ITEMS = 4;

/** The library gives items their keys, under either version. */
async function submit(cluster: Cluster, count: number, from: number, seal = false): Promise<number> {
  const client = await RolloutClient.connect({ config: cluster.file("rollout.toml") });
  const items = Array.from({ length: count }, (_, at) => ({ k: `key ${at % 2}`, n: from + at }));
  try {
    return (await client.submit(items, { key: "k", seal })).added;
  } finally {
    client.close();
  }
}

async function stateOf(cluster: Cluster, key: string): Promise<string> {
  return (await cluster.run("key", "get", key, "--state")).stdout.trimEnd();
}

describe("a run of a version that knew of no keys", () => {
  it("is continued, its workers get only items without keys, and once items have keys the older program refuses the run in one line", async () => {
    const settings = { ...QUICK, "mock.journal": "./journal" };
    await withCluster(settings, async (cluster) => {
      const program = earlierProgram();
      const earlier = await cluster.startCoordinator({ program });
      expect(await submit(cluster, EARLIER_ITEMS, 0)).to.equal(EARLIER_ITEMS);
      await earlier.stop();

      const coordinator = await cluster.startCoordinator();
      const worker = await cluster.startWorker({ program });
      await runUntil(cluster, ({ done }) => done === EARLIER_ITEMS);
      expect(readJournal(cluster.file("journal"))).to.have.length(EARLIER_ITEMS);
      expect((await cluster.run("key", "list")).stdout, "it has no keys yet").not.to.contain("key 0");

      expect(await submit(cluster, KEYED_ITEMS, EARLIER_ITEMS, true)).to.equal(KEYED_ITEMS);
      const id = await worker.id();
      await eventually("it says why", async () =>
        (await cluster.run("explain", id)).stdout.includes("takes no items of keys"),
      );
      const partitions = (await cluster.run("partitions", "--json")).stdout;
      expect(partitions).to.contain('"worker":null').and.not.to.contain(id);
      const { done, running } = await runUntil(cluster, () => true);
      expect({ done, running }).to.deep.equal({ done: EARLIER_ITEMS, running: 0 });

      const next = await cluster.startWorker({ args: ["--mock-state", "20B"] });
      // Before it is complete its numbers are compared with its rows, those of the earlier version too.
      const ended = await runUntil(cluster, ({ state }) => state === "complete");
      expect(ended.done).to.equal(EARLIER_ITEMS + KEYED_ITEMS);
      const executed = readJournal(cluster.file("journal")).slice(EARLIER_ITEMS);
      expect(new Set(executed.map((execution) => execution.worker))).to.deep.equal(
        new Set([await next.id()]),
      );
      expect([await stateOf(cluster, "key 0"), await stateOf(cluster, "key 1")]).to.deep.equal(["2", "2"]);
      for (const one of [worker, next]) await one.stop();
      await coordinator.stop();

      const refused = cluster.launchCoordinator({ program });
      expect(await refused.ended).to.deep.equal({ code: EXIT.storage, signal: null });
      const said = refused.stderr.filter((line) => line.includes("meta/charts"));
      expect(said, refused.describe()).to.have.length(1);
    });
  });
});
