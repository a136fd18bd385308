// A coordinator and workers for a program: real processes over mutual TLS on this machine, kept alive until they are stopped, and
// ended when the program ends, however it does.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { sleep, systemClock } from "../base/clock.ts";
import { failure, RolloutError } from "../base/errors.ts";
import { unwritable } from "../base/system-reason.ts";
import type { WorkerId } from "../base/ids.ts";
import { ownCommand } from "../base/own-file.ts";
import { systemRandom } from "../base/random.ts";
import { commandManifest, commandManifestText, loadManifest, mockManifest } from "../config/manifest.ts";
import type { Manifest } from "../config/manifest.ts";
import { resolveConfig } from "../config/resolve.ts";
import type { ClientConfig } from "../config/resolve.ts";
import { settingOf } from "../config/schema.ts";
import { taskOf } from "../config/task.ts";
import { TOPICS } from "../observe/events.ts";
import { silentLogger } from "../observe/log.ts";
import { Connection } from "./local-run/connection.ts";
import type { GivenUp } from "./local-run/kept-process.ts";
import { LOCAL_SETTINGS, localEnvironment, settingWords } from "./local-run/local-settings.ts";
import type { Program } from "./local-run/member.ts";
import { namedAddress } from "./local-run/named-address.ts";
import { localConfigText, RunDirectory } from "./local-run/run-directory.ts";
import { Supervisor } from "./local-run/supervisor.ts";
import { RolloutClient } from "./rollout-client.ts";

type Settings = Readonly<Record<string, string | true>>;

export interface ClusterOptions {
  /** Manifest of the plugin that executes items. */
  readonly plugin?: string;
  /** A command that executes items, a process for each; in place of a plugin. Neither: the mock backend. */
  readonly command?: readonly string[];
  /** 2 unless said. */
  readonly workers?: number;
  /** Items that a worker executes at once; 1 unless said. */
  readonly slots?: number;
  /** Where everything is kept, to go on there later. Without it a temporary one, which is gone when the cluster is. */
  readonly directory?: string;
  /** Settings of docs/CONFIGURATION.md that do not say where things are, by their flags: `{ "max-attempts": "1" }`. */
  readonly settings?: Settings;
  /** Told in a sentence when a process has died and is started again. */
  readonly onNotice?: (sentence: string) => void;
}

const PLUGIN_FILE = "plugin.toml";
const WORKERS_MAX = 1_024;
const LOOK_MS = 50;

/** Made by `startCluster`. */
export class LocalCluster {
  /** Other commands reach the cluster by `--config` and the file `rollout.toml` in here. Logs are here too. */
  readonly directory: string;
  /** Speaks to this cluster, also when its coordinator was started again. Closed by `stop`. */
  readonly client: RolloutClient;
  readonly #crew: Crew;
  #stopped: Promise<void> | undefined;

  private constructor(directory: string, client: RolloutClient, crew: Crew) {
    this.directory = directory;
    this.client = client;
    this.#crew = crew;
  }

  /** @internal */
  static of(directory: string, client: RolloutClient, crew: Crew): LocalCluster {
    return new LocalCluster(directory, client, crew);
  }

  /**
   * Resolves when a process cannot be kept alive, with the reason; never while all is well. Every call of the client that is
   * made then, or under way, rejects with the same.
   */
  get givenUp(): Promise<RolloutError> {
    return this.#crew.givenUp;
  }

  /**
   * Workers leave in good order, then the coordinator; resolves when no process is left. Items that are not done go on with the next
   * cluster in this directory. Idempotent.
   */
  stop(): Promise<void> {
    this.#stopped ??= this.#crew.stop();
    return this.#stopped;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/**
 * Resolves when every worker has joined and has loaded what executes items. Rejects, with nothing left behind, with the row of what
 * cannot work: `usage` for options that contradict each other, manifest rows, those of a directory that is not for this
 * task, is in use or has lost its database (other_run_task, run_held, run_directory_unusable, store_lost), process_given_up for a backend that does not start.
 */
export async function startCluster(options: ClusterOptions = {}): Promise<LocalCluster> {
  refuseContradiction(options);
  const manifest = await manifestOf(options);
  const path = options.directory ?? (await makeTemporary());
  const removeTemporary = async (): Promise<void> => {
    if (options.directory === undefined) await rm(path, { recursive: true, force: true });
  };
  try {
    const ports = { clock: systemClock, random: systemRandom, log: silentLogger };
    const directory = await RunDirectory.claim(resolve(path), path, taskOf(manifest), ports);
    const crew = new Crew(options, manifest, directory, removeTemporary);
    return await crew.start();
  } catch (error) {
    await removeTemporary();
    throw error;
  }
}

async function makeTemporary(): Promise<string> {
  return mkdtemp(join(tmpdir(), "rollout-")).catch((error: unknown) => {
    throw unwritable(tmpdir(), error);
  });
}

/** The processes of a cluster, the directory that they are in, and the way to them. */
class Crew {
  readonly givenUp: Promise<RolloutError>;
  readonly #options: ClusterOptions;
  readonly #manifest: Manifest;
  readonly #directory: RunDirectory;
  readonly #removeTemporary: () => Promise<void>;
  readonly #connection = new Connection({ clock: systemClock, random: systemRandom, log: silentLogger });
  readonly #supervisor: Supervisor;

  constructor(
    options: ClusterOptions,
    manifest: Manifest,
    directory: RunDirectory,
    removeTemporary: () => Promise<void>,
  ) {
    [this.#options, this.#manifest] = [options, manifest];
    [this.#directory, this.#removeTemporary] = [directory, removeTemporary];
    this.#supervisor = new Supervisor({
      ...{ directory, program: thisProgram(), clock: systemClock },
      coordinatorWords: settingWords("coordinator", options.settings ?? {}),
      workerWords: settingWords("worker", { ...options.settings, slots: String(options.slots ?? 1) }),
      say: options.onNotice ?? (() => undefined),
      onAddress: async (address) => this.#connection.open(await this.#writeConfig(address)),
    });
    this.givenUp = this.#supervisor.givenUp.then((reason) => {
      const error = errorOf(reason);
      this.#connection.fail(error);
      return error;
    });
  }

