// A disk that takes longer than workers wait for an answer, under a real database: its syncs stall, and nothing else does.
import { writeFileSync } from "node:fs";
import { expect } from "chai";
import { systemClock } from "../../src/base/clock.ts";
import { withCluster } from "../support/cluster.ts";
import { eventually } from "../support/eventually.ts";
import { withStallingCalls } from "../support/failing-system-calls.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";

const ITEMS = 2_000;
/** The shorter, the shorter the stall; the longer, the surer that the worker is scheduled in time. */
const FENCED_SOON = {
  "liveness.worker_self_fence_timeout": "2s",
  "liveness.coordinator_failure_timeout": "2500ms",
};
/** The database syncs so often before it stalls: more than the start of a coordinator takes, less than batches of 128 results do. */
const SYNCS_BEFORE = 12;

describe("a disk whose syncs stall", () => {
  it("fences no worker: beats are answered although no write reaches the disk", async () => {
    await withCluster({ ...FENCED_SOON, "worker.slots": 4, "mock.sleep": "5ms" }, async (cluster) => {
      const selfFenceMs = cluster.durationMs("liveness.worker_self_fence_timeout");
      const which = `${SYNCS_BEFORE}..${SYNCS_BEFORE}`;
      const wrapper = withStallingCalls({ call: "fdatasync", stallMs: 2.5 * selfFenceMs, which });
      const coordinator = await cluster.startCoordinator({ wrapper });
      const worker = await cluster.startWorker();
      const lines = Array.from({ length: ITEMS }, (_, at) => `${JSON.stringify({ n: at })}\n`);
      writeFileSync(cluster.file("items.jsonl"), lines.join(""));
      cluster.launch(["submit", "items.jsonl"]);

      await silentFor(coordinator, 2 * selfFenceMs);
      expect(coordinator.seen("store_stalled").length, "it is said").to.be.greaterThan(0);
      const { length } = coordinator.seen("worker_heartbeat");
      await eventually("it goes on", () => coordinator.seen("worker_heartbeat").length > length);
      await coordinator.event("store_answering");
      expect(worker.stderr.filter((line) => line.includes("self-fenced"))).to.deep.equal([]);
    });
  });
});

/** Events of beats leave when what they tell of is on the disk. */
async function silentFor(coordinator: RolloutProcess, forMs: number): Promise<void> {
  let [seen, sinceMs] = [0, systemClock.monotonicMs()];
  await eventually("a stall", () => {
    const nowMs = systemClock.monotonicMs();
    const { length } = coordinator.seen("worker_heartbeat");
    if (length !== seen) [seen, sinceMs] = [length, nowMs];
    return nowMs - sinceMs > forMs;
  });
}
