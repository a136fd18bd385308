// A cluster of real processes in a directory of its own: one configuration file, the built program, mutual TLS on
// loopback. Nothing of it outlives the test, however the test ends.
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { replaceFile } from "../../src/base/file-system.ts";
import type { RunId, WorkerId } from "../../src/base/ids.ts";
import { jsonOf } from "../../src/client/operator-message.ts";
import type { Submitted } from "../../src/client/submit.ts";
import { RolloutClient } from "../../src/compose/rollout-client.ts";
import { parseDurationMs } from "../../src/config/duration.ts";
import { SECTIONS } from "../../src/config/schema.ts";
import type { SettingKey } from "../../src/config/schema.ts";
import { WorkerInfoSchema } from "../../src/gen/rollout/v1/run_pb.ts";
import { newRunId } from "./certificates.ts";
import { restartableAddress } from "./listeners.ts";
import { pace, paced } from "./pace.ts";
import { RolloutProcess } from "./rollout-process.ts";
import type { StartOptions } from "./rollout-process.ts";
import { runProgram } from "./run-program.ts";
import type { ProgramResult } from "./run-program.ts";
import { withProcesses } from "./temporary-directory.ts";

export type Settings = { readonly [Key in SettingKey]?: string | number | readonly string[] | undefined };

/** Nobody is given up because this machine did something else for a while. */
const PATIENT: Settings = {
  "liveness.heartbeat_interval": "200ms",
  "liveness.clock_skew_budget": "350ms",
  "liveness.worker_self_fence_timeout": "8s",
  "liveness.coordinator_failure_timeout": "10s",
};
/** The same for a leader on a store that others share. */
const PATIENT_LEADER: Settings = {
  "coordinator.heartbeat_interval": "1s",
  "coordinator.failover_threshold": "6s",
};

/** For tests about silence, and for no others: failure is noticed in three seconds; on a busy machine all of these are longer. */
export const QUICK: Settings = {
  "liveness.clock_skew_budget": "150ms",
  "liveness.worker_self_fence_timeout": "2400ms",
  "liveness.coordinator_failure_timeout": "3s",
};

const SUBMIT_FLAGS = {
  seal: { type: "boolean", default: false },
  plugin: { type: "string" },
  "key-field": { type: "string" },
  "event-id-field": { type: "string" },
} as const;

export interface MemberOptions {
  /** A directory of the cluster's to run in, in place of the one with the configuration. */
  readonly directory?: string;
  /** More words for the command line. */
  readonly args?: readonly string[];
  /** The script to run in place of the built program. */
  readonly program?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdout?: number;
  readonly wrapper?: readonly string[];
}

export interface WorkerOptions extends MemberOptions {
  readonly workerId?: WorkerId;
}

/** An object of `rollout worker list --json`. */
export interface ListedWorker {
  readonly worker_id: string;
  readonly incarnation: string;
  readonly state: string;
  readonly liveness: string;
  readonly revoked: boolean;
  readonly last_beat_age_ms: number | null;
}

export class WorkerProcess extends RolloutProcess {
  /** Its ids, as its first log line says them. */
  async identity(): Promise<{ readonly worker_id: string; readonly incarnation: string }> {
    return this.until("its identity", () => {
      const line = this.log.find(({ incarnation }) => incarnation !== undefined);
      return line && { worker_id: String(line["worker_id"]), incarnation: String(line["incarnation"]) };
    });
  }

  async id(): Promise<string> {
    return (await this.identity()).worker_id;
  }
}

export class Cluster {
  readonly directory: string;
  readonly runId: RunId;
  /** The factor on its times under `liveness`; what a test shortens beside them it lengthens by the same. */
  readonly pace = pace();
  readonly #processes: RolloutProcess[] = [];
  #settings: Settings;
  #coordinator: RolloutProcess | undefined;