  /** When it rejects, no process is left. */
  async start(): Promise<LocalCluster> {
    const downfall = this.givenUp.then((error): never => {
      throw error;
    });
    // It may come when nobody waits for it any more.
    downfall.catch(() => undefined);
    try {
      return await Promise.race([this.#begin(), downfall]);
    } catch (error) {
      // In good order: what a worker that is killed has started would outlive it for a moment.
      await this.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    await this.#supervisor.stopWorkers();
    this.#connection.close();
    await this.#supervisor.stopCoordinator();
    await this.#directory.close();
    await this.#removeTemporary();
  }

  async #begin(): Promise<LocalCluster> {
    const { command, onNotice, workers = 2 } = this.#options;
    const directory = this.#directory;
    const tellOfEarlier = (holder: string): void =>
      onNotice?.(`waiting for ${holder}, which an earlier program has left behind`);
    await directory.waitForEarlier(tellOfEarlier, new AbortController().signal);
    if (command !== undefined)
      await directory.write(PLUGIN_FILE, commandManifestText(command, process.cwd()));
    const { limits } = await this.#writeConfig(await namedAddress(directory));
    await this.#supervisor.startCoordinator();
    const client = RolloutClient.over({
      transport: this.#connection.transport,
      close: () => this.#connection.close(),
      taskOf: async (plugin) => taskOf(plugin === undefined ? this.#manifest : await loadManifest(plugin)),
      itemBytesMax: limits.payloadBytes,
    });
    const ids = await directory.workerIds(workers);
    await this.#supervisor.startWorkers(ids);
    await this.#supervisor.untilWorkersLoaded();
    await untilJoined(client, ids);
    return LocalCluster.of(directory.path, client, this);
  }

  async #writeConfig(address: string): Promise<ClientConfig> {
    const { command } = this.#options;
    const { backend, file } = this.#manifest;
    const named = backend === "mock" && this.#options.plugin === undefined ? undefined : file;
    const { runId, configFile, path } = this.#directory;
    const text = localConfigText(runId, address, command === undefined ? named : `./${PLUGIN_FILE}`);
    await this.#directory.write("rollout.toml", text);
    return resolveConfig("coordinator", {
      file: { path: configFile, text },
      environment: localEnvironment(process.env),
      flags: { ...this.#options.settings },
      ...{ workingDirectory: path, topics: TOPICS },
    });
  }
}

/** Programs without types make these mistakes too. */
function refuseContradiction({
  plugin,
  command,
  workers = 2,
  slots = 1,
  settings = {},
}: ClusterOptions): void {
  const refuse = (detail: string): never => {
    throw failure("usage", { detail: `startCluster: ${detail}`, command: "rollout run" });
  };
  if (plugin !== undefined && command !== undefined) refuse("there are both a plugin and a command");
  if (command?.length === 0) refuse("the command has no words");
  if (!Number.isInteger(workers) || workers < 0 || workers > WORKERS_MAX)
    refuse(`workers is a whole number from 0 to ${WORKERS_MAX}`);
  const flags = LOCAL_SETTINGS.map((key) => settingOf(key).flag);
  const unknown = Object.keys(settings).find((name) => !flags.includes(name));
  if (unknown !== undefined) refuse(`there is no setting ${unknown} that it takes`);
  if (!Number.isInteger(slots) || slots < 1) refuse("slots is a whole number from 1");
}

async function manifestOf({ plugin, command }: ClusterOptions): Promise<Manifest> {
  if (plugin !== undefined) return loadManifest(plugin);
  return command === undefined ? mockManifest() : commandManifest(command, process.cwd());
}

/** Waits for ready workers only; a process that keeps dying is reported through `givenUp`. */
async function untilJoined(client: RolloutClient, ids: readonly WorkerId[]): Promise<void> {
  for (;;) {
    try {
      const ready = (await client.workers()).filter(({ state }) => state === "ready");
      const joined = new Set(ready.map(({ workerId }) => workerId));
      if (ids.every((id) => joined.has(id))) return;
    } catch (error) {
      // A coordinator that dies is started again.
      if (!(error instanceof RolloutError) || error.row.retry === "never") throw error;
    }
    await sleep(systemClock, LOOK_MS);
  }
}

/** The program that this library is of, from dist or from source. */
function thisProgram(): Program {
  return {
    executable: process.execPath,
    words: [ownCommand()],
    environment: localEnvironment(process.env),
    workingDirectory: process.cwd(),
  };
}

function errorOf({ who, error }: GivenUp): RolloutError {
  return failure("process_given_up", { who, reason: error.message, advice: error.hint });
}
