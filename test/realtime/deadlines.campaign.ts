// The default deadlines of the protocol, on real processes in real time: `npm run test:realtime`, two minutes on a quiet machine. Tests
// in `make test` shorten these times, or lengthen them on a busy machine; nothing is changed here, so a machine that is much too busy
// fails this campaign.
import { expect } from "chai";
import { systemClock } from "../../src/base/clock.ts";
import type { Cluster, Settings, WorkerProcess } from "../support/cluster.ts";
import { withCluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { AwsMetadataServer } from "../support/metadata-server.ts";
import { newWorkerId } from "../support/certificates.ts";
import { readJournal, runUntil } from "../support/run-observer.ts";

/** Unset: the program's own. */
const DEFAULTS: Settings = {
  "liveness.heartbeat_interval": undefined,
  "liveness.clock_skew_budget": undefined,
  "liveness.worker_self_fence_timeout": undefined,
  "liveness.coordinator_failure_timeout": undefined,
  "mock.journal": "./journal",
};
const HEARTBEAT_MS = 500;
const SKEW_MS = 250;
const FAILURE_MS = 5_000;
/** A missed beat is noticed within two intervals, a dead worker within six seconds. */
const NOTICED_MS = 2 * HEARTBEAT_MS;
const FAILED_MS = 6_000;
const AWS_TARGET_MS = 60_000;
const AWS_LEAD_MS = 120_000;
/** Ending what is abandoned, and results that wait for their acknowledgement. */
const AFTER_DEADLINE_MS = 6_000;

describe("in real time", () => {
  const it = concurrentTests(4);

  for (const [how, signal] of [
    ["is killed", "SIGKILL"],
    ["is stopped", "SIGSTOP"],
  ] as const)
    it(`a worker that ${how} is suspected within ${NOTICED_MS} ms, and failed within ${FAILED_MS} ms and no sooner than ${FAILURE_MS} ms after its beat was due`, () =>
      withCluster(DEFAULTS, async (cluster) => {
        const coordinator = await cluster.startCoordinator();
        const worker = await busyWorker(cluster, "1h");
        const worker_id = await worker.id();
        process.kill(worker.pid, signal);
        const goneMs = systemClock.wallMs();
        const failed = await coordinator.event("worker_failed", { worker_id });
        const suspected = coordinator.seen("worker_suspected", { worker_id }).at(-1);
        expect(Date.parse(suspected?.ts ?? "") - goneMs, "suspected").to.be.below(NOTICED_MS);
        expect(suspected?.late_ms).to.be.above(SKEW_MS);
        expect(Date.parse(failed.ts) - goneMs, "failed").to.be.below(FAILED_MS);
        expect(failed.late_ms).to.be.above(FAILURE_MS);
        // The event is written when its turn is on the disk, a moment after the coordinator has judged.
        expect(Date.parse(failed.ts) - (failed.due_at_ms + failed.late_ms), "wall time").to.be.within(
          -2,
          500,
        );
        await cluster.startWorker({ workerId: newWorkerId(), env: { ROLLOUT_MOCK_SLEEP: "10ms" } });
        await runUntil(cluster, ({ done }) => done === 1);
      }));

  it(`an item of 45 s ends on a machine that AWS takes away, and its worker is gone within ${AWS_TARGET_MS} ms`, () =>
    preempted("45s", async (cluster, worker) => {
      const { took_ms, unacknowledged_results } = await worker.event("drain_completed");
      expect({ ...(await worker.ended), unacknowledged_results }).to.deep.equal({
        code: 0,
        signal: null,
        unacknowledged_results: 0,
      });
      expect(took_ms).to.be.within(20_000, AWS_TARGET_MS);
      await runUntil(cluster, ({ done }) => done === 1);
      expect(readJournal(cluster.file("journal")).map(({ attempt }) => attempt)).to.deep.equal([1]);
    }));

  it(`an item of an hour is abandoned after ${AWS_TARGET_MS} ms, uncharged, and its worker is gone before AWS takes the machine`, () =>
    preempted("1h", async (cluster, worker) => {
      const { took_ms } = await worker.event("drain_completed");
      expect(await worker.ended).to.deep.equal({ code: 0, signal: null });
      expect(took_ms).to.be.within(AWS_TARGET_MS - 6_000, AWS_TARGET_MS + AFTER_DEADLINE_MS);
      expect(took_ms).to.be.below(AWS_LEAD_MS);
      await cluster.startWorker({ workerId: newWorkerId(), env: { ROLLOUT_MOCK_SLEEP: "10ms" } });
      await runUntil(cluster, ({ done, failed }) => done === 1 && failed === 0);
      expect(cluster.coordinator.seen("worker_failed")).to.deep.equal([]);
    }));
});

/** A worker that executes one item of so long. */
async function busyWorker(
  cluster: Cluster,
  sleep: string,
  env: Readonly<Record<string, string>> = {},
): Promise<WorkerProcess> {
  await cluster.submit([1]);
  const worker = await cluster.startWorker({ env: { ...env, ROLLOUT_MOCK_SLEEP: sleep } });
  await cluster.coordinator.event("worker_heartbeat", { worker_id: await worker.id(), load: 1 });
  return worker;
}

/** The machine of a worker that executes one item of so long is taken away, by AWS's own times. */
async function preempted(
  sleep: string,
  use: (cluster: Cluster, worker: WorkerProcess) => Promise<void>,
): Promise<void> {
  await withCluster(DEFAULTS, async (cluster) => {
    await cluster.startCoordinator();
    const metadata = await AwsMetadataServer.start();
    try {
      const worker = await busyWorker(cluster, sleep, {
        ROLLOUT_WORKER_PREEMPTION: "aws",
        ROLLOUT_WORKER_METADATA_ADDR: `127.0.0.1:${metadata.port}`,
      });
      metadata.preempt();
      await use(cluster, worker);
    } finally {
      await metadata.close();
    }
  });
}
