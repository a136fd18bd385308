// From manifests to plugins: reads the files, and picks what executes them.
import { join, resolve } from "node:path";
import { failure } from "../base/errors.ts";
import { newUlid } from "../base/ids.ts";
import type { WorkerId } from "../base/ids.ts";
import type { MockSpec } from "../config/manifest-fields.ts";
import { loadManifest } from "../config/manifest.ts";
import type { Manifest, ModuleManifest } from "../config/manifest.ts";
import { taskOf } from "../config/task.ts";
import type { Backend } from "../worker/backends/backend.ts";
import type { Children } from "../worker/children/child.ts";
import { actorBackend, machineBackend, moduleBackend } from "../worker/backends/code/code-backend.ts";
import type { CodeBackend } from "../worker/backends/code/code-backend.ts";
import { CommandBackend } from "../worker/backends/command/command-backend.ts";
import { HttpBackend } from "../worker/backends/http/http-backend.ts";
import type { SleepDistribution } from "../worker/backends/mock/mock-backend.ts";
import { openExecutionJournal, MockBackend } from "../worker/backends/mock/mock-backend.ts";
import { ProcessBackend } from "../worker/backends/process/process-backend.ts";
import type { Plugin } from "../worker/backends/versions.ts";
import type { ProcessPorts } from "./process-ports.ts";

/** Needs of backends from the process that they are in. */
export interface BackendPorts extends Pick<ProcessPorts, "clock" | "random" | "log"> {
  readonly workerId: WorkerId;
  /** How many items the worker executes at once. */
  readonly slots: number;
  readonly maxOutputBytes: number;
  readonly maxCheckpointBytes: number;
  readonly maxStateBytes: number;
  /** How often the checkpoint of a running attempt may leave the worker. */
  readonly checkpointIntervalMs: number;
  /** How long there may be no room for any process or file. */
  readonly startTimeoutMs: number;
  /** For the files of attempts: made when it is needed, and this worker's own. */
  readonly directory: string;
  /** The worker's environment, which its children begin with. */
  readonly environment: Readonly<Record<string, string>>;
  readonly children: Children;
  /** The backend of that plugin and version cannot start at all, and no item is charged for it. */
  readonly onBroken: (plugin: Pick<Plugin, "name" | "version">, reason: string) => void;
}

/** A plugin whose backend has been made, for its first opening, and why it cannot be executed: undefined when it can, or nobody knows before there is an item. */
export interface OpenedPlugin {
  readonly plugin: Plugin;
  readonly backend: Backend;
  readonly obstacle: Promise<string | undefined>;
}

/** Where a manifest was found before, of the same plugin and version. */
export class KnownManifests {
  readonly #files = new Map<string, string>();

  /** Throws `plugin_repeated`. */
  add({ name, version, file }: Manifest): void {
    const key = `${name}@${version}`;
    const other = this.#files.get(key);
    if (other !== undefined) throw failure("plugin_repeated", { file, name, version, other });
    this.#files.set(key, file);
  }
}

/** In the order of the files. Throws what `loadManifest` throws, and `plugin_repeated`. */
export async function loadManifests(files: readonly string[]): Promise<Manifest[]> {
  const known = new KnownManifests();
  const manifests: Manifest[] = [];
  for (const file of files) {
    const manifest = await loadManifest(file);
    known.add(manifest);
    manifests.push(manifest);
  }
  return manifests;
}

/**
 * Its backend is made when it is opened. `onOpened` is told of each opening, as soon as it is known whether it can be executed, and
 * why not.
 */
export function pluginOf(
  manifest: Manifest,
  ports: BackendPorts,
  onOpened: (reason: string | undefined) => void,
): Plugin {
  const { name, version, itemTimeoutMs } = manifest;
  const stateVersion = manifest.backend === "actor" ? manifest.spec.stateVersion : undefined;
  const what = { name, version, stateVersion, itemTimeoutMs, taskDigest: taskOf(manifest).digest };
  return {
    ...what,
    open: () => {
      const { backend, obstacle = Promise.resolve(undefined) } = openBackend(manifest, ports);
      void obstacle.then(onOpened);
      return backend;
    },
  };
}

