// Real processes over a real Postgres that crashes under them and is back at once. A coordinator that ends over it is started again, as
// systemd does.
import { expect } from "chai";
import { sleep, systemClock } from "../../src/base/clock.ts";
import type { RunStatus } from "../../src/client/run-status.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster, Settings } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { pace } from "../support/pace.ts";
import { query } from "../support/postgres-database.ts";
import { PostgresServer } from "../support/postgres-server.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";
import { readJournal, runUntil } from "../support/run-observer.ts";

const ITEMS = 300;
const CRASHES = 3;
const LOOK_MS = 50;

interface CrashCase {
  readonly loss: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly members: Settings;
  /** Ends the server. */
  readonly crash: (server: PostgresServer, coordinator: RolloutProcess) => Promise<void>;
  /** How often the coordinator has to be started again, from and to. */
  readonly starts: readonly [number, number];
}

const CASES: readonly CrashCase[] = [
  {
    loss: "without what was not yet on the disk",
    settings: { wal_writer_delay: "10000" },
    // The one that is started in its place waits for it.
    members: { "coordinator.failover_threshold": "5s" },
    crash: (server) => server.halt("SIGQUIT"),
    // A loss ends it, but a crash right behind a commit that was waited for loses nothing.
    starts: [0, CRASHES],
  },
  {
    loss: "without a loss",
    settings: { wal_writer_delay: "1" },
    // However long a start of the server takes, the leader is not to blame.
    members: { "coordinator.failover_threshold": "1m" },
    // Stopped, the coordinator has heard of nothing that is not on the disk.
    crash: async (server, coordinator) => {
      coordinator.send("SIGSTOP");
      await query(server.url, "CHECKPOINT");
      await server.halt("SIGQUIT");
    },
    starts: [0, 0],
  },
];

describe("a run on a Postgres that crashes under it", () => {
  const it = concurrentTests(2);

  for (const { loss, settings, members: own, crash, starts: expected } of CASES)
    it(`and is back ${loss} has one result for each item at its end`, async () => {
      const server = await PostgresServer.start({ settings });
      const members = {
        ...{ "storage.path": undefined, "storage.url": server.url },
        ...{ "worker.slots": 4, "mock.sleep": `${60 * pace()}ms`, "mock.journal": "./journal" },
        ...own,
      };
      try {
        await withCluster(members, async (cluster) => {
          await cluster.startCoordinator();
          await cluster.startWorkers(2);
          const items = Array.from({ length: ITEMS }, (_, at) => ({ n: at }));
          await cluster.submit(items, "--seal");
          const starts = await keptLed(cluster, async () => {
            for (let crashes = 0, doneBefore = 0; crashes < CRASHES; crashes++) {
              const isUnderWay = ({ running, done }: RunStatus): boolean => running > 0 && done > doneBefore;
              const found = await runUntil(cluster, (run) => run.state === "complete" || isUnderWay(run));
              // While nobody led, workers may have executed all that was left.
              if (found.state === "complete") break;
              doneBefore = found.done;
              await crash(server, cluster.coordinator);
              await server.start(settings);
              cluster.coordinator.send("SIGCONT");
            }
            const { done, failed } = await runUntil(cluster, ({ state }) => state === "complete");
            expect({ done, failed }).to.deep.equal({ done: ITEMS, failed: 0 });
          });
          expect(starts).to.be.within(...expected);
          const { stdout } = await cluster.run("results");
          expect(new Set(stdout.trimEnd().split("\n")).size).to.equal(ITEMS);
          const executed = readJournal(cluster.file("journal")).map(({ item }) => item);
          expect(new Set(executed).size).to.equal(ITEMS);
        });
      } finally {
        await server.close();
      }
    });
});

/** Starts the coordinator whenever it has ended, while `use` goes on; gives how often that was. */
async function keptLed(cluster: Cluster, use: () => Promise<void>): Promise<number> {
  let starts = 0;
  const over = new AbortController();
  const watching = (async () => {
    while (!over.signal.aborted) {
      if (!cluster.coordinator.isRunning) {
        starts++;
        cluster.launchCoordinator();
      }
      await sleep(systemClock, LOOK_MS, over.signal);
    }
  })();
  try {
    await use();
  } finally {
    over.abort();
    await watching;
  }
  return starts;
}
