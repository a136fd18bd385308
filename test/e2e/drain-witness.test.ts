// A cloud takes a worker's machine away, as its metadata server says on loopback. Executions and their places are read from the
// executions' own journal; the clouds' own times hold, but where a test says that the notice is shorter.
import { writeFileSync } from "node:fs";
import { expect } from "chai";
import { systemClock } from "../../src/base/clock.ts";
import type { Cluster, WorkerProcess } from "../support/cluster.ts";
import { withCluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { AwsMetadataServer, GcpMetadataServer } from "../support/metadata-server.ts";
import type { Execution } from "../support/run-observer.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";
import { readJournal, readResults, RunObserver } from "../support/run-observer.ts";

const WITNESS = "spot_drain_completes_within_lead_time";

type Server = AwsMetadataServer | GcpMetadataServer;

interface Cloud {
  readonly name: "aws" | "gcp";
  /** The time that it gives between its notice and the end. */
  readonly leadMs: number;
  /** The longest time for a drain. */
  readonly targetMs: number;
  readonly serve: () => Promise<Server>;
}

const CLOUDS: readonly Cloud[] = [
  { name: "aws", leadMs: 120_000, targetMs: 60_000, serve: () => AwsMetadataServer.start() },
  { name: "gcp", leadMs: 30_000, targetMs: 15_000, serve: () => GcpMetadataServer.start() },
];

describe("witnesses", () => {
  const it = concurrentTests(7);

  // It takes longest, so it is the first to begin.
  it(`${WITNESS}: aws, and an item that is preempted as often as it may fail has not failed`, () =>
    withCluster(SETTINGS, async (cluster) => {
      await cluster.startCoordinator();
      await submit(cluster, 1);
      for (let preemption = 1; preemption <= MAX_ATTEMPTS; preemption++) {
        const metadata = await AwsMetadataServer.start();
        try {
          const spot = await startSpot(cluster, metadata, "1h");
          await cluster.coordinator.event("worker_heartbeat", {
            worker_id: await spot.id(),
            load: 1 / SLOTS,
          });
          metadata.preempt({ action: "hibernate" });
          await spot.event("drain_completed");
          expect(await spot.ended).to.deep.equal({ code: 0, signal: null });
        } finally {
          await metadata.close();
        }
      }
      await startElsewhere(cluster);
      await completes(cluster, 1);
      const attempts = readJournal(cluster.file("journal")).map(({ attempt }) => attempt);
      expect(attempts).to.deep.equal([1, 2, 3, 4]);
    }));

  for (const cloud of CLOUDS) {
    it(`${WITNESS}: ${cloud.name}`, () =>
      // Longer than the wait for the next poll: it has something in its hands when it learns of it.
      withSpot(cloud, { items: 40, sleep: "6s" }, async ({ cluster, coordinator, metadata, spot }) => {
        metadata.preempt();
        const noticedMs = systemClock.monotonicMs();
        const { cause, deadline_ms } = await spot.event("drain_started");
        const begun = journalOf(cluster, spot.pid);
        expect(cause).to.equal(cloud.name);
        expect(deadline_ms).to.be.within(cloud.targetMs - 2_000 * cluster.pace, cloud.targetMs);
        const { took_ms } = await spot.event("drain_completed");
        expect(await spot.ended).to.deep.equal({ code: 0, signal: null });
        expect(took_ms).to.be.below(cloud.targetMs);
        expect(systemClock.monotonicMs() - noticedMs).to.be.below(cloud.leadMs);
        expect(journalOf(cluster, spot.pid), "nothing was begun after the notice").to.deep.equal(begun);

        await completes(cluster, 40);
        expect(coordinator.seen("worker_deregistered")).to.have.length(1);
        expect(coordinator.seen("worker_failed")).to.deep.equal([]);
        // It held more than it executed, and what it had begun it could end: nothing had to run again.
        const executions = readJournal(cluster.file("journal"));
        expect(executions.some(({ attempt, pid }) => attempt > 1 && pid !== spot.pid)).to.equal(true);
        expect(new Set(executions.map(({ item }) => item)).size).to.equal(40);
        expect(executions.length).to.equal(40);
      }));

    it(`${WITNESS}: ${cloud.name}, and abandons at the deadline what would take longer`, () =>
      withSpot(cloud, { items: 5, sleep: "1h" }, async ({ cluster, coordinator, metadata, spot }) => {
        const leadMs = preemptShortly(metadata);
        await spot.event("drain_started");
        const begun = journalOf(cluster, spot.pid);
        const { took_ms } = await spot.event("drain_completed");
        expect(await spot.ended).to.deep.equal({ code: 0, signal: null });
        expect(took_ms).to.be.below(leadMs);
        expect(journalOf(cluster, spot.pid)).to.deep.equal(begun);

        await completes(cluster, 5);
        expect(coordinator.seen("worker_failed")).to.deep.equal([]);
        const elsewhere = readJournal(cluster.file("journal")).filter(({ pid }) => pid !== spot.pid);
        expect(elsewhere.length, "all of them were executed elsewhere, once").to.equal(5);
        await coordinator.stop();
        expect(await readResults(cluster.file("data/rollout.db"))).to.have.length(5);
      }));

    it(`${WITNESS}: ${cloud.name}, and a machine that is gone in the middle of it is a loss like any other`, () =>
      withSpot(cloud, { items: 20, sleep: "1h" }, async ({ cluster, coordinator, metadata, spot }) => {
        metadata.preempt();
        await spot.event("drain_started");
        await spot.kill();
        const { worker_id } = await spot.identity();
        await coordinator.event("worker_failed", { worker_id });
        await completes(cluster, 20);
        await coordinator.stop();
        expect(new Set(await readResults(cluster.file("data/rollout.db"))).size).to.equal(20);
      }));
  }
});

const SLOTS = 3;
const MAX_ATTEMPTS = 3;
const SETTINGS = { "worker.slots": SLOTS, "mock.journal": "./journal" };

/** A worker on a machine of this cloud. */
function startSpot(cluster: Cluster, metadata: Server, sleep: string): Promise<WorkerProcess> {
  return cluster.startWorker({
    env: {
      ROLLOUT_WORKER_PREEMPTION: metadata instanceof AwsMetadataServer ? "aws" : "gcp",
      ROLLOUT_WORKER_METADATA_ADDR: `127.0.0.1:${metadata.port}`,
      ROLLOUT_MOCK_SLEEP: sleep,
    },
  });
}

/** One that nobody preempts, and that is done in no time. */
async function startElsewhere(cluster: Cluster): Promise<void> {
  await cluster.startWorker({ env: { ROLLOUT_MOCK_SLEEP: "10ms" } });
}

interface Stage {
  readonly cluster: Cluster;
  readonly coordinator: RolloutProcess;
  readonly metadata: Server;
  /** All its slots are busy, and there is another worker. */
  readonly spot: WorkerProcess;
}

/** A worker on a machine of this cloud, with work that takes it so long. */
function withSpot(
  cloud: Cloud,
  { items, sleep }: { readonly items: number; readonly sleep: string },
  use: (stage: Stage) => Promise<void>,
): Promise<void> {
  return withCluster(SETTINGS, async (cluster) => {
    const metadata = await cloud.serve();
    try {
      const coordinator = await cluster.startCoordinator();
      const spot = await startSpot(cluster, metadata, sleep);
      await submit(cluster, items);
      await coordinator.event("worker_heartbeat", { worker_id: await spot.id(), load: 1 });
      await startElsewhere(cluster);
      await use({ cluster, coordinator, metadata, spot });
    } finally {
      await metadata.close();
    }
  });
}

/** Submits so many items, and no more will come. */
async function submit(cluster: Cluster, count: number): Promise<void> {
  const lines = Array.from({ length: count }, (_, at) => `${at}\n`);
  writeFileSync(cluster.file("items.jsonl"), lines.join(""));
  const { stdout } = await cluster.run("submit", "items.jsonl", "--seal", "--json");
  expect(JSON.parse(stdout)).to.include({ added: count });
}

/** The run completes, with a result for each of its items. */
async function completes(cluster: Cluster, items: number): Promise<void> {
  const observer = await RunObserver.open(cluster);
  const { done, failed } = await observer.until(({ state }) => state === "complete");
  observer.close();
  expect({ done, failed }).to.deep.equal({ done: items, failed: 0 });
}

/** Announces the end with as little notice as the cloud can give; returns the lead in milliseconds. */
function preemptShortly(metadata: Server): number {
  if (metadata instanceof GcpMetadataServer) {
    metadata.preempt();
    return 30_000;
  }
  // The wait for the next poll takes up to 5 s of it.
  const leadMs = 12_000;
  metadata.preempt({ leadMs });
  return leadMs;
}

/** Items that the process with this pid has begun. */
function journalOf(cluster: Cluster, pid: number): Execution[] {
  return readJournal(cluster.file("journal")).filter((execution) => execution.pid === pid);
}
