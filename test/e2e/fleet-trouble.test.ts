// Trouble that comes to everybody at once is nobody's fault: the whole fleet stands still, the coordinator does, or all workers
// come back in the same moment. Budgets are as small as they can be, so that a single charge would show.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { sleep, systemClock } from "../../src/base/clock.ts";
import type { RunStatus } from "../../src/client/run-status.ts";
import type { Cluster, Settings, WorkerProcess } from "../support/cluster.ts";
import { QUICK, withCluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { pace } from "../support/pace.ts";
import { environmentFor } from "../support/rollout-process.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";
import { readJournal, readResults, runUntil } from "../support/run-observer.ts";

const FLEET = 500;
const FLEET_PROGRAM = fileURLToPath(new URL("./fleet-program.ts", import.meta.url));

/** One loss that counts, or one failure, and the item has failed for good. */
const UNFORGIVING: Settings = { "run.max_lost": 1, "run.max_attempts": 1 };
/** Items that take as much longer as the deadlines of their cluster do: by the machine as it is when the test begins. */
const working = (): Settings => ({
  ...QUICK,
  ...UNFORGIVING,
  "worker.slots": 2,
  "mock.sleep": `${300 * pace()}ms`,
  "mock.journal": "./journal",
});

/** Four failure timeouts of this cluster's. */
function stillMs(cluster: Cluster): number {
  return 4 * cluster.durationMs("liveness.coordinator_failure_timeout");
}

/** A main thread that does not come back for so long, at SIGUSR2; it costs no processor what the other tests need. */
function stuckFor(durationMs: number): string {
  return `process.on("SIGUSR2", () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${durationMs}));\n`;
}

describe("trouble of a whole fleet", () => {
  const it = concurrentTests(2);

  it("all workers stand still for longer than the failure timeout: nothing is charged, each item has one result", () =>
    withCluster(working(), async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      const fleet = await cluster.startWorkers(3);
      await submitAndSee(cluster, 60, ({ done, running }) => done > 0 && running > 0);
      for (const worker of fleet) worker.send("SIGSTOP");
      for (const worker of fleet) await coordinator.event("worker_failed", { worker_id: await worker.id() });
      for (const worker of fleet) worker.send("SIGCONT");
      await expectCompletion(cluster, 60, fleet);
      const journal = readJournal(cluster.file("journal"));
      expect(new Set(journal.map(({ item }) => item)).size).to.equal(60);
    }));

  const stops: Readonly<Record<string, (coordinator: RolloutProcess, forMs: number) => Promise<void>>> = {
    "is stopped": async (coordinator, forMs) => {
      coordinator.send("SIGSTOP");
      await sleep(systemClock, forMs);
      coordinator.send("SIGCONT");
    },
    "has its loop stuck": async (coordinator, forMs) => {
      coordinator.send("SIGUSR2");
      await sleep(systemClock, forMs);
    },
  };
  for (const [what, stop] of Object.entries(stops))
    it(`the coordinator ${what} for four failure timeouts: it fails nobody, and nothing runs twice`, () =>
      withCluster(working(), async (cluster) => {
        const forMs = stillMs(cluster);
        writeFileSync(cluster.file("stuck.mjs"), stuckFor(forMs));
        const env = { NODE_OPTIONS: `--import ${cluster.file("stuck.mjs")}` };
        const coordinator = await cluster.startCoordinator({ env });
        const fleet = await cluster.startWorkers(3);
        await submitAndSee(cluster, 60, ({ done, running }) => done > 0 && running > 0);
        await stop(coordinator, forMs);
        await expectCompletion(cluster, 60, fleet);
        expect(coordinator.seen("worker_failed")).to.deep.equal([]);
        expect(readJournal(cluster.file("journal"))).to.have.length(60);
      }));

  it(`${FLEET} workers come back at once to a coordinator that was killed: it fails nobody, and nothing runs twice`, () =>
    withCluster({ ...UNFORGIVING, ...OF_MANY }, async (cluster) => {
      const first = await cluster.startCoordinator();
      const fleet = new FleetProcess(cluster, 1_000 * cluster.pace);
      try {
        await fleet.ready;
        await registered(cluster, FLEET);
        // Two rounds and more, so that the middle lasts long enough to be seen.
        const items = 2 * FLEET + 200;
        await submitAndSee(cluster, items, ({ running, done }) => running >= FLEET && done > 0);
        await first.kill();
        const next = await cluster.startCoordinator();
        const { failed } = await runUntil(cluster, ({ done }) => done === items);
        expect(failed).to.equal(0);
        expect(next.seen("worker_failed")).to.deep.equal([]);
        expect(next.seen("worker_registered")).to.deep.equal([]);
        await next.kill();
        expect(new Set(await readResults(cluster.file("data/rollout.db"))).size).to.equal(items);
        expect(fleet.fatal).to.deep.equal([]);
        expect([fleet.executed.length, new Set(fleet.executed).size]).to.deep.equal([items, items]);
      } finally {
        fleet.end();
      }
    }));
});