/** Made for a first opening, of which `onOpened` is not told: starts what can be started before there is an item. */
export function openPlugin(
  manifest: Manifest,
  ports: BackendPorts,
  onOpened: (reason: string | undefined) => void,
): OpenedPlugin {
  const plugin = pluginOf(manifest, ports, onOpened);
  const { backend, obstacle = Promise.resolve(undefined) } = openBackend(manifest, ports);
  let first: Backend | undefined = backend;
  const open = (): Backend => {
    const opened = first ?? plugin.open();
    first = undefined;
    return opened;
  };
  return { plugin: { ...plugin, open }, backend, obstacle };
}

interface OpenedBackend {
  readonly backend: Backend;
  readonly obstacle?: Promise<string | undefined>;
}

/** Throws file_unwritable for the journal of the mock backend. */
function openBackend(manifest: Manifest, ports: BackendPorts): OpenedBackend {
  const { environment, clock, random } = ports;
  const { workingDirectory } = manifest;
  const shared = {
    ...ports,
    ...{ workingDirectory, cwd: workingDirectory, env: environment },
    onBroken: (reason: string): void => ports.onBroken(manifest, reason),
  };
  switch (manifest.backend) {
    case "mock":
      return { backend: mockBackend(manifest.spec, ports) };
    case "command": {
      const { spec } = manifest;
      // A successor begins before this one has ended.
      const directory = join(ports.directory, newUlid(clock, random));
      const options = { ...shared, ...spec, env: { ...environment, ...spec.env }, directory };
      return { backend: new CommandBackend(options) };
    }
    case "process": {
      const { spec } = manifest;
      const env = { ...environment, ...spec.env };
      return { backend: new ProcessBackend({ ...shared, ...spec, env }) };
    }
    case "http":
      return prepared(new HttpBackend({ ...shared, spec: manifest.spec }));
    case "module":
      return prepared(moduleBackend({ ...shared, ...manifest.spec, ...ownOf(manifest, environment) }));
    case "machine":
      return prepared(machineBackend({ ...shared, ...manifest.spec, ...ownOf(manifest, environment) }));
    case "actor":
      return prepared(actorBackend({ ...shared, ...manifest.spec, ...ownOf(manifest, environment) }));
  }
}

/** The file and the environment of a backend of a user's code. */
function ownOf(
  { directory, spec }: ModuleManifest,
  environment: BackendPorts["environment"],
): { readonly module: string; readonly env: BackendPorts["environment"] } {
  return { module: resolve(directory, spec.module), env: { ...environment, ...spec.env } };
}

function prepared(backend: CodeBackend | HttpBackend): OpenedBackend {
  return { backend, obstacle: backend.prepare() };
}

/** The mock backend as a manifest or the configuration describes it. Throws file_unwritable for its journal. */
function mockBackend(
  mock: MockSpec,
  { clock, random, workerId }: Pick<ProcessPorts, "clock" | "random"> & { readonly workerId: WorkerId },
): MockBackend {
  const { journal: file, failurePercent, stateBytes } = mock;
  const options = { clock, random, sleep: sleepOf(mock), failureRate: failurePercent / 100, stateBytes };
  return new MockBackend(
    file === undefined ? options : { ...options, journal: openExecutionJournal(file, workerId) },
  );
}

function sleepOf({ sleepMs, distribution }: MockSpec): SleepDistribution {
  switch (distribution) {
    case "constant":
      return { kind: "constant", ms: sleepMs };
    case "uniform":
      return { kind: "uniform", minMs: 0, maxMs: 2 * sleepMs };
    case "exponential":
      return { kind: "exponential", meanMs: sleepMs };
  }
}
