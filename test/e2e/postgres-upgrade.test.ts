// An upgrade as docs/OPERATIONS.md tells it, from the first version that kept a run on a Postgres: a run of it that is gone on with, and a cluster of
// it whose members are replaced one after the other while the run goes on.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { expect } from "chai";
import { assert } from "../../src/base/assert.ts";
import { sleep, systemClock } from "../../src/base/clock.ts";
import { EXIT } from "../../src/base/error-row.ts";
import type { RunId } from "../../src/base/ids.ts";
import { readRevoked } from "../../src/coordinator/workers/enrolment.ts";
import { RolloutClient } from "../../src/compose/rollout-client.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster, MemberOptions, Settings, WorkerProcess } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { EARLIER } from "./earlier/earlier-package.ts";
import { earlierProgram } from "./earlier/earlier-program.ts";
import { eventually } from "../support/eventually.ts";
import { GATED_MANIFEST, gatedItems, writeGatedFunction } from "./gated-items.ts";
import { restartableAddress } from "../support/listeners.ts";
import { usePostgresDatabase } from "../support/postgres-database.ts";
import { restoreDump } from "./postgres-dump.ts";
import { openTestStore } from "../support/postgres-store.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";
import { readJournal, runUntil } from "../support/run-observer.ts";

/** In the dump are 10 done, 1 failed, 3 running, 3 that have failed and wait, 13 that wait. */
const DUMPED = 30;
const FINAL = 11;
/** A leader that is killed, or that a dump names, is waited for no longer. */
const TAKES_OVER: Settings = { "coordinator.failover_threshold": "5s" };
/** How long an item takes, and how long it is to the next one. */
const ITEM_MS = 50;
const FROM_SOURCE = fileURLToPath(new URL("../../bin/dev.js", import.meta.url));
/** The chart of the run as a later version may have it. */
const NEXT_CHART = new URL("earlier/next-run-chart.ts", import.meta.url).href;

/** As `rollout results` prints it. */
interface ResultLine {
  readonly ok: boolean;
  readonly output?: number;
}

/** Coordinators by their addresses, one after the other at each. */
class Hosts {
  /** The program of the earlier version. */
  readonly earlier: string;
  readonly #cluster: Cluster;
  readonly #addresses: readonly string[];
  readonly #processes = new Map<number, RolloutProcess>();

  constructor(cluster: Cluster, addresses: readonly string[], earlier: string) {
    this.#cluster = cluster;
    this.#addresses = addresses;
    this.earlier = earlier;
  }

  /** The one that was started there last. */
  at(number: number): RolloutProcess {
    const process = this.#processes.get(number);
    assert(process !== undefined, "it was started");
    return process;
  }

