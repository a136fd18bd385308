// A run whose coordinator and workers are processes of the built program, over mutual TLS, every result fsynced before it is
// acknowledged: its steps, one by one, and a whole run of no-op items measured.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { sleep, systemClock } from "../../src/base/clock.ts";
import { systemRandom } from "../../src/base/random.ts";
import type { RunStatus } from "../../src/client/run-status.ts";
import { statusOf } from "../../src/client/run-status.ts";
import { submitLines } from "../../src/client/submit.ts";
import type { Line } from "../../src/client/submit.ts";
import { OperatorService } from "../../src/gen/rollout/v1/run_pb.ts";
import type { Manifest } from "../../src/config/manifest.ts";
import { mockManifest } from "../../src/config/manifest.ts";
import { taskOf } from "../../src/config/task.ts";
import { silentLogger } from "../../src/observe/log.ts";
import type { Client } from "../../src/transport/client.ts";
import { openClient } from "../../src/transport/client.ts";
import { loadCredentials } from "../../src/transport/tls/credential-files.ts";
import { operatorFiles } from "../../src/transport/tls/host-credentials.ts";
import type { LagReport, MeasuredOptions } from "./measured-coordinator.ts";
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
  /** As in `MeasuredOptions`. */
  readonly postgres?: string;
}

const POLL_MS = 20;

export class MeasuredRun {
  readonly coordinator: MeasuredCoordinator;
  readonly #client: Client;
  readonly #fleet: ChildProcess[] = [];
  /** Why nothing more comes: a worker that could not load its plugin, for one. */
  #broken: string | undefined;

  private constructor(coordinator: MeasuredCoordinator, client: Client) {
    this.coordinator = coordinator;
    this.#client = client;
  }

  static async start(options: MeasuredOptions = {}): Promise<MeasuredRun> {
    const coordinator = await MeasuredCoordinator.start(options);
    const { runId, address, tlsDir } = coordinator;
    const files = operatorFiles(tlsDir);
    const credentials = await loadCredentials(files, { runId, roles: ["operator"] }, systemClock);
    const client = openClient({ ...credentials, address, runId, clock: systemClock, log: silentLogger });
    return new MeasuredRun(coordinator, client);
  }

  /** As an operator. */
  get transport(): Client["transport"] {
    return this.#client.transport;
  }

  /** Items without work, unless `manifest` says what executes them, and no more will come. */
  async submit(items: number, payloadBytes: number, manifest: Manifest = mockManifest()): Promise<void> {
    await this.add(payloads(items, payloadBytes), manifest);
    await this.seal();
  }

  async add(lines: AsyncIterable<Line>, manifest: Manifest = mockManifest()): Promise<void> {
    const options = { task: taskOf(manifest), priority: 0, clock: systemClock, random: systemRandom };
    await submitLines(this.#client.transport, lines, options);
  }

  async seal(): Promise<void> {
    await createClient(OperatorService, this.#client.transport).seal({});
  }

  /** Returns its pid. */
  startWorker(slots: number, ...settings: string[]): number {
    const { configFile, address } = this.coordinator;
    const program = join(import.meta.dirname, "../../bin/run.js");
    const common = ["--coordinator-addr", address, "--slots", String(slots), "--log-level", "warn"];
    const args = [program, "worker", "run", "-c", configFile, ...common, ...settings];
    const worker = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "inherit"] });
    this.#fleet.push(worker);
    // One that is killed on purpose has no code.
    worker.once("exit", (code) => {
      if (code !== null && code !== 0) this.#broken ??= `a worker has ended with exit code ${code}`;
    });
    return worker.pid ?? 0;
  }

  async status(): Promise<RunStatus> {
    return statusOf(await createClient(OperatorService, this.#client.transport).getRun({}));
  }

  /** Throws when it will never be so: items of a benchmark do not fail, and its workers stay. */
  async until(wanted: (status: RunStatus) => boolean): Promise<void> {
    for (;;) {
      const status = await this.status();
      if (wanted(status)) return;
      const inside = status.inside?.failed ?? 0;
      if (status.failed + inside > 0) this.#broken ??= `${status.failed + inside} items have failed`;
      if (status.state === "paused") this.#broken ??= `the run is paused: ${status.pauseReason}`;
      this.demandWhole();
      await sleep(systemClock, POLL_MS);
    }
  }

  /** Throws when something has gone wrong that nothing more comes after. */
  demandWhole(): void {
    if (this.#broken !== undefined) throw new Error(`the benchmark cannot go on: ${this.#broken}`);
  }

  /** How many results a second are recorded from the one of this number on to the last of `items`. */
  async ratePerSecond(unmeasured: number, items: number): Promise<number> {
    let before = 0;
    await this.until(({ done }) => (before = done) >= unmeasured);
    const fromMs = systemClock.monotonicMs();
    await this.until(({ done }) => done === items);
    return ((items - before) / (systemClock.monotonicMs() - fromMs)) * 1_000;
  }

  async stop(): Promise<void> {
    this.#client.close();
    for (const worker of this.#fleet) worker.kill("SIGKILL");
    await this.coordinator.stop();
  }
}

export async function measureRun(shape: RunShape): Promise<RunMeasured> {
  const { items, workers, slots, payloadBytes, postgres } = shape;
  const run = await MeasuredRun.start({ postgres });
  const clock = systemClock;
  try {
    const startedMs = clock.monotonicMs();
    await run.submit(items, payloadBytes);
    const submittedMs = clock.monotonicMs();
    for (let at = 0; at < workers; at++) run.startWorker(slots);
    await run.until(({ done }) => done > 0);
    const firstMs = clock.monotonicMs();
    await run.coordinator.lag();
    await run.until(({ done }) => done === items);
    const lastMs = clock.monotonicMs();
    const submitMs = submittedMs - startedMs;
    return {
      submitPerSecond: (items / submitMs) * 1_000,
      executePerSecond: (items / (lastMs - firstMs)) * 1_000,
      endToEndPerSecond: (items / (submitMs + lastMs - firstMs)) * 1_000,
      lag: await run.coordinator.lag(),
    };
  } finally {
    await run.stop();
  }
}

async function* payloads(count: number, bytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < count; at++)
    yield Buffer.from(`{"n":${at},"pad":"${"x".repeat(Math.max(0, bytes - 24))}"}`);
}
