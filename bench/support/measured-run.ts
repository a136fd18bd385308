// A whole run of no-op items: submitted, dispatched, executed and recorded, with coordinator and workers as processes of the
// built program over mutual TLS, every result fsynced before it is acknowledged.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { join } from "node:path";
import { sleep, systemClock } from "../../src/base/clock.ts";
import { systemRandom } from "../../src/base/random.ts";
import { readRunStatus, sealRun } from "../../src/client/run-status.ts";
import { submitLines, taskDigestOf } from "../../src/client/submit.ts";
import { silentLogger } from "../../src/observe/log.ts";
import { openClient } from "../../src/transport/client.ts";
import { loadCredentials } from "../../src/transport/tls/credential-files.ts";
import { operatorFiles } from "../../src/transport/tls/host-credentials.ts";
import type { LagReport } from "./measured-coordinator.ts";
import { MeasuredCoordinator } from "./measured-coordinator.ts";

export interface RunMeasured {
  readonly submitPerSecond: number;
  /** From the first result on, while items were waiting. */
  readonly executePerSecond: number;
  /** From the first submission to the last result. */
  readonly endToEndPerSecond: number;
  readonly lag: LagReport;
}

export interface RunShape {
  readonly items: number;
  readonly workers: number;
  readonly slots: number;
  readonly payloadBytes: number;
}

const POLL_MS = 20;

export async function measureRun({ items, workers, slots, payloadBytes }: RunShape): Promise<RunMeasured> {
  const coordinator = await MeasuredCoordinator.start();
  const { runId, address, tlsDir } = coordinator;
  const credentials = await loadCredentials(
    operatorFiles(tlsDir),
    { runId, roles: ["operator"] },
    systemClock,
  );
  const client = openClient({ ...credentials, address, runId, clock: systemClock, log: silentLogger });
  const fleet: ChildProcess[] = [];
  const clock = systemClock;
  try {
    const startedMs = clock.monotonicMs();
    const taskDigest = taskDigestOf({ plugin: "mock", command: [] });
    const lines = payloads(items, payloadBytes);
    await submitLines(client.transport, lines, { taskDigest, priority: 0, clock, random: systemRandom });
    await sealRun(client.transport);
    const submittedMs = clock.monotonicMs();
    for (let at = 0; at < workers; at++) fleet.push(startWorker(coordinator, slots));
    await until(client.transport, ({ done }) => done > 0);
    const firstMs = clock.monotonicMs();
    await coordinator.lag();
    await until(client.transport, ({ done }) => done === items);
    const lastMs = clock.monotonicMs();
    const submitMs = submittedMs - startedMs;
    return {
      submitPerSecond: (items / submitMs) * 1_000,
      executePerSecond: (items / (lastMs - firstMs)) * 1_000,
      endToEndPerSecond: (items / (submitMs + lastMs - firstMs)) * 1_000,
      lag: await coordinator.lag(),
    };
  } finally {
    client.close();
    for (const worker of fleet) worker.kill("SIGKILL");
    await coordinator.stop();
  }
}

function startWorker({ configFile, address }: MeasuredCoordinator, slots: number): ChildProcess {
  const program = join(import.meta.dirname, "../../bin/run.js");
  const settings = ["--coordinator-addr", address, "--slots", String(slots), "--log-level", "warn"];
  const args = [program, "worker", "run", "-c", configFile, ...settings];
  return spawn(process.execPath, args, { stdio: ["ignore", "ignore", "inherit"] });
}

async function until(
  transport: Parameters<typeof readRunStatus>[0],
  wanted: (status: { readonly done: number }) => boolean,
): Promise<void> {
  while (!wanted(await readRunStatus(transport))) await sleep(systemClock, POLL_MS);
}

async function* payloads(count: number, bytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < count; at++)
    yield Buffer.from(`{"n":${at},"pad":"${"x".repeat(Math.max(0, bytes - 24))}"}`);
}
