// Work that is with nobody though its worker is heard: the answer to a call was lost, or a new process of the worker beats and has
// not asked. A real coordinator, the example of a worker that makes calls as a process, and a worker that ends the item.
import { expect } from "chai";
import { systemClock } from "../../src/base/clock.ts";
import { newUlid } from "../../src/base/ids.ts";
import type { IncarnationId, WorkerId } from "../../src/base/ids.ts";
import { systemRandom } from "../../src/base/random.ts";
import { doneRecord } from "../../src/coordinator/ledger/records.ts";
import { DONE_PREFIX } from "../../src/storage/keys.ts";
import { newWorkerId } from "../support/certificates.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster, Settings } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { authorityIn, writeCredentials } from "../support/real-authority.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";
import { readRows, runUntil } from "../support/run-observer.ts";

/** The example beats twice a second. The failure timeout is what is waited for. */
const SETTINGS: Settings = {
  "liveness.heartbeat_interval": "500ms",
  "liveness.clock_skew_budget": "500ms",
  "liveness.worker_self_fence_timeout": "4s",
  "liveness.coordinator_failure_timeout": "5s",
};
const CALLER = new URL("./calling-worker-program.ts", import.meta.url).pathname;

type Trouble = "loses-an-answer" | "executes" | "only-beats";

/** A process of a worker that makes calls. Each is a later one than those before it. */
async function startCaller(cluster: Cluster, workerId: WorkerId, trouble: Trouble): Promise<RolloutProcess> {
  const authority = await authorityIn(cluster.file("data/tls"));
  const identity = { runId: cluster.runId, role: "worker", id: workerId } as const;
  await writeCredentials(cluster.file(workerId), await authority.issue({ identity }));
  const incarnation = newUlid<IncarnationId>(systemClock, systemRandom);
  const args = [cluster.address, cluster.file(workerId), workerId, incarnation, trouble];
  return cluster.launch(args, { program: CALLER });
}

async function says(caller: RolloutProcess, line: string): Promise<void> {
  await caller.until(`the line ${line}`, () => caller.stdout.find((said) => said === line));
}

/** By another worker, with the worker that had it heard all the time. */
async function expectEndedElsewhere(cluster: Cluster, workerId: WorkerId): Promise<void> {
  const { coordinator } = cluster;
  const other = await cluster.startWorker();
  await runUntil(cluster, ({ done }) => done === 1);
  await coordinator.nextEvent("worker_heartbeat", { worker_id: workerId, state: "Ready" });
  expect(coordinator.seen("worker_failed")).to.deep.equal([]);
  const worker = await other.id();
  await other.stop();
  await coordinator.stop();
  const rows = await readRows(cluster.file("data/rollout.db"), DONE_PREFIX, doneRecord);
  expect(rows.map((row) => ({ worker: row.worker, attempt: row.attempt }))).to.deep.equal([
    { worker, attempt: 2 },
  ]);
}

describe("a worker that is heard and does not know of its item", () => {
  const it = concurrentTests(2);

  it("because the answer to its call was lost, does not hold that item up", () =>
    withCluster(SETTINGS, async (cluster) => {
      await cluster.startCoordinator();
      const workerId = newWorkerId();
      const caller = await startCaller(cluster, workerId, "loses-an-answer");
      await cluster.submit(["it"], "--seal");
      await says(caller, "has lost it");
      await expectEndedElsewhere(cluster, workerId);
    }));

  it("because an older process of it had the item, does not hold that item up", () =>
    withCluster(SETTINGS, async (cluster) => {
      await cluster.startCoordinator();
      const workerId = newWorkerId();
      const first = await startCaller(cluster, workerId, "executes");
      await cluster.submit(["it"], "--seal");
      await says(first, "executes");
      // The older one goes on until the next is heard, so that between the two nobody is silent.
      const next = await startCaller(cluster, workerId, "only-beats");
      await says(next, "beats");
      await first.kill();
      await expectEndedElsewhere(cluster, workerId);
    }));
});
