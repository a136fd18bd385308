// The plugins of a worker process: those of its manifests, or the one that it has without any, and with hot reload their
// successors.
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describeError, failure, RolloutError } from "../base/errors.ts";
import type { WorkerId } from "../base/ids.ts";
import { mockManifest } from "../config/manifest.ts";
import type { Manifest } from "../config/manifest.ts";
import { LIMITS } from "../config/limits.ts";
import type { ClientConfig } from "../config/resolve.ts";
import { SETTING_KEYS, environmentName } from "../config/schema.ts";
import { ChildHost } from "../worker/children/child-host.ts";
import type { Starter } from "../worker/children/starter.ts";
import type { Backend } from "../worker/backends/backend.ts";
import { Plugins } from "../worker/backends/plugins.ts";
import type { Plugin } from "../worker/backends/versions.ts";
import { HotReload } from "./hot-reload.ts";
import { PluginDirectory } from "./plugin-directory.ts";
import { loadManifests, openPlugin, pluginOf } from "./plugins.ts";
import type { BackendPorts, OpenedPlugin } from "./plugins.ts";
import type { ProcessPorts } from "./process-ports.ts";

export interface WorkerPlugins {
  readonly source: Plugins;
  /** Ends every backend and what it has started. */
  close(): Promise<void>;
}

export interface WorkerPluginsOptions {
  readonly config: ClientConfig;
  readonly manifests: readonly Manifest[];
  readonly workerId: WorkerId;
  readonly environment: Readonly<Record<string, string>>;
  readonly ports: ProcessPorts;
  /** Begun before the worker's database was opened. The caller closes it. */
  readonly starter: Starter;
  /** A backend cannot start at all. At most once for each. */
  readonly onBroken: (error: RolloutError) => void;
}

/** The manifests of the configuration's files; without any the one that every worker has. Throws what `loadManifests` throws. */
export async function workerManifests({ worker, mock }: ClientConfig): Promise<Manifest[]> {
  return worker.plugins.length === 0 ? [mockManifest(mock)] : await loadManifests(worker.plugins);
}

/** The worker's environment without rollout's own variables: its settings are nothing to what executes items. */
function withoutSettings(environment: Readonly<Record<string, string>>): Record<string, string> {
  const own = new Set(SETTING_KEYS.map(environmentName));
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !own.has(name)));
}

/** Whether its items are executed by processes of this worker. */
export function startsProcesses(manifest: Manifest): boolean {
  if (manifest.backend === "http") return manifest.spec.launch !== undefined;
  return manifest.backend !== "mock";
}

/** Executes nothing, and charges nobody. */
export const UNOPENED: Backend = {
  execute: () => Promise.resolve({ kind: "preempted" }),
  close: () => Promise.resolve(),
};

/** Opened for an item: one that cannot be is broken, as if it had found out itself. */
function openLate(plugin: Plugin, onOpened: (reason: string) => void): Backend {
  try {
    return plugin.open();
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    void Promise.resolve(describeError(error)).then(onOpened);
    return UNOPENED;
  }
}

/** Throws file_unwritable. */
export async function openWorkerPlugins(options: WorkerPluginsOptions): Promise<WorkerPlugins> {
  const { config, manifests, workerId, environment, ports, starter } = options;
  const { clock, events, log } = ports;
  // Beside the databases of workers, which are directories that nobody else touches.
  const { stateDir } = config.worker;
  const children = await ChildHost.open({
    directory: join(stateDir, "children", workerId),
    ...{ starter, clock, log },
  });
  const directory = join(stateDir, "attempts", workerId);
  // A worker that was killed has left its directory.
  await rm(directory, { recursive: true, force: true });
  const backendPorts: BackendPorts = {
    ...ports,
    ...{ children, directory, workerId, environment: withoutSettings(environment) },
    slots: config.worker.slots,
    maxOutputBytes: config.limits.outputBytes,
    maxCheckpointBytes: LIMITS.checkpointBytes,
    maxStateBytes: config.limits.stateBytes,
    checkpointIntervalMs: config.worker.checkpointIntervalMs,
    startTimeoutMs: config.worker.startTimeoutMs,
    onBroken: (plugin, reason) => sayBroken(plugin, reason),
  };
  const born: { source?: Plugins } = {};
  const sayBroken = ({ name, version }: Pick<Plugin, "name" | "version">, reason: string): void => {
    // Before it leaves: its last beats say why.
    if (born.source?.sayBroken(name, version, reason) !== false)
      return options.onBroken(failure("backend_broken", { plugin: name, reason }));
    log.warn(`version ${version} of plugin ${name} is not here any more: it does not start: ${reason}`);
  };
  const onOpened =
    ({ name, version }: Manifest) =>
    (reason: string | undefined): void => {
      if (reason === undefined) events.emit("plugin_loaded", { plugin: name, version });
      else sayBroken({ name, version }, reason);
    };
  const make = (manifest: Manifest): Plugin => {
    const plugin = pluginOf(manifest, backendPorts, onOpened(manifest));
    // At the start of the worker an error ends it, as ever.
    const open = (): Backend =>
      born.source === undefined ? plugin.open() : openLate(plugin, onOpened(manifest));
    return { ...plugin, open };
  };
  const open = (manifest: Manifest): OpenedPlugin => openPlugin(manifest, backendPorts, onOpened(manifest));
  const onCloseFailed = (error: unknown): void =>
    log.warn(`a backend did not end in good order: ${describeError(error)}`);
  const { hotReload, pluginDir, loadedVersions } = config.worker;
  const source = (born.source = new Plugins(manifests.map(make), onCloseFailed, { loadedVersions }));
  const intake = { plugins: source, make, open, ...ports };
  const reloads = hotReload
    ? manifests
        .filter(({ file }) => config.worker.plugins.includes(file))
        .map((manifest) => HotReload.start({ manifest, ...intake }))
    : [];
  const further =
    pluginDir === undefined ? undefined : await PluginDirectory.open({ directory: pluginDir, ...intake });
  return {
    source,
    close: async () => {
      await Promise.all([...reloads, ...(further === undefined ? [] : [further])].map((one) => one.stop()));
      await source.close();
      await children.close();
    },
  };
}