  start(number: number, { env, ...options }: MemberOptions = {}): RolloutProcess {
    const listenAddr = { ROLLOUT_TRANSPORT_LISTEN_ADDR: String(this.#addresses[number]) };
    const process = this.#cluster.launchCoordinator({ ...options, env: { ...listenAddr, ...env } });
    this.#processes.set(number, process);
    return process;
  }

  async stop(number: number): Promise<void> {
    expect(await this.at(number).stop()).to.deep.equal({ code: 0, signal: null });
  }

  /** As docs/OPERATIONS.md tells: when `status` shows that the others are there. The earlier version refuses it before. */
  async handOver(program: string): Promise<void> {
    await eventually("another one is there", async () => {
      const { stdout } = await this.#cluster.run("status", "--json");
      const { coordinators } = JSON.parse(stdout) as { coordinators: readonly { present: boolean }[] };
      return coordinators.filter(({ present }) => present).length === this.#addresses.length;
    });
    const handover = this.#cluster.launch(["coordinator", "step-down"], { program });
    expect((await handover.ended).code, handover.describe()).to.equal(0);
  }

  /** The leader there has heard of it. */
  async ready(leader: number, worker: WorkerProcess): Promise<void> {
    const { incarnation } = await worker.identity();
    await this.at(leader).event("worker_heartbeat", { incarnation, state: "Ready" });
  }
}

/** Submits an item after the other until it is told to end. */
class Submitter {
  readonly #client: RolloutClient;
  #next: number;
  #isEnding = false;
  #ended: Promise<void> = Promise.resolve();

  constructor(client: RolloutClient, first: number) {
    this.#client = client;
    this.#next = first;
  }

  goOn(): Promise<void> {
    this.#ended = this.#submit();
    // The test may have failed before it waits for this.
    this.#ended.catch(() => undefined);
    return this.#ended;
  }

  /** Seals the run; says how many items there are. */
  async end(): Promise<number> {
    this.#isEnding = true;
    await this.#ended;
    await this.#client.seal();
    this.#client.close();
    return this.#next;
  }

  async #submit(): Promise<void> {
    while (!this.#isEnding) {
      await this.#client.submit(gatedItems(this.#next, ++this.#next, { ms: ITEM_MS }));
      await sleep(systemClock, ITEM_MS);
    }
  }
}

describe("an upgrade of a run on a Postgres", () => {
  const database = usePostgresDatabase();
  const it = concurrentTests(3);

  const settingsOf = (more: Settings = {}): Settings => ({
    "storage.path": undefined,
    "storage.url": database.urlWithoutPassword,
    "storage.password_file": database.passwordFile,
    "worker.plugins": [GATED_MANIFEST],
    "worker.slots": 2,
    ...more,
  });

  const open = (cluster: Cluster, gate: string): Promise<void> => writeFile(cluster.file(gate), "");
  const journalOf = (cluster: Cluster): string[] =>
    readJournal(cluster.file("journal")).map(({ item }) => item);

  async function resultsOf(cluster: Cluster): Promise<string[]> {
    const { code, stdout, stderr } = await cluster.run("results");
    expect(code, stderr).to.be.oneOf([EXIT.done, EXIT.itemsFailed]);
    return stdout.trimEnd().split("\n").toSorted();
  }

  it("goes on with a dump of it: what was final stays, the rest is done, and nothing twice", async () => {
    const dump = gunzipSync(await readFile(join(EARLIER, "run.sql.gz"))).toString();
    const runId = /^CREATE SCHEMA rollout_(\w+);$/m.exec(dump)?.[1]?.toUpperCase() as RunId;
    await withCluster(settingsOf({ run_id: runId, ...TAKES_OVER }), async (cluster) => {
      await restoreDump(database.url, dump);
      await mkdir(cluster.file("data/tls"), { recursive: true, mode: 0o700 });
      for (const file of ["ca.pem", "ca.key.pem"])
        await writeFile(cluster.file(`data/tls/${file}`), await readFile(join(EARLIER, file)), {
          mode: 0o600,
        });
      await writeGatedFunction(cluster.directory);
      const coordinator = await cluster.startCoordinator();
      expect(coordinator.seen("store_generation_changed"), "it is another server").to.have.length(1);
      const before = await resultsOf(cluster);
      expect(before).to.have.length(FINAL);
      const listed = (await cluster.workers()).map(({ worker_id }) => worker_id);
      expect(listed, "its workers are known").to.have.length(2);

      expect((await runUntil(cluster, () => true)).state, "it stays paused").to.equal("paused");
      expect((await cluster.run("resume")).code).to.equal(0);
      await open(cluster, "later");
      const worker = await cluster.startWorker();
      await cluster.submit(gatedItems(DUMPED, DUMPED + 2), "--seal");
      const { done, failed } = await runUntil(cluster, ({ state }) => state === "complete");
      expect({ done, failed }).to.deep.equal({ done: DUMPED + 1, failed: 1 });
      const after = await resultsOf(cluster);
      expect(after).to.include.members(before);
      const outputs = after
        .map((line) => JSON.parse(line) as ResultLine)
        .map(({ ok, output }) => ok && output);
      expect(outputs, "each item has one result").to.have.members(
        Array.from({ length: DUMPED + 2 }, (_, n) => n !== 10 && n),
      );
      const journal = journalOf(cluster);
      expect(new Set(journal).size).to.equal(DUMPED + 2 - FINAL);
      expect(journal, "what was final did not run, and nothing ran twice").to.have.length(DUMPED + 2 - FINAL);
      expect(await worker.stop()).to.have.property("code", 0);
      await coordinator.stop();
      const store = await openTestStore(database.url, runId);
      expect((await readRevoked(store)).size, "what was revoked stays").to.equal(1);
      await store.close();
    });
  });

  /** Two coordinators of the earlier version, of which the first leads, each at an address of its own. */
  async function withEarlier(
    use: (cluster: Cluster, hosts: Hosts) => Promise<void>,
    more: Settings = {},
  ): Promise<void> {
    const addresses = [await restartableAddress(), await restartableAddress()] as const;
    const [listenAddr] = addresses;
    const settings = {
      "worker.coordinator_addr": addresses,
      "transport.listen_addr": listenAddr,
      ...more,
    };
    await withCluster(settingsOf(settings), async (cluster) => {
      await writeGatedFunction(cluster.directory);
      const hosts = new Hosts(cluster, addresses, earlierProgram());
      await hosts.start(0, { program: hosts.earlier }).event("coordinator_leading");
      await hosts.start(1, { program: hosts.earlier }).event("coordinator_following");
      await use(cluster, hosts);
    });
  }

  it("is done member by member: work, submissions and results go on, and nothing is lost or done twice", () =>
    withEarlier(async (cluster, hosts) => {
      const [leader, next] = [0, 1] as const;
      const { earlier: program } = hosts;
      const old = [cluster.launchWorker({ program }), cluster.launchWorker({ program })];
      for (const worker of old) await hosts.ready(leader, worker);
      await cluster.submit([
        ...gatedItems(0, 6, { gate: "another-leads" }),
        ...gatedItems(6, 12, { gate: "both-are-new" }),
      ]);
      const following = [cluster.launch(["results", "--follow"], { program })];
      const submitter = new Submitter(
        await RolloutClient.connect({ config: cluster.file("rollout.toml") }),
        12,
      );
      const submitting = submitter.goOn();
      await runUntil(cluster, ({ executing }) => executing === 4);

      await hosts.stop(next);
      await hosts.start(next).event("coordinator_following");
      await hosts.handOver(program);
      await hosts.at(next).event("coordinator_leading");
      following.push(cluster.launch(["results", "--follow"]));
      await hosts.at(leader).event("coordinator_following");
      await open(cluster, "another-leads");
      await hosts.stop(leader);
      await hosts.start(leader).event("coordinator_following");
      await open(cluster, "both-are-new");

      for (const worker of old) {
        const drained = await cluster.run("worker", "drain", await worker.id(), "--wait");
        expect(drained.code, drained.stderr).to.equal(0);
        expect(await worker.ended).to.deep.equal({ code: 0, signal: null });
        await hosts.ready(next, cluster.launchWorker());
      }
      const submitted = await submitter.end();
      await submitting;
      for (const each of following) {
        expect((await each.ended).code, each.describe()).to.equal(0);
        const outputs = each.stdout.map((line) => (JSON.parse(line) as ResultLine).output);
        expect(outputs, "one result of each item").to.have.members(
          gatedItems(0, submitted).map(({ n }) => n),
        );
      }
      const journal = journalOf(cluster);
      expect(new Set(journal).size).to.equal(submitted);
      expect(journal, "nothing ran twice").to.have.length(submitted);
      expect(hosts.at(next).seen("coordinator_leading")).to.have.length(1);
    }));

  it("that knows a later chart is not taken over by the earlier version, which says so and leaves the run to others", () =>
    withEarlier(async (cluster, hosts) => {
      const later = { program: FROM_SOURCE, env: { NODE_OPTIONS: `--import=${NEXT_CHART}` } };
      await cluster.submit(gatedItems(0, 2));
      await hosts.stop(1);
      await hosts.start(1, later).event("coordinator_following");
      await hosts.handOver(hosts.earlier);
      const { epoch } = await hosts.at(1).event("coordinator_leading");
      await hosts.at(1).kill();
      const earlier = hosts.at(0);
      expect(await earlier.ended).to.deep.equal({ code: EXIT.storage, signal: null });
      expect(earlier.stderr.join("\n")).to.match(
        /meta\/charts has version work-item 2 \(.*\), this one knows work-item 1 \(/,
      );
      expect((await hosts.start(1, later).event("coordinator_leading")).epoch, "it claimed nothing").to.equal(
        epoch + 1,
      );
    }, TAKES_OVER));
});
