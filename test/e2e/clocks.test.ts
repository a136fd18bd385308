import { expect } from "chai";
import { systemClock } from "../../src/base/clock.ts";
import { newWorkerId } from "../support/certificates.ts";
import { QUICK, withCluster } from "../support/cluster.ts";
import type { Cluster, WorkerProcess } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { setClock, settableClock, wrongClock } from "./fake-clock.ts";
import { runUntil } from "../support/run-observer.ts";

const HOUR_MS = 3_600_000;
const TOLERANCE_MS = 600_000;
/** So many that some of them wait at any moment of the first two seconds. */
const ITEMS = Array.from({ length: 30 }, (_, at) => at);

/** Its log lines carry its own clock: proof that it is off. */
function clockError(worker: WorkerProcess): number {
  return Date.parse(String(worker.log[0]?.["ts"])) - systemClock.wallMs();
}

/** Heard well past the failure timeout, by a coordinator that never doubted it. */
async function expectTrusted(cluster: Cluster, worker: WorkerProcess): Promise<void> {
  const { incarnation, worker_id } = await worker.identity();
  const first = await cluster.coordinator.event("worker_heartbeat", { incarnation, state: "Ready" });
  const failureTimeoutMs = cluster.durationMs("liveness.coordinator_failure_timeout");
  const beatsOfTheTimeout = Math.ceil(failureTimeoutMs / cluster.durationMs("liveness.heartbeat_interval"));
  const sequence = first.sequence + beatsOfTheTimeout + 5;
  await cluster.coordinator.event("worker_heartbeat", { incarnation, sequence });
  expect(cluster.coordinator.seen("worker_failed")).to.deep.equal([]);
  expect(await cluster.listed(worker_id)).to.deep.include({ state: "ready", liveness: "alive" });
  expect(worker.log.filter(({ level }) => level === "warn")).to.deep.equal([]);
}

describe("wall clocks that disagree", () => {
  const it = concurrentTests(4);

  for (const [offset, offsetMs] of [
    ["+1h", HOUR_MS],
    ["-1h", -HOUR_MS],
  ] as const) {
    it(`a worker whose clock is off by ${offset} joins over TLS and is not failed for it`, async () => {
      await withCluster(QUICK, async (cluster) => {
        await cluster.startCoordinator();
        const worker = await cluster.startWorker({ env: wrongClock(offset) });
        expect(clockError(worker)).to.be.closeTo(offsetMs, TOLERANCE_MS);
        await expectTrusted(cluster, worker);
      });
    });

    it(`a coordinator whose clock is off by ${offset} makes certificates that its workers accept`, async () => {
      await withCluster(QUICK, async (cluster) => {
        await cluster.startCoordinator({ env: wrongClock(offset) });
        await expectTrusted(cluster, await cluster.startWorker());
      });
    });

    it(`a bundle that was issued by a clock off by ${offset} lets workers in`, async () => {
      await withCluster(QUICK, async (cluster) => {
        await cluster.startCoordinator();
        const args = ["ca", "issue", "--out", "wrong-clock.pem"];
        const issued = await cluster.runWith({ env: wrongClock(offset) }, ...args);
        expect(issued).to.include({ code: 0, stderr: "" });
        await expectTrusted(cluster, await cluster.startWorker({ args: ["--enrolment", "wrong-clock.pem"] }));
      });
    });
  }

  it("a coordinator whose clock is set back by an hour lets no item wait for it, and set forward does not pause the run", async () => {
    const settings = { "run.max_attempts": 3, "run.time_limit": "30m", "mock.failure_percent": 100 };
    await withCluster(settings, async (cluster) => {
      const clock = cluster.file("clock");
      setClock(clock, "+0");
      const coordinator = await cluster.startCoordinator({ env: settableClock(clock) });
      await cluster.submit(ITEMS);
      // It is looked for from before the first of them fails.
      await Promise.all([runUntil(cluster, ({ delayed }) => delayed > 0), cluster.startWorker()]);
      setClock(clock, "-1h");
      await runUntil(cluster, ({ failed }) => failed === ITEMS.length);
      setClock(clock, "+2h");
      const { incarnation, sequence } = await coordinator.nextEvent("worker_heartbeat");
      await coordinator.event("worker_heartbeat", { incarnation, sequence: sequence + 12 });
      expect(coordinator.seen("run_paused")).to.deep.equal([]);
    });
  });

  it("a worker whose clock jumps back between two starts is the newer one all the same", async () => {
    await withCluster(QUICK, async (cluster) => {
      await cluster.startCoordinator();
      const workerId = newWorkerId();
      const ahead = await cluster.startWorker({ workerId, env: wrongClock("+1h") });
      await ahead.kill();
      const behind = await cluster.startWorker({ workerId, env: wrongClock("-1h") });
      expect((await behind.identity()).incarnation > (await ahead.identity()).incarnation).to.equal(true);
      await expectTrusted(cluster, behind);
    });
  });
});