  constructor(directory: string, settings: Settings) {
    this.directory = directory;
    const { run_id: given, "storage.url": onPostgres } = settings;
    this.runId = given === undefined ? newRunId() : (String(given) as RunId);
    this.#settings = {
      run_id: this.runId,
      "storage.path": "./data/rollout.db",
      "transport.listen_addr": "127.0.0.1:0",
      "transport.tls_dir": "./data/tls",
      ...paced({ ...PATIENT, ...(onPostgres !== undefined && PATIENT_LEADER), ...settings }, this.pace),
    };
  }

  file(name: string): string {
    return join(this.directory, name);
  }

  /** A duration as its members have it: lengthened, on a busy machine. */
  durationMs(key: SettingKey): number {
    const ms = parseDurationMs(String(this.#settings[key]));
    if (ms === undefined) throw new Error(`${key} is no duration of this cluster`);
    return ms;
  }

  /** The one that was started last. */
  get coordinator(): RolloutProcess {
    if (this.#coordinator === undefined) throw new Error("no coordinator was started");
    return this.#coordinator;
  }

  /** `host:port` of the coordinator; known once one leads, and the same for those that follow. */
  get address(): string {
    return String(this.#settings["transport.listen_addr"]);
  }

  /** Changes settings of the file that every command of the cluster reads. */
  async configure(settings: Settings): Promise<void> {
    this.#settings = { ...this.#settings, ...paced(settings, this.pace) };
    // Replaced at once: a command that follows or waits reads the file again while it is written.
    const file = this.file("rollout.toml");
    await replaceFile(file, tomlOf(this.#settings), { temporary: `${file}.new`, synced: "nothing" });
  }

  /** A coordinator that leads. The first takes a free port, the next ones the same. */
  async startCoordinator(options: MemberOptions = {}): Promise<RolloutProcess> {
    if (this.address.endsWith(":0"))
      await this.configure({ "transport.listen_addr": await restartableAddress() });
    const coordinator = this.launchCoordinator(options);
    const { address } = await coordinator.event("coordinator_leading");
    await this.configure({ "transport.listen_addr": address });
    return coordinator;
  }

  /** A coordinator that has only just been started. */
  launchCoordinator(options: MemberOptions = {}): RolloutProcess {
    this.#coordinator = this.launch(["coordinator", "run", ...(options.args ?? [])], options);
    return this.#coordinator;
  }

  /** A worker whose first heartbeat as Ready the coordinator has taken. */
  async startWorker(options: WorkerOptions = {}): Promise<WorkerProcess> {
    const worker = this.launchWorker(options);
    const { incarnation } = await worker.identity();
    await this.coordinator.event("worker_heartbeat", { incarnation, state: "Ready" });
    return worker;
  }

  async startWorkers(count: number): Promise<WorkerProcess[]> {
    return Promise.all(Array.from({ length: count }, () => this.startWorker()));
  }

  /** A worker that has only just been started. */
  launchWorker(options: WorkerOptions = {}): WorkerProcess {
    const id = options.workerId === undefined ? [] : ["--worker-id", options.workerId];
    const args = ["worker", "run", ...id, ...(options.args ?? [])];
    return this.#track(new WorkerProcess(args, this.#startOptions(options)));
  }

  /** Any command, as a process to be watched. */
  launch(args: readonly string[], options: MemberOptions = {}): RolloutProcess {
    return this.#track(new RolloutProcess(args, this.#startOptions(options)));
  }

  /** A command to its end, in the cluster's directory. */
  run(...args: string[]): Promise<ProgramResult> {
    return this.runWith({}, ...args);
  }

  /** The same, with more in its environment. */
  runWith({ env }: Pick<MemberOptions, "env">, ...args: string[]): Promise<ProgramResult> {
    return runProgram("bin/run.js", args, { cwd: this.directory, env: env ?? {} });
  }

  /** The library's client for one question, which costs no process as a command does. */
  async ask<Answer>(question: (client: RolloutClient) => Promise<Answer>): Promise<Answer> {
    using client = await RolloutClient.connect({ config: this.file("rollout.toml") });
    return await question(client);
  }

  /** Submits these values, with flags of `rollout submit`; says how many of them were new. Rejects when it is refused. */
  async submit(values: readonly unknown[], ...flags: string[]): Promise<Submitted> {
    const { plugin, seal, ...fields } = parseArgs({ args: flags, options: SUBMIT_FLAGS }).values;
    return this.ask((client) =>
      client.submit(values, {
        ...{ seal, plugin: plugin && resolve(this.directory, plugin) },
        ...{ key: fields["key-field"], id: fields["event-id-field"] },
      }),
    );
  }

  /** As `rollout worker list --json` prints them. */
  async workers(): Promise<ListedWorker[]> {
    const workers = await this.ask((client) => client.workers());
    return workers.map((worker) => jsonOf(WorkerInfoSchema, worker) as unknown as ListedWorker);
  }

  /** This worker's line of `rollout worker list`. */
  async listed(workerId: string): Promise<ListedWorker | undefined> {
    return (await this.workers()).find(({ worker_id }) => worker_id === workerId);
  }

  /** Kills what still runs. */
  async end(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.kill()));
  }

  describe(): string {
    return this.#processes.map((process) => process.describe()).join("\n");
  }

  #startOptions({ directory = ".", program, env, stdout, wrapper }: MemberOptions): StartOptions {
    return {
      cwd: this.file(directory),
      ...(program === undefined ? {} : { program }),
      ...(env === undefined ? {} : { env }),
      ...(stdout === undefined ? {} : { stdout }),
      ...(wrapper === undefined ? {} : { wrapper }),
    };
  }

  #track<Process extends RolloutProcess>(process: Process): Process {
    this.#processes.push(process);
    return process;
  }
}

/** Gives `use` a cluster with nothing started, and takes everything away at the end; a failure shows what was said. */
export async function withCluster(
  settings: Settings,
  use: (cluster: Cluster) => Promise<void>,
): Promise<void> {
  const open = (directory: string): Cluster => new Cluster(directory, settings);
  await withProcesses(open, async (cluster) => {
    await cluster.configure({});
    await use(cluster);
  });
}

function tomlOf(settings: Settings): string {
  const given = Object.entries(settings).filter(([, value]) => value !== undefined);
  const entries = given.map(([key, value]) => {
    const [section, name] = key.includes(".") ? key.split(".", 2) : ["", key];
    return { section, line: `${String(name)} = ${JSON.stringify(value)}` };
  });
  const table = (wanted: string): string[] =>
    entries.filter(({ section }) => section === wanted).map(({ line }) => line);
  // One without settings is left out: an earlier version may not know it.
  const named = SECTIONS.filter((section) => table(section).length > 0);
  const tables = named.flatMap((section) => ["", `[${section}]`, ...table(section)]);
  return [...table(""), ...tables, ""].join("\n");
}
