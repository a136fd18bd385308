// How many heartbeats one coordinator accepts, and how many workers it holds. The coordinator is the built program in a
// process of its own: database, events for every beat, mutual TLS, everything on. The fleet is another process on the
// same machine, so the two share its cores, and the figures are those of half a machine.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { assert } from "../src/base/assert.ts";
import { sleep, systemClock } from "../src/base/clock.ts";
import type { Bench, Figure } from "./support/figure.ts";
import { round } from "./support/figure.ts";
import { measureInMemory } from "./support/in-memory-fleet.ts";
import type { LagReport } from "./support/measured-coordinator.ts";
import { MeasuredCoordinator } from "./support/measured-coordinator.ts";

const MEASURE_MS = 10_000;
const SETTLE_MS = 2_000;
const SATURATING_WORKERS = 32;
const REAL_FLEETS = [500, 1_000, 2_000, 3_000] as const;
const IN_MEMORY_WORKERS = 10_000;
const LAG_MAX_MS = 50;

interface Measured {
  readonly beatsPerSecond: number;
  readonly failures: number;
  readonly suspected: number;
  readonly lag: LagReport;
}

export const heartbeat: Bench = {
  name: "heartbeat",
  async run(note) {
    const figures: Figure[] = [];
    const saturated = await measureFleet(SATURATING_WORKERS, 0);
    note(`${SATURATING_WORKERS} sessions without pause: ${JSON.stringify(saturated)}`);
    figures.push({ name: "heartbeats accepted, mTLS", value: round(saturated.beatsPerSecond), unit: "1/s" });
    let held = 0;
    for (const workers of REAL_FLEETS) {
      const fleet = await measureFleet(workers, 500);
      note(`${workers} workers at 500 ms: ${JSON.stringify(fleet)}`);
      figures.push(...describe(`${workers} mTLS workers`, fleet));
      if (fleet.lag.p99_ms < LAG_MAX_MS && fleet.suspected === 0) held = workers;
    }
    figures.push({
      name: `most workers held, mTLS, p99 lag < ${LAG_MAX_MS} ms, none suspected`,
      value: held,
      unit: "workers",
    });
    const inMemory = await measureInMemory(IN_MEMORY_WORKERS, MEASURE_MS);
    note(`${IN_MEMORY_WORKERS} workers in memory: ${JSON.stringify(inMemory)}`);
    figures.push(...describe(`${IN_MEMORY_WORKERS} in-memory workers`, inMemory));
    return figures;
  },
};

function describe(fleet: string, { beatsPerSecond, suspected, lag }: Omit<Measured, "failures">): Figure[] {
  return [
    { name: `${fleet}: heartbeats`, value: round(beatsPerSecond), unit: "1/s" },
    { name: `${fleet}: loop lag p99`, value: round(lag.p99_ms, 1), unit: "ms" },
    {
      name: `${fleet}: CPU of the coordinator`,
      value: round(lag.cpu_ms / (MEASURE_MS / 1_000) / 10),
      unit: "% of a core",
    },
    { name: `${fleet}: resident memory`, value: round(lag.rss_bytes / 2 ** 20), unit: "MiB" },
    { name: `${fleet}: wrongly suspected`, value: suspected, unit: "workers" },
  ];
}

async function measureFleet(workers: number, intervalMs: number): Promise<Measured> {
  const coordinator = await MeasuredCoordinator.start();
  const { address, runId, tlsDir, events } = coordinator;
  const program = join(import.meta.dirname, "support/beating-fleet.ts");
  const fleet = spawn(
    process.execPath,
    [program, address, runId, tlsDir, String(workers), String(intervalMs)],
    {
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  const lines = createInterface({ input: fleet.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<Record<string, number>> => {
    const { value, done } = await lines.next();
    assert(done !== true, "the fleet is alive");
    return JSON.parse(value) as Record<string, number>;
  };
  const count = async (): Promise<{ accepted: number; failures: number; atMs: number }> => {
    fleet.stdin.write("count\n");
    const { accepted = 0, failures = 0, at_ms: atMs = 0 } = await next();
    return { accepted, failures, atMs };
  };
  try {
    await next();
    await sleep(systemClock, SETTLE_MS);
    await coordinator.lag();
    const suspectedBefore = events.get("worker_suspected") ?? 0;
    const before = await count();
    await sleep(systemClock, MEASURE_MS);
    const after = await count();
    const lag = await coordinator.lag();
    return {
      beatsPerSecond: ((after.accepted - before.accepted) / (after.atMs - before.atMs)) * 1_000,
      failures: after.failures - before.failures,
      suspected: (events.get("worker_suspected") ?? 0) - suspectedBefore,
      lag,
    };
  } finally {
    fleet.kill("SIGKILL");
    await coordinator.stop();
  }
}
