// Workers that fall silent in the middle of their work: dead, or only paused. Executions are read from their own journal, and the
// ledger's account of them from its rows.
import { expect } from "chai";
import { DONE_PREFIX, RETURNED_PREFIX, RUNNING_PREFIX } from "../../src/storage/keys.ts";
import { doneRecord, returnedRecord, runningRecord } from "../../src/coordinator/ledger/records.ts";
import type { Cluster } from "../support/cluster.ts";
import { QUICK, withCluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { eventually } from "../support/eventually.ts";
import type { Execution } from "../support/run-observer.ts";
import { readJournal, readRows, runUntil } from "../support/run-observer.ts";

const SLOTS = 3;
/** A worker has as many again in its backlog. */
const HELD = 2 * SLOTS;
const SETTINGS = { ...QUICK, "worker.slots": SLOTS, "mock.journal": "./journal" };

describe("a worker that falls silent", () => {
  const it = concurrentTests(3);

  it("gives up what it ran and what waited with it, and all of it runs elsewhere", () =>
    withCluster(SETTINGS, async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      const lost = await cluster.startWorker({ env: { ROLLOUT_MOCK_SLEEP: "1h" } });
      await submit(cluster, HELD);
      await eventually("all slots are busy", () => journalOf(cluster, lost.pid).length === SLOTS);
      const other = await cluster.startWorker({ env: { ROLLOUT_MOCK_SLEEP: "10ms" } });
      // Items that it has not begun may be taken from it; items that it runs cannot.
      const running = journalOf(cluster, lost.pid).map(({ item }) => item);
      await lost.kill();
      const { worker_id } = await lost.identity();
      await completes(cluster, HELD);

      const topics = coordinator.events
        .filter((event) => "worker_id" in event && event.worker_id === worker_id)
        .map(({ topic }) => topic);
      expect(topics.indexOf("worker_suspected")).to.be.within(1, topics.indexOf("worker_failed") - 1);
      const elsewhere = journalOf(cluster, other.pid);
      expect(elsewhere.map(({ item }) => item)).to.include.members(running);
      expect(new Set(elsewhere.map(({ item }) => item)).size).to.equal(HELD);
      expect(elsewhere.length).to.equal(HELD);
    }));

  it("and was only paused comes back, starts none of the items that it lost, and its late reports change nothing", () =>
    withCluster(SETTINGS, async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      // Long enough to be stopped in the middle.
      const sleep = `${4_000 * cluster.pace}ms`;
      const paused = await cluster.startWorker({ env: { ROLLOUT_MOCK_SLEEP: sleep } });
      await submit(cluster, HELD);
      await eventually("all slots are busy", () => journalOf(cluster, paused.pid).length === SLOTS);
      const begun = journalOf(cluster, paused.pid);
      paused.send("SIGSTOP");
      const { worker_id } = await paused.identity();
      const other = await cluster.startWorker({ env: { ROLLOUT_MOCK_SLEEP: "10ms" } });
      await coordinator.event("worker_failed", { worker_id });
      await completes(cluster, HELD);
      const recovered = coordinator.nextEvent("worker_recovered", { worker_id });
      paused.send("SIGCONT");
      await recovered;
      // It is as good as new: it works for this run again, after it has ended what it could not know to be lost.
      await submit(cluster, HELD, "more", "--seal");
      await completes(cluster, 2 * HELD);
      expect(await paused.stop()).to.deep.equal({ code: 0, signal: null });
      await coordinator.stop();

      const old = new Set(journalOf(cluster, other.pid).map(({ item }) => item));
      const again = journalOf(cluster, paused.pid).filter(({ item }) => old.has(item));
      expect(again, "of what it lost, it executed what it had begun before").to.deep.equal(begun);
      const rows = await readRows(cluster.file("data/rollout.db"), DONE_PREFIX, doneRecord);
      expect(rows.length).to.equal(2 * HELD);
      const lost = new Set(begun.map(({ item }) => item));
      const results = rows.filter(({ id }) => lost.has(Buffer.from(id).toString("hex")));
      expect(results.map(({ attempt }) => attempt)).to.deep.equal([2, 2, 2]);
      for (const { worker } of results) expect(worker).to.equal(await other.id());
    }));

  it("together with all the others is nobody's fault: no item is charged, and the run completes", () =>
    withCluster(SETTINGS, async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      // Long enough for all slots to be busy at the same moment.
      const env = { ROLLOUT_MOCK_SLEEP: `${4_000 * cluster.pace}ms` };
      const fleet = await Promise.all([1, 2, 3].map(() => cluster.startWorker({ env })));
      await submit(cluster, 2 * HELD);
      await eventually("all slots are busy", () => readJournalOf(cluster).length === fleet.length * SLOTS);
      for (const worker of fleet) worker.send("SIGSTOP");
      for (const worker of fleet) await coordinator.event("worker_failed", { worker_id: await worker.id() });
      await coordinator.kill();

      const path = cluster.file("data/rollout.db");
      expect(await readRows(path, RUNNING_PREFIX, runningRecord)).to.deep.equal([]);
      const returned = await readRows(path, RETURNED_PREFIX, returnedRecord);
      expect(returned.length).to.be.at.least(fleet.length * SLOTS);
      for (const { charged, lost } of returned)
        expect({ charged, lost }).to.deep.equal({ charged: 0, lost: 0 });

      const successor = await cluster.startCoordinator();
      for (const worker of fleet) worker.send("SIGCONT");
      await completes(cluster, 2 * HELD);
      for (const worker of fleet) expect(worker.isRunning).to.equal(true);
      expect(successor.seen("worker_failed")).to.deep.equal([]);
    }));
});

async function submit(cluster: Cluster, count: number, name = "items", ...flags: string[]): Promise<void> {
  const values = Array.from({ length: count }, (_, at) => `${name} ${at}`);
  expect(await cluster.submit(values, ...flags)).to.include({ added: count });
}

async function completes(cluster: Cluster, items: number): Promise<void> {
  const { failed } = await runUntil(cluster, ({ done }) => done === items);
  expect(failed).to.equal(0);
}

function readJournalOf(cluster: Cluster): Execution[] {
  return readJournal(cluster.file("journal"));
}

/** Items that the process with this pid has begun, in order. */
function journalOf(cluster: Cluster, pid: number): Execution[] {
  return readJournalOf(cluster).filter((execution) => execution.pid === pid);
}
