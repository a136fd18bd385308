// Real processes that know only the address of a coordinator that follows: a worker, and commands that go on and on. The leader is
// killed, and the next one leads at another address: none of them is started again.
import { expect } from "chai";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { startFollower } from "../support/follower.ts";
import type { Follower } from "../support/follower.ts";
import { restartableAddress } from "../support/listeners.ts";
import { authorityIn } from "../support/real-authority.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";

/** A follower under the cluster's CA, which is the only coordinator that the others are told of. */
async function withFollower(use: (cluster: Cluster, follower: Follower) => Promise<void>): Promise<void> {
  await withCluster({}, async (cluster) => {
    const authority = await authorityIn(cluster.file("data/tls"));
    const follower = await startFollower({
      runId: cluster.runId,
      ca: { issue: (identity) => authority.issue({ identity }) },
    });
    try {
      await cluster.configure({ "worker.coordinator_addr": [follower.address] });
      await use(cluster, follower);
    } finally {
      await follower.close();
    }
  });
}

/** The next coordinator leads somewhere else; the follower is told. */
async function takeOver(cluster: Cluster, follower: Follower): Promise<void> {
  await cluster.configure({ "transport.listen_addr": await restartableAddress() });
  const { address, epoch } = await cluster.launchCoordinator().event("coordinator_leading");
  follower.follow(address, epoch);
}

const printed = (process: RolloutProcess): string[] => process.stdout.filter((line) => line !== "");

async function untilPrinted(process: RolloutProcess, count: number): Promise<void> {
  await process.until(`${count} lines`, () => (printed(process).length >= count ? true : undefined));
}

function namesIn(lines: readonly string[]): string[] {
  return lines.map((line) => (JSON.parse(line) as { id: string }).id).toSorted();
}

describe("workers and commands whose leader changes", () => {
  const it = concurrentTests(2);

  it("go on with the next leader: results and events come once, nobody is started again", async () => {
    await withFollower(async (cluster, follower) => {
      await takeOver(cluster, follower);
      const worker = await cluster.startWorker();
      const { incarnation } = await worker.identity();
      await cluster.submit([{ id: "one" }, { id: "two" }]);
      const results = cluster.launch(["results", "--follow"]);
      const events = cluster.launch(["events", "--follow"]);
      const status = cluster.launch(["status", "--watch", "--json"]);
      await Promise.all([untilPrinted(results, 2), untilPrinted(events, 1), untilPrinted(status, 1)]);

      await cluster.coordinator.kill();
      await takeOver(cluster, follower);
      await cluster.submit([{ id: "three" }], "--seal");
      expect(await results.ended).to.deep.equal({ code: 0, signal: null });
      expect(namesIn(printed(results))).to.deep.equal(["one", "three", "two"]);
      expect(await status.ended).to.deep.equal({ code: 0, signal: null });
      const completed = (): true | undefined =>
        printed(events).some((line) => line.includes('"run_completed"')) || undefined;
      await events.until("the end of the run", completed);
      expect(new Set(printed(events)).size).to.equal(printed(events).length);
      // The worker is the process that it was, and says so to the next leader.
      await cluster.coordinator.event("worker_heartbeat", { incarnation });
      expect([worker.isRunning, events.isRunning]).to.deep.equal([true, true]);
    });
  });

  it("report for each address what it answered, when nobody leads", async () => {
    await withFollower(async (cluster, follower) => {
      await cluster.configure({ "transport.listen_addr": await restartableAddress() });
      const { address, epoch } = await cluster.launchCoordinator().event("coordinator_leading");
      await cluster.coordinator.stop();
      // Nobody is to be expected for a minute.
      follower.follow(address, epoch, 60_000);
      const { code, stderr } = await cluster.run("worker", "list");
      expect(code).to.equal(3);
      expect(stderr).to.equal(
        `error: no coordinator leads: ${follower.address} follows ${address} (epoch ${epoch}); ` +
          `nothing listens at ${address} (if the leader has died, another coordinator takes over within seconds; ` +
          "otherwise start one with `rollout coordinator run`)\n",
      );
    });
  });
});
