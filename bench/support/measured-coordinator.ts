// The built coordinator as a process of its own, in a temporary directory, with its event loop watched from inside.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { globSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { assert } from "../../src/base/assert.ts";
import { systemClock } from "../../src/base/clock.ts";
import type { RunId } from "../../src/base/ids.ts";
import { newUlid } from "../../src/base/ids.ts";
import { systemRandom } from "../../src/base/random.ts";

export interface LagReport {
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly max_ms: number;
  readonly cpu_ms: number;
  readonly rss_bytes: number;
  /** The most since the start of the process. */
  readonly rss_peak_bytes: number;
  /** The part of `rss_bytes` that is pages of mapped files; 0 where that is not told. */
  readonly rss_of_files_bytes: number;
  /** Bytes of the heap that are reached, and those that they hold outside of it, after a collection; 0 when none was asked for. */
  readonly in_use_bytes: number;
}

export interface MeasuredOptions {
  readonly preload?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Whether it collects garbage before each report: for what it uses, not for how fast it is. */
  readonly collects?: boolean;
  /** Whether its lag is watched, which wakes it 200 times a second; it is, unless said. */
  readonly watchesLag?: boolean;
  /** A Postgres, as its superuser; without one it has a LevelDB of its own. */
  readonly postgres?: string | undefined;
}

export class MeasuredCoordinator {
  readonly runId: RunId;
  readonly tlsDir: string;
  readonly configFile: string;
  readonly address: string;
  /** Events by topic, counted as they are read. */
  readonly events: Map<string, number>;
  readonly #process: ChildProcess;
  readonly #directory: string;
  readonly #reports: AsyncIterator<string>;

  private constructor(started: {
    runId: RunId;
    directory: string;
    address: string;
    process: ChildProcess;
    events: Map<string, number>;
    reports: AsyncIterator<string>;
  }) {
    this.runId = started.runId;
    this.#directory = started.directory;
    this.tlsDir = join(started.directory, "data/tls");
    this.configFile = join(started.directory, "rollout.toml");
    this.address = started.address;
    this.events = started.events;
    this.#process = started.process;
    this.#reports = started.reports;
  }

  /**
   * Leads when it resolves. Events are written as by default: one for every heartbeat. `preload` is a module that its
   * process loads first, with `env` to go by.
   */
  static async start({
    preload,
    env,
    collects,
    watchesLag = true,
    postgres,
  }: MeasuredOptions = {}): Promise<MeasuredCoordinator> {
    const directory = mkdtempSync(join(tmpdir(), "rollout-bench-"));
    const runId = newUlid<RunId>(systemClock, systemRandom);
    const config = join(directory, "rollout.toml");
    const storage = postgres === undefined ? 'path = "./data/rollout.db"' : `url = "${postgres}"`;
    writeFileSync(
      config,
      `run_id = "${runId}"\n[storage]\n${storage}\n[transport]\nlisten_addr = "127.0.0.1:0"\n`,
      { mode: 0o600 },
    );
    const root = join(import.meta.dirname, "../..");
    const child = spawn(
      process.execPath,
      [
        ...(watchesLag ? ["--import", join(root, "bench/support/loop-lag.ts")] : []),
        ...(preload === undefined ? [] : ["--import", preload]),
        ...(process.env["ROLLOUT_BENCH_PROFILE"] === undefined
          ? []
          : ["--cpu-prof", "--cpu-prof-dir", process.env["ROLLOUT_BENCH_PROFILE"]]),
        join(root, "bin/run.js"),
        "coordinator",
        "run",
        "-c",
        config,
      ],
      {
        stdio: ["ignore", "pipe", "pipe", "pipe"],
        env: {
          ...process.env,
          ROLLOUT_LOG_LEVEL: "warn",
          ...(collects === true && { BENCH_COLLECT: "1" }),
          ...env,
        },
      },
    );
    const [, stdout, stderr, reports] = child.stdio;
    assert(stdout !== null && stderr !== null, "the child's streams are pipes");
    let said = "";
    stderr.on("data", (chunk: Buffer) => (said = `${said}${chunk.toString()}`.slice(-2_000)));
    const events = new Map<string, number>();
    const address = await new Promise<string>((resolve, reject) => {
      child.once("exit", () => reject(new Error(`the coordinator ended: ${said}`)));
      createInterface({ input: stdout }).on("line", (line) => {
        const topic = /"topic":"(\w+)"/.exec(line)?.[1] ?? "";
        events.set(topic, (events.get(topic) ?? 0) + 1);
        if (topic !== "coordinator_leading") return;
        const { address: found } = JSON.parse(line) as { address: string };
        resolve(found);
      });
    });
    const lines = createInterface({ input: reports as Readable })[Symbol.asyncIterator]();
    return new MeasuredCoordinator({
      ...{ runId, directory, address, events },
      process: child,
      reports: lines,
    });
  }

  /** Bytes of the files of its database. */
  get databaseBytes(): number {
    const files = globSync(`${this.#directory}/data/rollout.db/**`, { withFileTypes: true });
    return files
      .filter((entry) => entry.isFile())
      .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  /** The lag of its event loop since the last call. */
  async lag(): Promise<LagReport> {
    this.#process.kill("SIGUSR2");
    const report = await this.#reports.next();
    assert(report.done !== true, "the coordinator is alive");
    return JSON.parse(report.value) as LagReport;
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    this.#process.removeAllListeners("exit");
    const exited = new Promise((resolve) => this.#process.once("exit", resolve));
    this.#process.kill("SIGTERM");
    await Promise.race([ended, exited]);
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