/**
 * Five hundred handshakes are some seconds of processor time on either side, and nobody knows how many of them others leave. Beats in
 * between are rare: those of a fleet at work cost more than its coming back, and the longer that takes, the more.
 */
const OF_MANY: Settings = {
  "liveness.heartbeat_interval": "5s",
  "liveness.clock_skew_budget": "1900ms",
  "liveness.worker_self_fence_timeout": "35s",
  "liveness.coordinator_failure_timeout": "45s",
  "events.hide": ["worker_heartbeat"],
};

class FleetProcess {
  readonly ready: Promise<void>;
  readonly executed: string[] = [];
  readonly fatal: string[] = [];
  readonly #child: ChildProcess;

  constructor(cluster: Cluster, itemMs: number) {
    const { address, runId } = cluster;
    const times = [
      cluster.durationMs("liveness.heartbeat_interval"),
      cluster.durationMs("liveness.worker_self_fence_timeout"),
      cluster.durationMs("liveness.coordinator_failure_timeout"),
    ];
    const args = [address, runId, cluster.file("data/tls"), ...[FLEET, itemMs, ...times].map(String)];
    this.#child = spawn(process.execPath, [FLEET_PROGRAM, ...args], {
      env: environmentFor(),
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.ready = new Promise((resolve, reject) => {
      this.#child.once("exit", (code) => reject(new Error(`the fleet ended with ${String(code)}`)));
      createInterface({ input: this.#child.stdout ?? process.stdin }).on("line", (line) => {
        const said = JSON.parse(line) as { ready?: number; executed?: string; fatal?: string };
        if (said.ready !== undefined) resolve();
        if (said.executed !== undefined) this.executed.push(said.executed);
        if (said.fatal !== undefined) this.fatal.push(said.fatal);
      });
    });
    this.ready.catch(() => undefined);
  }

  end(): void {
    this.#child.kill("SIGKILL");
  }
}

async function registered({ coordinator }: Cluster, count: number): Promise<void> {
  await coordinator.until(`${count} workers`, () =>
    coordinator.seen("worker_registered").length === count ? true : undefined,
  );
}

/** Looks from before the submission, which may take as long as the work. */
async function submitAndSee(
  cluster: Cluster,
  count: number,
  wanted: (status: RunStatus) => boolean,
): Promise<void> {
  const values = Array.from({ length: count }, (_, at) => ({ n: at }));
  const [submitted] = await Promise.all([cluster.submit(values, "--seal"), runUntil(cluster, wanted)]);
  expect(submitted).to.include({ added: count });
}

async function expectCompletion(
  cluster: Cluster,
  items: number,
  fleet: readonly WorkerProcess[],
): Promise<void> {
  const { done, failed } = await runUntil(cluster, ({ state }) => state === "complete");
  expect({ done, failed }).to.deep.equal({ done: items, failed: 0 });
  for (const worker of fleet) expect(worker.isRunning).to.equal(true);
  await cluster.coordinator.stop();
  const results = await readResults(cluster.file("data/rollout.db"));
  expect([results.length, new Set(results).size]).to.deep.equal([items, items]);
}
