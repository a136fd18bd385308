// A backup that is made in the middle of a run, by the command, from either kind of database; and the run gone on with from it.
import { cp, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { EXIT } from "../../src/base/error-row.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster, Settings } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { GATED_MANIFEST, gatedItems, writeGatedFunction } from "./gated-items.ts";
import { usePostgresDatabase } from "../support/postgres-database.ts";
import { readJournal, runUntil } from "../support/run-observer.ts";

const ITEMS = 60;
/** The others wait until the backup is made. */
const EARLY = 20;
const SETTINGS = { "worker.slots": 2, "worker.plugins": [GATED_MANIFEST] } as const;
const IN_DIRECTORY: Settings = {
  "storage.url": undefined,
  "storage.password_file": undefined,
  "storage.path": "./restored",
};

describe("a backup of a run that goes on", () => {
  const database = usePostgresDatabase();
  const it = concurrentTests(2);

  const journalOf = (cluster: Cluster): string[] =>
    readJournal(cluster.file("journal")).map(({ item }) => item);

  /** The run is complete, and each item was executed once; the backup was made before that. */
  async function runWithBackup(cluster: Cluster): Promise<void> {
    await writeGatedFunction(cluster.directory);
    await cluster.startCoordinator();
    await cluster.startWorker();
    const items = [...gatedItems(0, EARLY), ...gatedItems(EARLY, ITEMS, { gate: "backed-up" })];
    await cluster.submit(items, "--seal");
    await runUntil(cluster, ({ executing, done }) => executing === 2 && done === EARLY);
    const { code, stdout, stderr } = await cluster.run("store", "backup", "./backup", "--json");
    expect(code, stderr).to.equal(0);
    expect(JSON.parse(stdout)).to.deep.include({ to: cluster.file("backup") });
    expect(JSON.parse(stdout)).to.have.property("rows").that.is.above(ITEMS);
    await writeFile(cluster.file("backed-up"), "");
    await runUntil(cluster, ({ state }) => state === "complete");
    expect(new Set(journalOf(cluster)).size).to.equal(ITEMS);
    expect(journalOf(cluster), "and the run was not disturbed").to.have.length(ITEMS);
    const again = await cluster.run("store", "backup", "./backup");
    expect(again).to.have.property("code", EXIT.storage);
    expect(again.stderr).to.include("it holds a run already");
  }

  /** The coordinator that was configured meanwhile is about to lead what is older than what its host has seen. */
  async function goOnFrom(cluster: Cluster): Promise<void> {
    const refused = cluster.launchCoordinator();
    expect(await refused.ended).to.deep.equal({ code: EXIT.storage, signal: null });
    expect(refused.stderr.join("\n")).to.include(`${ITEMS - EARLY} results and 0 items are missing`);

    await cluster.startCoordinator({ args: ["--on-rollback", "accept"] });
    const { done, failed } = await runUntil(cluster, ({ state }) => state === "complete");
    expect({ done, failed }).to.deep.equal({ done: ITEMS, failed: 0 });
    const results = await cluster.run("results", "--order", "input");
    const ids = results.stdout.trimEnd().split("\n");
    expect(new Set(ids).size, "each item is final once").to.equal(ITEMS);
    expect(ids).to.have.length(ITEMS);
    expect(new Set(journalOf(cluster)).size).to.equal(ITEMS);
    expect(journalOf(cluster), "what was final in the backup did not run again").to.have.length(
      2 * ITEMS - EARLY,
    );
  }

  it("is made of a directory, and a coordinator leads with the copy", async () => {
    await withCluster(SETTINGS, async (cluster) => {
      await runWithBackup(cluster);
      await cluster.coordinator.stop();
      await cp(cluster.file("backup"), cluster.file("restored"), { recursive: true });
      await cluster.configure(IN_DIRECTORY);
      await goOnFrom(cluster);
    });
  });

  it("is made of a Postgres, led from a directory, and copied to another Postgres", async () => {
    const onPostgres: Settings = {
      "storage.path": undefined,
      "storage.url": database.urlWithoutPassword,
      "storage.password_file": database.passwordFile,
    };
    await withCluster({ ...SETTINGS, ...onPostgres }, async (cluster) => {
      await runWithBackup(cluster);
      await cluster.coordinator.stop();
      await database.query(`ALTER SCHEMA rollout_${cluster.runId.toLowerCase()} RENAME TO kept`);
      const { code, stderr } = await cluster.run("store", "copy", "--from", "./backup");
      expect(code, stderr).to.equal(0);
      await goOnFrom(cluster);
    });
  });
});
