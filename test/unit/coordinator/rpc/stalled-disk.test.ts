// A disk that takes longer than workers wait for an answer, over a real listener with mutual TLS: nobody is fenced while the leader
// lives, and everybody when it does not lead any more.
import { expect } from "chai";
import { sleep, systemClock } from "../../../../src/base/clock.ts";
import { StorageLease } from "../../../../src/coordinator/lead/lease.ts";
import { CommitGate } from "../../../support/commit-gate.ts";
import { useClosers } from "../../../support/closers.ts";
import { eventually } from "../../../support/eventually.ts";
import { pace } from "../../../support/pace.ts";
import { newTestCluster, startListeningCoordinator } from "../../../support/test-coordinator.ts";
import type { StartedWorker } from "../../../support/test-worker.ts";
import { startWorker } from "../../../support/test-worker.ts";

/** On a quiet machine. */
const SELF_FENCE_MS = 500;
/** A leader has no more than so many on their way at once. */
const COMMITS_MAX = 4;

describe("a disk that stalls", () => {
  const closeLater = useClosers();

  const isFenced = ({ log }: StartedWorker): boolean =>
    log.lines.some(({ message }) => message.startsWith("self-fenced"));

  it("fences no worker whose leader lives, and every worker of one that was followed", async () => {
    const cluster = await newTestCluster();
    const selfFenceTimeoutMs = SELF_FENCE_MS * pace();
    const disk = new CommitGate("open");
    const store = disk.over(cluster.store);
    // There is room for all beats: it is not for want of it that nothing is answered.
    const coordinator = await startListeningCoordinator({ ...cluster, store }, { inboxMax: 10_000 });
    closeLater(() => coordinator.stop());
    closeLater(() => disk.open());
    const { address } = coordinator.server;
    const worker = await startWorker(cluster, { address, selfFenceTimeoutMs });
    closeLater(() => worker.worker.stop());
    const isReady = (): boolean =>
      coordinator.events.events.some(
        ({ topic, payload }) =>
          topic === "worker_heartbeat" && "state" in payload && payload.state === "Ready",
      );
    await eventually("it is ready", isReady);

    disk.shut();
    // Turns behind this commit wait for it, with something to write or without: soon as many as may be on their way.
    await eventually("a commit waits for the disk", () => disk.waiting > 0);
    await sleep(systemClock, 3 * selfFenceTimeoutMs);
    expect(isFenced(worker)).to.equal(false);
    expect(disk.waiting).to.be.within(1, COMMITS_MAX);

    await new StorageLease(cluster.store, "another coordinator").claim();
    await eventually("it fences itself", () => isFenced(worker));
  });
});
