// A database with a row that cannot be read, through real processes: named, got around by who wants the results, and set aside by who
// wants to go on.
import { writeFileSync } from "node:fs";
import { expect } from "chai";
import { systemClock } from "../../src/base/clock.ts";
import { RUNNING_PREFIX, DONE_PREFIX, RUN_KEY } from "../../src/storage/keys.ts";
import { openLevelStore } from "../../src/storage/level/level-store.ts";
import { prefixRange } from "../../src/storage/store.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { damageRow } from "../support/damaged-copy.ts";
import type { RowRange } from "../support/damaged-copy.ts";
import { eventually } from "../support/eventually.ts";
import { runUntil } from "../support/run-observer.ts";

const DATABASE = "data/rollout.db";

const damage = (cluster: Cluster, range: RowRange): Promise<string> =>
  damageRow(cluster.file(DATABASE), range);

const linesOf = (text: string): unknown[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as unknown);

describe("a database that a command looks into", () => {
  it("is waited for by a coordinator that starts meanwhile", async () => {
    await withCluster({}, async (cluster) => {
      const path = cluster.file(DATABASE);
      const store = await openLevelStore({ path, holderName: "rollout doctor", clock: systemClock });
      const coordinator = cluster.launch(["coordinator", "run"]);
      await eventually("it is said", () =>
        coordinator.stderr.some((line) => line.includes("it is waited for")),
      );
      await store.close();
      await coordinator.event("coordinator_leading");
      await coordinator.stop();
    });
  });
});

describe("a row that cannot be read", () => {
  it("is not offered to be set aside when nothing can take its place", async () => {
    await withCluster({}, async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      expect(await cluster.run("pause")).to.include({ code: 0 });
      await coordinator.stop();
      const key = await damage(cluster, { from: RUN_KEY, to: `${RUN_KEY}0` });
      const found = await cluster.run("doctor");
      expect(found.code).to.equal(6);
      expect(found.stdout).to.include(key).and.to.include("nothing can take its place");
      expect(found.stdout).to.not.include("--quarantine");
    });
  });

  it("leaves the other results to be had without a coordinator, and the run to one when it is set aside", async () => {
    await withCluster({}, async (cluster) => {
      const first = await cluster.startCoordinator();
      const worker = await cluster.startWorker();
      await cluster.submit(["a", "b", "c", "d"], "--seal");
      await runUntil(cluster, ({ state }) => state === "complete");
      await worker.stop();
      await first.stop();
      const stopped = await cluster.run("results");
      expect(stopped.code, "a coordinator could lead: it is only not there").to.equal(3);
      const key = await damage(cluster, prefixRange(DONE_PREFIX));

      const results = await cluster.run("results", "-c", ".");
      expect([results.code, linesOf(results.stdout).length]).to.deep.equal([6, 3]);
      expect(results.stderr).to.include(key).and.to.include("`rollout doctor -c .` says");
      const found = await cluster.run("doctor", "--json", "-c", ".");
      expect(found.code).to.equal(6);
      expect(found.stdout).to.include(`--quarantine ${key} -c .`);

      const aside = await cluster.run("doctor", "--quarantine", key, "--json");
      expect(aside.stdout).to.include(`${key} was set aside`);
      const again = await cluster.run("doctor", "--quarantine", key, "--json");
      expect(again.stdout).to.include(`${key} was set aside before`);

      const second = await cluster.startCoordinator();
      const held = await cluster.run("doctor", "--quarantine", key);
      expect([held.code, held.stderr]).to.satisfy(
        ([code, said]: [number, string]) => code === 6 && said.includes("held by another process"),
      );
      const status = await cluster.run("status", "--json");
      expect(status.code, "it is complete, but for what was set aside").to.equal(6);
      expect(linesOf(status.stdout)[0]).to.deep.include({ state: "complete", done: 3, set_aside: 1 });
      expect(linesOf(status.stdout)[0]).to.have.nested.property("set_aside_items[0].key", key);
      expect(linesOf(status.stdout)[0])
        .to.have.nested.property("set_aside_items[0]")
        .that.has.all.keys("item", "key");
      for (const order of ["input", "completion"]) {
        const rest = await cluster.run("results", "--order", order);
        expect([rest.code, linesOf(rest.stdout).length]).to.deep.equal([6, 3]);
      }
      await second.stop();
    });
  });

  it("in what is in flight ends a start with its code and its key", async () => {
    await withCluster({}, async (cluster) => {
      const first = await cluster.startCoordinator();
      writeFileSync(
        cluster.file("slow.toml"),
        'name = "slow"\nversion = "1"\nbackend = "command"\n[command]\ncommand = ["sleep", "600"]\n',
      );
      const worker = await cluster.startWorker({ args: ["--plugin", "slow.toml"] });
      await cluster.submit(["a"], "--seal", "--plugin", "slow.toml");
      await runUntil(cluster, ({ running }) => running === 1);
      await first.kill();
      await worker.kill();
      const key = await damage(cluster, prefixRange(RUNNING_PREFIX));
      const refused = await cluster.run("coordinator", "run");
      expect(refused.code).to.equal(6);
      expect(refused.stderr).to.include(`is damaged at ${key}`);
    });
  });
});
