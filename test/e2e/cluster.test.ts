import { readFile } from "node:fs/promises";
import { expect } from "chai";
import { parseUlid } from "../../src/base/ids.ts";
import type { WorkerId } from "../../src/base/ids.ts";
import { systemClock } from "../../src/base/clock.ts";
import { beatRecord, workerRecord } from "../../src/coordinator/workers/worker-record.ts";
import { decodeRecord } from "../../src/storage/codec.ts";
import { heartbeatKey, workerKey } from "../../src/storage/keys.ts";
import { openLevelStore } from "../../src/storage/level/level-store.ts";
import { newWorkerId } from "../support/certificates.ts";
import { QUICK, withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { askMonitor } from "./monitor.ts";

function idOf(text: string): WorkerId {
  const id = parseUlid<WorkerId>(text);
  if (id === undefined) throw new Error(`${text} is no id`);
  return id;
}

/** The ledger's rows under these keys, once nobody holds it. */
async function readLedger(cluster: Cluster, workerId: WorkerId) {
  const path = cluster.file("data/rollout.db");
  const store = await openLevelStore({ path, holderName: "a test", clock: systemClock });
  try {
    const bytesOf = async (key: string) => (await store.get(key)) ?? new Uint8Array();
    const [row, beat] = [workerKey(workerId), heartbeatKey(workerId)];
    return {
      worker: decodeRecord(workerRecord, row, await bytesOf(row)),
      beat: decodeRecord(beatRecord, beat, await bytesOf(beat)),
    };
  } finally {
    await store.close();
  }
}

describe("a cluster", () => {
  const it = concurrentTests(4);

  it("comes up: three workers from one configuration, each itself, all heard", async () => {
    await withCluster({}, async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      const workers = await cluster.startWorkers(3);
      const ids = await Promise.all(workers.map((worker) => worker.id()));
      expect(new Set(ids).size).to.equal(3);
      expect((await cluster.workers()).map(({ worker_id }) => worker_id)).to.deep.equal(ids.toSorted());
      for (const id of ids) {
        expect(coordinator.seen("worker_registered", { worker_id: id })).to.have.length(1);
        expect(await cluster.listed(id)).to.deep.include({ state: "ready", liveness: "alive" });
        const holder = await readFile(cluster.file(`data/state/workers/${id}.lock`), "utf8");
        expect(JSON.parse(holder)).to.include({ command: "rollout worker run" });
      }
    });
  });

  it("keeps the registry and the latest heartbeat of each worker on disk", async () => {
    await withCluster({}, async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      const worker = await cluster.startWorker();
      const { worker_id, incarnation } = await worker.identity();
      await coordinator.event("worker_heartbeat", { sequence: 5 });
      await coordinator.kill();
      // An event leaves after its heartbeat is on disk, and only the latest is kept.
      const latest = coordinator.seen("worker_heartbeat").at(-1);
      const { worker: row, beat } = await readLedger(cluster, idOf(worker_id));
      expect(row).to.have.nested.property("value.incarnation", incarnation);
      expect(beat).to.have.nested.property("value.incarnation", incarnation);
      expect(beat)
        .to.have.nested.property("value.sequence")
        .that.is.at.least(latest?.sequence ?? Infinity);
    });
  });

  it("notices a worker that is killed with -9: suspected, then failed, once, in one warning; no other is", async () => {
    await withCluster(QUICK, async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      const [victim, ...others] = await cluster.startWorkers(3);
      const id = (await victim?.id()) ?? "";
      await victim?.kill();
      const suspected = await coordinator.event("worker_suspected", { worker_id: id });
      const failed = await coordinator.event("worker_failed", { worker_id: id });
      expect(coordinator.events.indexOf(suspected)).to.be.lessThan(coordinator.events.indexOf(failed));
      const skewMs = cluster.durationMs("liveness.clock_skew_budget");
      expect(suspected.late_ms).to.be.greaterThan(skewMs).and.lessThan(failed.late_ms);
      expect(failed.late_ms).to.be.greaterThan(cluster.durationMs("liveness.coordinator_failure_timeout"));

      // The log comes by a stream of its own.
      await coordinator.logLine({ level: "warn", worker_id: id });
      const warnings = coordinator.log.filter(({ level, worker_id }) => level === "warn" && worker_id === id);
      expect(warnings).to.have.length(1);
      expect(warnings[0]).to.include({ due_at_ms: failed.due_at_ms });

      for (const other of others) {
        const otherId = await other.id();
        await coordinator.nextEvent("worker_heartbeat", { worker_id: otherId });
        expect(coordinator.seen("worker_failed", { worker_id: otherId })).to.deep.equal([]);
        expect(await cluster.listed(otherId)).to.deep.include({ state: "ready", liveness: "alive" });
      }
      expect(await cluster.listed(id)).to.deep.include({ liveness: "failed" });
      expect(coordinator.seen("worker_failed")).to.have.length(1);
    });
  });

  it("takes back a worker that was stopped for longer than the failure timeout, and fails it once only", async () => {
    await withCluster(QUICK, async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      const worker = await cluster.startWorker();
      const { worker_id, incarnation } = await worker.identity();
      worker.send("SIGSTOP");
      await coordinator.event("worker_failed", { worker_id });
      worker.send("SIGCONT");
      await coordinator.event("worker_recovered", { worker_id, incarnation });
      await coordinator.nextEvent("worker_heartbeat", { worker_id, state: "Ready" });

      const suspectedBefore = coordinator.seen("worker_suspected").length;
      worker.send("SIGSTOP");
      await coordinator.until("another suspicion", () =>
        coordinator.seen("worker_suspected").length > suspectedBefore ? true : undefined,
      );
      const timedOut = (): number => coordinator.log.filter(({ event }) => event === "beat.timedOut").length;
      await coordinator.until("another failure", () => (timedOut() === 2 ? true : undefined));
      worker.send("SIGCONT");
      await coordinator.nextEvent("worker_recovered", { worker_id, incarnation });
      expect(coordinator.seen("worker_failed")).to.have.length(1);
      expect(coordinator.seen("worker_registered")).to.have.length(1);
    });
  });

  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    it(`lets a worker go that got ${signal}: it drains, says goodbye, exits 0 and is no failure`, async () => {
      await withCluster(QUICK, async (cluster) => {
        const coordinator = await cluster.startCoordinator();
        const worker = await cluster.startWorker();
        const { worker_id, incarnation } = await worker.identity();
        worker.send(signal);
        expect(await worker.ended).to.deep.equal({ code: 0, signal: null });
        expect(worker.events.map(({ topic }) => topic)).to.deep.equal([
          ...["plugin_loaded", "drain_started", "drain_completed"],
        ]);
        await coordinator.event("worker_heartbeat", { worker_id, state: "Draining" });
        await coordinator.event("worker_deregistered", { worker_id, incarnation });
        expect(await cluster.listed(worker_id)).to.deep.include({ state: "gone" });

        // The next leader does not wait for it either.
        await coordinator.stop();
        const next = await cluster.startCoordinator();
        const witness = await cluster.startWorker({ workerId: newWorkerId() });
        await witness.kill();
        await next.event("worker_failed", { worker_id: await witness.id() });
        expect(next.seen("worker_suspected", { worker_id })).to.deep.equal([]);
      });
    });
  }

  it("ends a worker at once at the second signal, while it waits for somebody to hear its goodbye", async () => {
    await withCluster({}, async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      const worker = await cluster.startWorker({ args: ["--monitor-addr", "127.0.0.1:0"] });
      const worker_id = await worker.id();
      const { body } = await askMonitor(worker, "/readyz");
      expect(body).to.include({ ready: true, worker_id });
      coordinator.send("SIGSTOP");
      worker.send("SIGTERM");
      await worker.event("drain_started");
      const { status, body: draining } = await askMonitor(worker, "/readyz");
      expect([status, draining["ready"]]).to.deep.equal([503, false]);
      // Without any work there is little between the two.
      expect(draining["reason"]).to.be.oneOf(["it drains", "it has left"]);
      worker.send("SIGTERM");
      expect(await worker.ended).to.deep.equal({ code: 4, signal: null });
      expect(worker.seen("drain_completed")).to.deep.equal([]);
      expect(worker.stderr.at(-1)).to.equal("error: interrupted (run the same command to go on)");
    });
  });
});
