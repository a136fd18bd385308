// A cloud takes a worker's machine away, as its metadata server says on loopback. Executions and their places are read from the
// executions' own journal; the clouds' own times hold, but where a test says that the notice is shorter.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { systemClock } from "../../src/base/clock.ts";
import { parseUlid } from "../../src/base/ids.ts";
import type { WorkerId } from "../../src/base/ids.ts";
import { newWorkerId } from "../support/certificates.ts";
import type { Cluster, WorkerOptions, WorkerProcess } from "../support/cluster.ts";
import { withCluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { eventually } from "../support/eventually.ts";
import { AwsMetadataServer, GcpMetadataServer } from "../support/metadata-server.ts";
import { pace } from "../support/pace.ts";
import type { Execution } from "../support/run-observer.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";
import { readJournal, readResults, runUntil } from "../support/run-observer.ts";

const WITNESS = "spot_drain_completes_within_lead_time";

type Server = AwsMetadataServer | GcpMetadataServer;

interface Cloud {
  readonly name: "aws" | "gcp";
  /** The time that it gives between its notice and the end. */
  readonly leadMs: number;
  /** The longest time for a drain. */
  readonly targetMs: number;
  readonly serve: () => Promise<Server>;
}

const CLOUDS: readonly Cloud[] = [
  { name: "aws", leadMs: 120_000, targetMs: 60_000, serve: () => AwsMetadataServer.start() },
  { name: "gcp", leadMs: 30_000, targetMs: 15_000, serve: () => GcpMetadataServer.start() },
];

const LEARN = `
import { existsSync, readFileSync, writeFileSync } from "node:fs";
let items = 0;
try {
  items = JSON.parse(readFileSync("learned.json", "utf8")).items;
} catch {}
const save = (timeLeftMs) => writeFileSync("learned.json", JSON.stringify({ items, timeLeftMs }));
`;

/** Backends that can save what they have learned: here how many items there were, in all processes. */
const LEARNERS = [
  {
    name: "module",
    file: "learn.mjs",
    manifest: `module = "learn.mjs"`,
    source: `${LEARN}
      export default () => ++items;
      export const saveTrainState = ({ timeLeftMs }) => save(timeLeftMs);`,
  },
  {
    name: "process",
    file: "learn.mjs",
    manifest: `command = [${JSON.stringify(process.execPath)}, "learn.mjs"]`,
    source: `import { createInterface } from "node:readline";${LEARN}
      const say = (message) => process.stdout.write(JSON.stringify(message) + "\\n");
      say({ type: "ready", saves: true });
      createInterface({ input: process.stdin }).on("line", (text) => {
        const line = JSON.parse(text);
        if (line.type === "item") say({ type: "result", id: line.id, output: ++items });
        if (line.type !== "save") return;
        save(line.time_left_ms);
        say({ type: "saved" });
      });`,
  },
] as const;

describe("witnesses", () => {
  const it = concurrentTests(9);

  // It takes longest, so it is the first to begin.
  it(`${WITNESS}: aws, and an item that is preempted as often as it may fail has not failed`, () =>
    withCluster(SETTINGS, async (cluster) => {
      await cluster.startCoordinator();
      await submitAll(cluster, 1);
      const file = cluster.file("journal");
      const journal = (): Execution[] => (existsSync(file) ? readJournal(file) : []);
      for (let preemption = 1; preemption <= MAX_ATTEMPTS; preemption++) {
        const metadata = await AwsMetadataServer.start();
        try {
          const spot = await startSpot(cluster, metadata, "1h");
          // A beat that says so may be that of the process before.
          await eventually("it executes the item", () => journal().length === preemption);
          metadata.preempt({ action: "hibernate" });
          await spot.event("drain_completed");
          expect(await spot.ended).to.deep.equal({ code: 0, signal: null });
        } finally {
          await metadata.close();
        }
      }
      await startElsewhere(cluster);
      await completes(cluster, 1);
      expect(journal().map(({ attempt }) => attempt)).to.deep.equal([1, 2, 3, 4]);
    }));

  for (const cloud of CLOUDS) {
    it(`${WITNESS}: ${cloud.name}`, () =>
      // Longer than the wait for the next poll: it has something in its hands when it learns of it.
      withSpot(cloud, { items: 40, sleep: "6s", isAlone: true }, async (stage) => {
        const { cluster, coordinator, metadata, spot } = stage;
        metadata.preempt();
        const noticedMs = systemClock.monotonicMs();
        const { cause, deadline_ms } = await spot.event("drain_started");
        const begun = journalOf(cluster, spot.pid);
        expect(cause).to.equal(cloud.name);
        expect(deadline_ms).to.be.within(
          cloud.targetMs - 2_000 * Math.max(cluster.pace, pace()),
          cloud.targetMs,
        );
        // Not sooner: it would take what is to be handed back.
        await startElsewhere(cluster);
        const { took_ms } = await spot.event("drain_completed");
        expect(await spot.ended).to.deep.equal({ code: 0, signal: null });
        expect(took_ms).to.be.below(cloud.targetMs);
        expect(systemClock.monotonicMs() - noticedMs).to.be.below(cloud.leadMs);
        expect(journalOf(cluster, spot.pid), "nothing was begun after the notice").to.deep.equal(begun);

        await completes(cluster, 40);
        expect(coordinator.seen("worker_deregistered")).to.have.length(1);
        expect(coordinator.seen("worker_failed")).to.deep.equal([]);
        // It held more than it executed, and what it had begun it could end: nothing had to run again.
        const executions = readJournal(cluster.file("journal"));
        expect(executions.some(({ attempt, pid }) => attempt > 1 && pid !== spot.pid)).to.equal(true);
        expect(new Set(executions.map(({ item }) => item)).size).to.equal(40);
        expect(executions.length).to.equal(40);
      }));

    it(`${WITNESS}: ${cloud.name}, and abandons at the deadline the items that would take longer`, () =>
      withSpot(cloud, { items: 5, sleep: "1h" }, async ({ cluster, coordinator, metadata, spot }) => {
        const leadMs = preemptShortly(metadata);
        await spot.event("drain_started");
        const begun = journalOf(cluster, spot.pid);
        const { took_ms } = await spot.event("drain_completed");
        expect(await spot.ended).to.deep.equal({ code: 0, signal: null });
        expect(took_ms).to.be.below(leadMs);
        expect(journalOf(cluster, spot.pid)).to.deep.equal(begun);

        await completes(cluster, 5);
        expect(coordinator.seen("worker_failed")).to.deep.equal([]);
        const elsewhere = readJournal(cluster.file("journal")).filter(({ pid }) => pid !== spot.pid);
        expect(elsewhere.length, "all of them were executed elsewhere, once").to.equal(5);
        await coordinator.stop();
        expect(await readResults(cluster.file("data/rollout.db"))).to.have.length(5);
      }));

    it(`${WITNESS}: ${cloud.name}, and a machine that vanishes during the drain counts as a lost worker`, () =>
      withSpot(cloud, { items: 20, sleep: "1h" }, async ({ cluster, coordinator, metadata, spot }) => {
        metadata.preempt();
        await spot.event("drain_started");
        await spot.kill();
        const { worker_id } = await spot.identity();
        await coordinator.event("worker_failed", { worker_id });
        await completes(cluster, 20);
        await coordinator.stop();
        expect(new Set(await readResults(cluster.file("data/rollout.db"))).size).to.equal(20);
      }));

    for (const backend of LEARNERS)
      it(`${WITNESS}: ${cloud.name}, and a ${backend.name} saves what it has learned, for as long as the cost of a save allows`, () =>
        withCluster({ "worker.slots": 1, "worker.plugins": ["learn.toml"] }, async (cluster) => {
          const metadata = await cloud.serve();
          try {
            writeFileSync(cluster.file(backend.file), backend.source);
            writeFileSync(
              cluster.file("learn.toml"),
              `name = "learn"\nversion = "1"\nbackend = "${backend.name}"\n[${backend.name}]\n${backend.manifest}\n`,
            );
            await cluster.startCoordinator();
            const first = await startSpot(cluster, metadata, "0ms");
            await learn(cluster, [1, 2, 3]);
            expect(await first.stop()).to.deep.equal({ code: 0, signal: null });
            // Nobody knew how long it takes: half of 15 s.
            expect(saved(cluster)).to.include({ items: 3 });
            expect(saved(cluster).timeLeftMs).to.be.within(1, 7_500);

            // After SIGTERM it starts afresh, with what was saved, and knows what a save has taken.
            const workerId = parseUlid<WorkerId>(await first.id());
            const second = await startSpot(cluster, metadata, "0ms", workerId);
            await learn(cluster, [4]);
            metadata.preempt();
            expect(await second.ended).to.deep.equal({ code: 0, signal: null });
            expect(saved(cluster)).to.include({ items: 4 });
            expect(saved(cluster).timeLeftMs).to.be.within(cloud.targetMs / 2 + 1, cloud.targetMs);

            // While the notice lasts it goes on draining, whether it hears of it again or not.
            metadata.misbehave({ kind: "hang" });
            const third = launchSpot(cluster, metadata, "0ms", workerId);
            const { incarnation } = await third.identity();
            await third.event("drain_started", { cause: cloud.name });
            const draining = { incarnation, state: "Draining" };
            await cluster.coordinator.event("worker_heartbeat", draining);
            await cluster.submit([5]);
            await cluster.coordinator.nextEvent("worker_heartbeat", draining);
            expect(await third.stop()).to.deep.equal({ code: 0, signal: null });
            const beats = cluster.coordinator.seen("worker_heartbeat", { incarnation });
            expect(new Set(beats.map(({ state }) => state))).to.deep.equal(new Set(["Draining", "Gone"]));
            await runUntil(cluster, ({ done }) => done === 4);
            expect(saved(cluster)).to.include({ items: 4 });
          } finally {
            await metadata.close();
          }
        }));
  }
});

interface Learned {
  readonly items: number;
  readonly timeLeftMs: number;
}

function saved(cluster: Cluster): Learned {
  return JSON.parse(readFileSync(cluster.file("learned.json"), "utf8")) as Learned;
}

/** Submits these, and waits until they have been executed. */
async function learn(cluster: Cluster, items: readonly number[]): Promise<void> {
  await cluster.submit(items);
  await runUntil(cluster, ({ done }) => done === items.at(-1));
}

const SLOTS = 3;
const MAX_ATTEMPTS = 3;
const SETTINGS = { "worker.slots": SLOTS, "mock.journal": "./journal" };

type Spot = readonly [cluster: Cluster, metadata: Server, sleep: string, workerId?: WorkerId];

function spotOptions(metadata: Server, sleep: string, workerId: WorkerId | undefined): WorkerOptions {
  return {
    ...(workerId === undefined ? {} : { workerId }),
    env: {
      ROLLOUT_WORKER_PREEMPTION: metadata instanceof AwsMetadataServer ? "aws" : "gcp",
      ROLLOUT_WORKER_METADATA_ADDR: `127.0.0.1:${metadata.port}`,
      ROLLOUT_MOCK_SLEEP: sleep,
    },
  };
}

/** A worker on a machine of this cloud. */
function startSpot(...[cluster, metadata, sleep, workerId]: Spot): Promise<WorkerProcess> {
  return cluster.startWorker(spotOptions(metadata, sleep, workerId));
}

/** One that has only just been started. */
function launchSpot(...[cluster, metadata, sleep, workerId]: Spot): WorkerProcess {
  return cluster.launchWorker(spotOptions(metadata, sleep, workerId));
}

/** One that nobody preempts, and that is done in no time. */
async function startElsewhere(cluster: Cluster): Promise<void> {
  // With the id of one that has left it would go on with that one's drain.
  await cluster.startWorker({ workerId: newWorkerId(), env: { ROLLOUT_MOCK_SLEEP: "10ms" } });
}

interface Stage {
  readonly cluster: Cluster;
  readonly coordinator: RolloutProcess;
  readonly metadata: Server;
  /** All its slots are busy, and there is another worker unless it is to be alone. */
  readonly spot: WorkerProcess;
}

interface SpotWork {
  readonly items: number;
  readonly sleep: string;
  readonly isAlone?: boolean;
}

/** A worker on a machine of this cloud, with work that takes it so long. */
function withSpot(
  cloud: Cloud,
  { items, sleep, isAlone = false }: SpotWork,
  use: (stage: Stage) => Promise<void>,
): Promise<void> {
  return withCluster(SETTINGS, async (cluster) => {
    const metadata = await cloud.serve();
    try {
      const coordinator = await cluster.startCoordinator();
      const spot = await startSpot(cluster, metadata, sleep);
      await submitAll(cluster, items);
      await coordinator.event("worker_heartbeat", { worker_id: await spot.id(), load: 1 });
      if (!isAlone) await startElsewhere(cluster);
      await use({ cluster, coordinator, metadata, spot });
    } finally {
      await metadata.close();
    }
  });
}

/** Submits so many items, and no more will come. */
async function submitAll(cluster: Cluster, count: number): Promise<void> {
  const items = Array.from({ length: count }, (_, at) => at);
  expect(await cluster.submit(items, "--seal")).to.include({ added: count });
}

/** The run completes, with a result for each of its items. */
async function completes(cluster: Cluster, items: number): Promise<void> {
  const { done, failed } = await runUntil(cluster, ({ state }) => state === "complete");
  expect({ done, failed }).to.deep.equal({ done: items, failed: 0 });
}

/** Announces the end with as little notice as the cloud can give; returns the lead in milliseconds. */
function preemptShortly(metadata: Server): number {
  if (metadata instanceof GcpMetadataServer) {
    metadata.preempt();
    return 30_000;
  }
  // The wait for the next poll takes up to 5 s of it.
  const leadMs = 12_000;
  metadata.preempt({ leadMs });
  return leadMs;
}

/** Items that the process with this pid has begun. */
function journalOf(cluster: Cluster, pid: number): Execution[] {
  return readJournal(cluster.file("journal")).filter((execution) => execution.pid === pid);
}
