// A cluster for a program: a coordinator and workers, real processes over mutual TLS on this machine, kept alive until they are stopped,
// and ended when the program ends, however it does.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { sleep, systemClock } from "../base/clock.ts";
import { failure, RolloutError } from "../base/errors.ts";
import { asUnwritable } from "../base/system-reason.ts";
import type { WorkerId } from "../base/ids.ts";
import { ownCommand } from "../base/own-file.ts";
import { systemRandom } from "../base/random.ts";
import {
  actorManifest,
  actorManifestText,
  commandManifest,
  commandManifestText,
  loadManifest,
  mockManifest,
} from "../config/manifest.ts";
import type { ActorModule } from "../config/manifest.ts";
import { settingOf } from "../config/schema.ts";
import { taskOf } from "../config/task.ts";
import { Cluster } from "./local-run/cluster.ts";
import type { ClusterRequest } from "./local-run/cluster.ts";
import { checkSettings, LOCAL_SETTINGS, localEnvironment } from "./local-run/local-config.ts";
import { RunDirectory } from "./local-run/run-directory.ts";
import type { RolloutClient } from "./rollout-client.ts";

type Settings = Readonly<Record<string, string | true>>;

export interface ClusterOptions {
  /** Manifest of the plugin that executes items. */
  readonly plugin?: string;
  /** A command that executes items, a process for each; in place of a plugin. Neither: the mock backend. */
  readonly command?: readonly string[];
  /** A file of durable actors; in place of a plugin or a command. */
  readonly actors?: ActorModule;
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

const WORKERS_MAX = 1_024;
const LOOK_MS = 50;

interface Parts {
  readonly directory: string;
  readonly client: RolloutClient;
  readonly givenUp: Promise<RolloutError>;
  readonly end: () => Promise<void>;
}

/** Made by `startCluster`. */
export class LocalCluster {
  /** Other commands reach the cluster by `--config` and the file `rollout.toml` in here. Logs are here too. */
  readonly directory: string;
  /** Speaks to this cluster, also when its coordinator was started again. Closed by `stop`. */
  readonly client: RolloutClient;
  /**
   * Resolves when a process cannot be kept alive, with the reason; never while all is well. Every call of the client that is
   * made then, or under way, rejects with the same.
   */
  readonly givenUp: Promise<RolloutError>;
  readonly #end: () => Promise<void>;
  #stopped: Promise<void> | undefined;

  private constructor({ directory, client, givenUp, end }: Parts) {
    [this.directory, this.client, this.givenUp, this.#end] = [directory, client, givenUp, end];
  }

  /** @internal */
  static of(parts: Parts): LocalCluster {
    return new LocalCluster(parts);
  }

  /**
   * Workers leave in good order, then the coordinator; resolves when no process is left. Items that are not done go on with the next
   * cluster in this directory. Idempotent.
   */
  stop(): Promise<void> {
    this.#stopped ??= this.#end();
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
  const request = await requestOf(options);
  const path = options.directory ?? (await makeTemporary());
  const removeTemporary = async (): Promise<void> => {
    if (options.directory === undefined) await rm(path, { recursive: true, force: true });
  };
  try {
    const ports = { clock: systemClock, random: systemRandom };
    const directory = await RunDirectory.claim(resolve(path), path, request.task, ports);
    return await startIn(directory, request, options, removeTemporary);
  } catch (error) {
    await removeTemporary();
    throw error;
  }
}

async function requestOf({
  plugin,
  command,
  actors,
  slots = 1,
  settings,
}: ClusterOptions): Promise<ClusterRequest> {
  const workingDirectory = process.cwd();
  const environment = localEnvironment(process.env);
  // From dist or from source, as this is.
  const program = { executable: process.execPath, words: [ownCommand()], environment, workingDirectory };
  const flags = { ...settings, slots: String(slots) };
  const base = { program, flags, itemBytesMax: checkSettings(flags, program).limits.payloadBytes };
  if (plugin !== undefined) {
    const manifest = await loadManifest(plugin);
    return { ...base, task: taskOf(manifest), manifest: { file: manifest.file } };
  }
  if (actors !== undefined) {
    const text = actorManifestText(actors, workingDirectory);
    return { ...base, task: taskOf(actorManifest(actors, workingDirectory)), manifest: { text } };
  }
  if (command === undefined) return { ...base, task: taskOf(mockManifest()), manifest: undefined };
  const text = commandManifestText(command, workingDirectory);
  return { ...base, task: taskOf(commandManifest(command, workingDirectory)), manifest: { text } };
}

async function makeTemporary(): Promise<string> {
  return mkdtemp(join(tmpdir(), "rollout-")).catch(asUnwritable(tmpdir()));
}

/** When it rejects, no process is left. `afterwards` is for when the directory is let go of. */
async function startIn(
  directory: RunDirectory,
  request: ClusterRequest,
  { workers = 2, onNotice: say = () => undefined }: ClusterOptions,
  afterwards: () => Promise<void>,
): Promise<LocalCluster> {
  const cluster = new Cluster(directory, request, { clock: systemClock, random: systemRandom, say });
  const givenUp = cluster.givenUp.then(({ who, error: { message, hint } }) => {
    const error = failure("process_given_up", { who, reason: message, advice: hint });
    cluster.fail(error);
    return error;
  });
  const end = async (): Promise<void> => {
    await cluster.stop();
    await directory.close();
    await afterwards();
  };
  const begin = async (): Promise<undefined> => {
    const tell = (holder: string): void =>
      say(`waiting for ${holder}, which an earlier program has left behind`);
    await directory.waitForEarlier(tell, new AbortController().signal);
    await cluster.begin(directory);
    const ids = await directory.workerIds(workers);
    await cluster.startWorkers(ids);
    await cluster.untilWorkersLoaded();
    await untilJoined(cluster.client, ids);
  };
  try {
    const downfall = await Promise.race([begin(), givenUp]);
    if (downfall !== undefined) throw downfall;
  } catch (error) {
    // In good order: what a worker that is killed has started would outlive it for a moment.
    await end();
    throw error;
  }
  return LocalCluster.of({ directory: directory.path, client: cluster.client, givenUp, end });
}

/** Programs without types make these mistakes too. */
function refuseContradiction({
  plugin,
  command,
  actors,
  workers = 2,
  slots = 1,
  settings = {},
}: ClusterOptions): void {
  const refuse = (detail: string): never => {
    throw failure("usage", { detail: `startCluster: ${detail}`, command: "rollout run" });
  };
  const sources = [plugin, command, actors].filter((source) => source !== undefined);
  if (sources.length > 1) refuse("plugin, command and actors exclude each other");
  if (command?.length === 0) refuse("the command has no words");
  if (!Number.isInteger(workers) || workers < 0 || workers > WORKERS_MAX)
    refuse(`workers is a whole number from 0 to ${WORKERS_MAX}`);
  const flags = LOCAL_SETTINGS.map((key) => settingOf(key).flag);
  const unknown = Object.keys(settings).find((name) => !flags.includes(name));
  if (unknown !== undefined) refuse(`there is no setting ${unknown} that it takes`);
  if (!Number.isInteger(slots) || slots < 1) refuse("slots is a whole number from 1");
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
