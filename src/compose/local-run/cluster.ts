// The processes of a directory and the way to them: a coordinator and workers, kept alive until they are stopped, and clients of theirs.
// `startCluster` is this for programs; `rollout run` is this, with the following of its results and an ending.
import { basename } from "node:path";
import { showAddresses } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import type { RolloutError } from "../../base/errors.ts";
import type { WorkerId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import { loadManifest } from "../../config/manifest.ts";
import type { ClientConfig } from "../../config/resolve.ts";
import type { Task } from "../../config/task.ts";
import { taskOf } from "../../config/task.ts";
import { RolloutClient } from "../rollout-client.ts";
import { Hosts } from "./hosts.ts";
import type { HostCrew } from "./hosts.ts";
import { Connection } from "./connection.ts";
import type { GivenUp, Program } from "./kept-process.ts";
import {
  givenSettings,
  localConfigText,
  namedAddress,
  readConfigText,
  settingWords,
} from "./local-config.ts";
import type { RunDirectory } from "./run-directory.ts";
import { Supervisor } from "./supervisor.ts";

/** The work of a cluster, and what its processes are. */
export interface ClusterRequest {
  readonly program: Program;
  readonly task: Task;
  /** The manifest that workers read: a file, or what is to be put into one. Undefined: none, they have the mock backend. */
  readonly manifest: { readonly file: string } | { readonly text: string } | undefined;
  /** Settings of its processes, by their flags; other flags count for nothing. */
  readonly flags: Readonly<Record<string, unknown>>;
  /** Limit of an item. */
  readonly itemBytesMax: number;
  /** Workers on other machines. */
  readonly hosts?: HostCrew | undefined;
}

export interface ClusterPorts {
  readonly clock: Clock;
  readonly random: Random;
  /** A sentence for a person. */
  readonly say: (sentence: string) => void;
}

const PLUGIN_FILE = "plugin.toml";
const HOST_PLUGIN_FILE = "host-plugin.toml";

export class Cluster {
  /** A coordinator that is away is a failure. */
  readonly client: RolloutClient;
  /** For what has to be answered once: waits for a coordinator that is started again. */
  readonly patientClient: RolloutClient;
  readonly #request: ClusterRequest;
  readonly #connection: Connection;
  readonly #supervisor: Supervisor;
  readonly #hosts: Hosts | undefined;
  readonly #say: (sentence: string) => void;
  /** Undefined where the coordinator is another process's. */
  #claimed: RunDirectory | undefined;
  #leaving: Promise<unknown> | undefined;

  constructor(
    directory: Pick<RunDirectory, "configFile" | "logFile">,
    request: ClusterRequest,
    { clock, random, say }: ClusterPorts,
  ) {
    const { program, flags, task, itemBytesMax } = request;
    this.#request = request;
    this.#say = say;
    this.#hosts = request.hosts && new Hosts(request.hosts, { clock, random });
    this.#connection = new Connection({ clock, random });
    const over = (transport: Connection["transport"]): RolloutClient =>
      RolloutClient.over(
        {
          ...{ transport, itemBytesMax, close: () => this.#connection.close() },
          taskOf: async (plugin) => (plugin === undefined ? task : taskOf(await loadManifest(plugin))),
        },
        { clock, random },
      );
    this.client = over(this.#connection.transport);
    this.patientClient = over(this.#connection.patientTransport);
    this.#supervisor = new Supervisor({
      ...{ directory, program, clock, say },
      coordinatorWords: settingWords("coordinator", flags),
      workerWords: settingWords("worker", flags),
      onAddress: (address) => this.#onAddress(address),
    });
  }

  /** Settles when a process cannot be kept alive. */
  get givenUp(): Promise<GivenUp> {
    return this.#supervisor.givenUp;
  }

  /** Resolves when a coordinator leads; never when none ever does. `directory` is claimed, and nothing of an earlier cluster is left there. */
  async begin(directory: RunDirectory): Promise<void> {
    const { manifest, hosts } = this.#request;
    this.#claimed = directory;
    if (hosts !== undefined && "text" in hosts.manifest)
      await directory.write(HOST_PLUGIN_FILE, hosts.manifest.text);
    if (manifest !== undefined && "text" in manifest) await directory.write(PLUGIN_FILE, manifest.text);
    const address = await namedAddress(directory);
    await this.#writeConfig(directory, address);
    await this.#supervisor.startCoordinator(address);
    await this.#hosts?.call(this.patientClient);
  }

  /** In place of `begin`: the coordinator is another process's, and from now on at the address that this configuration names. */
  async join(config: ClientConfig): Promise<void> {
    await this.#connection.open(config);
    this.#supervisor.moveTo(showAddresses(config.worker.coordinatorAddr));
  }

  /** Behind `begin` or `join`. `from` others have the names before. */
  startWorkers(ids: readonly WorkerId[], from = 0): Promise<void> {
    return this.#supervisor.startWorkers(ids, from);
  }

  /** Resolves when each of the workers has said once that it can execute items; never when one cannot. */
  untilWorkersLoaded(): Promise<void> {
    return this.#supervisor.untilWorkersLoaded();
  }

  /** Calls from now on and those in flight reject with this. */
  fail(error: RolloutError): void {
    this.#connection.fail(error);
  }

  /** They hand back what they have not started and finish what they can. Resolves when all have gone. Idempotent. */
  async stopWorkers(): Promise<void> {
    this.#leaving ??= Promise.all([this.#sendHome(), this.#supervisor.stopWorkers()]);
    await this.#leaving;
  }

  /** Workers leave, calls end as interrupted, the coordinator leaves; resolves when no process is left. Idempotent. */
  async stop(): Promise<void> {
    await this.stopWorkers();
    this.#connection.close();
    await this.#supervisor.stopCoordinator();
    if (this.#claimed !== undefined) await this.#hosts?.sweep(this.#claimed.runId, this.#say);
  }

  async #sendHome(): Promise<void> {
    if (this.#claimed !== undefined) await this.#hosts?.sendHome(this.client);
  }

  /** All processes of this machine, at once. */
  kill(): void {
    this.#supervisor.kill();
  }

  async #onAddress(address: string): Promise<void> {
    if (this.#claimed !== undefined)
      await this.#connection.open(await this.#writeConfig(this.#claimed, address));
  }

  async #writeConfig(directory: RunDirectory, address: string): Promise<ClientConfig> {
    const { program, manifest, flags, hosts } = this.#request;
    const { runId, configFile } = directory;
    const plugin = manifest && ("file" in manifest ? manifest.file : `./${PLUGIN_FILE}`);
    const given = givenSettings(flags, program.environment, program.workingDirectory);
    const hostPlugin = hosts && ("file" in hosts.manifest ? hosts.manifest.file : `./${HOST_PLUGIN_FILE}`);
    const fleets = hosts === undefined ? [] : [{ ...hosts.table, plugin: hostPlugin }];
    const text = localConfigText(runId, address, plugin, given, fleets);
    await directory.write(basename(configFile), text);
    return readConfigText(configFile, text);
  }
}
