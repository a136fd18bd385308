import { createInterface } from "node:readline";
import { expect } from "chai";
import { sleep, systemClock } from "../../src/base/clock.ts";
import { EVENTS_PER_BEAT, floodWithBeats } from "./beat-flood.ts";
import { QUICK, withCluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { makePipe } from "./pipe.ts";

const MIB = 2 ** 20;
const UNREAD_MS = 30_000;

/** Heartbeats may be late by a second before they are remarked on: what is measured here is something else. */
const PATIENT = {
  "liveness.heartbeat_interval": "500ms",
  "liveness.clock_skew_budget": "900ms",
  "liveness.worker_self_fence_timeout": "8s",
  "liveness.coordinator_failure_timeout": "10s",
};

describe("the event stream of a coordinator", () => {
  const it = concurrentTests(2);

  it("may wait for a reader that does not come for thirty seconds: beats go on, memory is bounded, what is lost is counted", async () => {
    // The events come to 58 MiB, and the process needs 26 for itself: it would die of 64 if it kept them.
    const [beats, eventMib] = [3_000, 58];
    const env = { NODE_OPTIONS: "--max-old-space-size=64 --max-semi-space-size=4" };
    await withCluster({ ...PATIENT, "events.buffer": "64KiB" }, async (cluster) => {
      await cluster.startCoordinator();
      await cluster.coordinator.kill();
      const pipe = makePipe(cluster.file("events"));
      try {
        const coordinator = cluster.launchCoordinator({
          args: ["--log-level", "warn"],
          stdout: pipe.writeEnd,
          env,
        });
        pipe.given();
        const unreadSinceMs = systemClock.monotonicMs();
        const worker = cluster.launchWorker();
        await worker.logLine({ message: "a coordinator knows this worker" });
        const { worker_id } = await worker.identity();

        const warnings = worker.log.filter(({ level }) => level === "warn").length;
        await floodWithBeats(cluster, beats);
        // The reader stays away for its whole time, while the worker beats at its own pace.
        await sleep(systemClock, UNREAD_MS - (systemClock.monotonicMs() - unreadSinceMs));
        expect(coordinator.residentBytes / MIB).to.be.lessThan(256);
        expect(await cluster.listed(worker_id)).to.deep.include({ state: "ready", liveness: "alive" });
        expect(worker.log.filter(({ level }) => level === "warn")).to.have.length(warnings);

        const lines = createInterface({ input: pipe.read() });
        let [read, readBytes, dropped] = [0, 0, 0];
        for await (const line of lines) {
          // The first whole line of the worker after the gap: the stream goes on as if nothing had been.
          const event = JSON.parse(line) as { topic: string; worker_id?: string; count?: number };
          read++;
          readBytes += line.length;
          dropped += event.topic === "events_dropped" ? (event.count ?? 0) : 0;
          if (dropped > beats && event.worker_id === worker_id) break;
        }
        expect(read + dropped).to.be.at.least(beats * EVENTS_PER_BEAT);
        expect(readBytes / MIB).to.be.lessThan(eventMib / 10);
        expect(await coordinator.stop()).to.deep.equal({ code: 0, signal: null });
      } finally {
        pipe.closeReadEnd();
      }
    });
  });

  it("may lose its reader: the coordinator says so once and goes on without", async () => {
    await withCluster({}, async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      const first = await cluster.startWorker();
      coordinator.closeOutput();
      await coordinator.logLine({ message: "nobody reads the events any more; going on without them" });
      const second = cluster.launchWorker();
      await second.logLine({ message: "a coordinator knows this worker" });
      const ids = [await first.id(), await second.id()];
      const listed = await cluster.workers();
      expect(listed.map(({ worker_id }) => worker_id)).to.have.members(ids);
      expect(listed.map(({ liveness }) => liveness)).to.deep.equal(["alive", "alive"]);
      expect(coordinator.log.filter(({ level }) => level === "warn")).to.have.length(1);
      expect(await coordinator.stop()).to.deep.equal({ code: 0, signal: null });
    });
  });

  it("leaves out what `events.hide` names, and nothing else", async () => {
    await withCluster({ ...QUICK, "events.hide": ["worker_heartbeat"] }, async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      const worker = cluster.launchWorker();
      const { worker_id } = await worker.identity();
      await coordinator.event("worker_registered", { worker_id });
      await worker.kill();
      await coordinator.event("worker_failed", { worker_id });
      expect(coordinator.seen("worker_heartbeat")).to.deep.equal([]);
    });
  });
});
