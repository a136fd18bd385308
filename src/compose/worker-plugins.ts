// The plugins of a worker process: those of its manifests, or the one that it has without any, and with hot reload their
// successors.
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describeError, failure } from "../base/errors.ts";
import type { RolloutError } from "../base/errors.ts";
import type { WorkerId } from "../base/ids.ts";
import { mockManifest } from "../config/manifest.ts";
import type { Manifest } from "../config/manifest.ts";
import { LIMITS } from "../config/limits.ts";
import type { ClientConfig } from "../config/resolve.ts";
import { SETTING_KEYS, environmentName } from "../config/schema.ts";
import { ChildHost } from "../worker/children/child-host.ts";
import type { Starter } from "../worker/children/starter.ts";
import { Plugins } from "../worker/backends/plugins.ts";
import { HotReload } from "./hot-reload.ts";
import { loadManifests, openPlugin } from "./plugins.ts";
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
  const open = (manifest: Manifest): OpenedPlugin =>
    openPlugin(manifest, {
      ...ports,
      ...{ children, directory, workerId, environment: withoutSettings(environment) },
      slots: config.worker.slots,
      maxOutputBytes: config.limits.outputBytes,
      maxCheckpointBytes: LIMITS.checkpointBytes,
      maxStateBytes: config.limits.stateBytes,
      checkpointIntervalMs: config.worker.checkpointIntervalMs,
      startTimeoutMs: config.worker.startTimeoutMs,
      onBroken: (plugin, reason) => sayBroken(plugin, reason),
    } satisfies BackendPorts);
  const born: { source?: Plugins } = {};
  const sayBroken = (plugin: string, reason: string): void => {
    // Before it leaves: its last beats say why.
    born.source?.sayBroken(plugin, reason);
    options.onBroken(failure("backend_broken", { plugin, reason }));
  };
  const opened = manifests.map(open);
  const onCloseFailed = (error: unknown): void =>
    log.warn(`a backend did not end in good order: ${describeError(error)}`);
  const source = (born.source = new Plugins(
    opened.map(({ plugin }) => plugin),
    onCloseFailed,
  ));
  for (const { plugin, obstacle } of opened)
    void obstacle.then((reason) => {
      const { name, version } = plugin;
      if (reason === undefined) events.emit("plugin_loaded", { plugin: name, version });
      else sayBroken(name, reason);
    });
  const reloads = config.worker.hotReload
    ? manifests
        .filter(({ file }) => config.worker.plugins.includes(file))
        .map((manifest) => HotReload.start({ manifest, open, plugins: source, ...ports }))
    : [];
  return {
    source,
    close: async () => {
      await Promise.all(reloads.map((reload) => reload.stop()));
      await source.close();
      await children.close();
    },
  };
}
