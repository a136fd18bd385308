// Real processes over a real Postgres: the database of a run, with everything that touches it.
import { chmod, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { assert } from "../../src/base/assert.ts";
import { schemaOf } from "../../src/storage/postgres/statements.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster, Settings } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { GATED_MANIFEST, gatedItems, writeGatedFunction } from "./gated-items.ts";
import { pace } from "../support/pace.ts";
import { usePostgresDatabase } from "../support/postgres-database.ts";
import { readJournal, runUntil } from "../support/run-observer.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";

const ITEMS = 300;
const KILLS = 2;

describe("a run on a Postgres", () => {
  const database = usePostgresDatabase();
  const it = concurrentTests(4);

  const onPostgres = (): Settings => ({
    "storage.path": undefined,
    "storage.url": database.urlWithoutPassword,
    "storage.password_file": database.passwordFile,
  });

  /** The password is nowhere in what processes and commands have said. */
  function expectNoPassword(cluster: Cluster, ...texts: string[]): void {
    const password = decodeURIComponent(new URL(database.url).password);
    expect(password).to.have.length.above(8);
    for (const text of [cluster.describe(), ...texts]) expect(text).to.not.include(password);
  }

  it("is gone on with by the next coordinator when one is killed with -9, and nothing is lost or done twice", async () => {
    const settings = {
      ...onPostgres(),
      // The next one waits for it, twice.
      "coordinator.failover_threshold": "5s",
      "worker.slots": 4,
      "mock.sleep": `${60 * pace()}ms`,
      "mock.journal": "./journal",
    };
    await withCluster(settings, async (cluster) => {
      let coordinator = await cluster.startCoordinator();
      const [worker] = await cluster.startWorkers(2);
      assert(worker !== undefined, "two were started");
      await cluster.submit(
        Array.from({ length: ITEMS }, (_, at) => ({ n: at })),
        "--seal",
      );
      let doneAtLastKill = 0;
      for (let kill = 0; kill < KILLS; kill++) {
        const { done } = await runUntil(cluster, (run) => run.running > 0 && run.done > doneAtLastKill);
        doneAtLastKill = done;
        await coordinator.kill();
        coordinator = await cluster.startCoordinator();
      }
      const { done, failed } = await runUntil(cluster, ({ state }) => state === "complete");
      expect({ done, failed }).to.deep.equal({ done: ITEMS, failed: 0 });
      expect(coordinator.seen("coordinator_leading")[0]?.epoch).to.equal(KILLS);

      const { code, stdout } = await cluster.run("results");
      expect(code).to.equal(0);
      const results = stdout.trimEnd().split("\n").sort();
      expect(results.length, "every item has a result").to.equal(ITEMS);
      expect(new Set(results).size, "and exactly one").to.equal(ITEMS);
      expect(readJournal(cluster.file("journal")).length, "nothing ran twice").to.equal(ITEMS);

      const led = await cluster.run("doctor", "--json");
      expect(led.stdout).to.match(/led by a coordinator, which renews its lease and leads since \d{4}-/);
      const held = await cluster.run("doctor", "--quarantine", "done/nothing");
      expect(held).to.have.property("code", 6);
      expect(held.stderr).to.include("is held by another process: a coordinator");
      expect(await coordinator.stop()).to.deep.equal({ code: 0, signal: null });
      const unled = await cluster.run("doctor", "--json");
      expect(unled.stdout).to.match(/nobody leads with it, its rows are whole, and it is of this run/);
      const id = (await worker.identity()).worker_id;
      const revoked = await cluster.run("ca", "revoke", id, "--json");
      expect(JSON.parse(revoked.stdout)).to.include({ is_worker: true, in_force: false });
      expectNoPassword(cluster, led.stdout, held.stderr, unled.stdout, revoked.stdout);
    });
  });

  it("whose rows are damaged is not led, is exported, and is led again when the row was set aside", async () => {
    await withCluster(onPostgres(), async (cluster) => {
      await cluster.startCoordinator();
      await cluster.startWorkers(1);
      await cluster.submit([{ n: 1 }, { n: 2 }, { n: 3 }], "--seal");
      await runUntil(cluster, ({ state }) => state === "complete");
      await cluster.coordinator.stop();
      const kv = `${schemaOf(cluster.runId)}.kv`;
      const [row] = await database.query(
        `SELECT convert_from(key, 'UTF8') AS key FROM ${kv} WHERE key >= 'done/' AND key < 'done0' ORDER BY key LIMIT 1`,
      );
      const key = String(row?.["key"]);
      await database.query(`UPDATE ${kv} SET value = value || 'x' WHERE key = $1`, [Buffer.from(key)]);

      const found = await cluster.run("doctor");
      expect(found).to.have.property("code", 6);
      expect(found.stdout).to.include(`is damaged at ${key}`);
      const exported = await cluster.run("results");
      expect(exported).to.have.property("code", 6);
      expect(exported.stdout.trimEnd().split("\n")).to.have.length(2);
      const mended = await cluster.run("doctor", "--quarantine", key);
      expect(mended.stdout).to.include(`${key} was set aside`);
      await cluster.startCoordinator();
      expectNoPassword(cluster, found.stdout, exported.stderr, mended.stdout);
    });
  });

  it("goes on there in the middle when it is copied from a directory, and back in one", async () => {
    const settings = { "worker.slots": 2, "worker.plugins": [GATED_MANIFEST] };
    await withCluster(settings, async (cluster) => {
      await writeGatedFunction(cluster.directory);
      await cluster.startCoordinator();
      await cluster.startWorkers(2);
      const third = ITEMS / 3;
      const items = [
        ...gatedItems(0, third),
        ...gatedItems(third, 2 * third, { gate: "copied-1" }),
        ...gatedItems(2 * third, ITEMS, { gate: "copied-2" }),
      ];
      await cluster.submit(items, "--seal");
      let copies = 0;
      const copy = async (from: string, to: Settings, ...more: string[]): Promise<string> => {
        copies++;
        // Items that wait at a later gate may have all slots before those of an earlier one are done.
        await runUntil(cluster, ({ executing, done }) => executing === 4 && done > (copies - 1) * third);
        await cluster.configure(to);
        const early = await cluster.run("store", "copy", "--from", from, ...more);
        expect(early, early.stderr).to.have.property("code", 6);
        expect(early.stderr).to.include("is held by another process");
        await cluster.coordinator.stop();
        const { code, stdout, stderr } = await cluster.run(
          "store",
          "copy",
          "--json",
          "--from",
          from,
          ...more,
        );
        expect(code, stderr).to.equal(0);
        await cluster.startCoordinator();
        await writeFile(cluster.file(`copied-${copies}`), "");
        return stdout;
      };
      const there = await copy("./data/rollout.db", onPostgres());
      const directory = { "storage.url": undefined, "storage.password_file": undefined };
      const password = ["--from-password-file", database.passwordFile];
      const toOther = { ...directory, "storage.path": "./data/other.db" };
      const back = await copy(database.urlWithoutPassword, toOther, ...password);
      const { done, failed } = await runUntil(cluster, ({ state }) => state === "complete");
      expect({ done, failed }).to.deep.equal({ done: ITEMS, failed: 0 });
      expect(readJournal(cluster.file("journal")).length, "nothing ran twice").to.equal(ITEMS);
      for (const said of [there, back])
        expect(JSON.parse(said)).to.have.property("rows").that.is.a("number").above(ITEMS);
      expectNoPassword(cluster, there, back);
    });
  });

  it("waits for a server that is away, says so, and leads when it answers", async () => {
    const port = Number(new URL(database.url).port);
    const proxy = await startTcpProxy(port);
    const away = new URL(database.urlWithoutPassword);
    away.host = proxy.address;
    proxy.cut();
    try {
      await withCluster({ ...onPostgres(), "storage.url": away.href }, async (cluster) => {
        const coordinator = cluster.launchCoordinator();
        const said = (words: RegExp): Promise<string> =>
          coordinator.until(String(words), () => coordinator.stderr.find((line) => words.test(line)));
        await said(/cannot be reached: .*; it is tried again until it answers/);
        proxy.heal();
        await coordinator.event("coordinator_leading");
        await said(/the database answers/);
      });
    } finally {
      await proxy.close();
    }
  });

  it("is refused by name when its password file is open to others, is not there, or is wrong", async () => {
    await withCluster(onPostgres(), async (cluster) => {
      const refused = async (settings: Settings): Promise<string> => {
        await cluster.configure(settings);
        const { code, stderr } = await cluster.run("coordinator", "run");
        expect(code, stderr).to.be.oneOf([2, 6]);
        return stderr;
      };
      expect(await refused({ "storage.password_file": "./none" })).to.include("the database's password");
      await writeFile(cluster.file("wrong"), "wrong\n", { mode: 0o644 });
      expect(await refused({ "storage.password_file": "./wrong" })).to.include("can be read by others");
      await chmod(cluster.file("wrong"), 0o600);
      expect(await refused({ "storage.password_file": "./wrong" })).to.include(
        "correct the user in storage.url, and the password in storage.password_file",
      );
      const both = await refused({
        "storage.path": "./db",
        "storage.url": database.url,
        "storage.password_file": undefined,
      });
      expect(both).to.include("set storage.path for one coordinator, or storage.url for several, not both");
      expectNoPassword(cluster, both);
    });
  });
});
