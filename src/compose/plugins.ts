// From manifests to plugins: reads the files, and picks what executes them.
import { join, resolve } from "node:path";
import { failure } from "../base/errors.ts";
import { newUlid } from "../base/ids.ts";
import type { WorkerId } from "../base/ids.ts";
import type { MockSpec } from "../config/manifest-fields.ts";
import { loadManifest } from "../config/manifest.ts";
import type { Manifest, ModuleManifest } from "../config/manifest.ts";
import type { Backend } from "../worker/backends/backend.ts";
import type { Children } from "../worker/children/child.ts";
import { actorBackend, machineBackend, moduleBackend } from "../worker/backends/code/code-backend.ts";
import type { CodeBackend } from "../worker/backends/code/code-backend.ts";
import { CommandBackend } from "../worker/backends/command/command-backend.ts";
import { HttpBackend } from "../worker/backends/http/http-backend.ts";
import type { SleepDistribution } from "../worker/backends/mock/mock-backend.ts";
import { openExecutionJournal, MockBackend } from "../worker/backends/mock/mock-backend.ts";
import { ProcessBackend } from "../worker/backends/process/process-backend.ts";
import type { Plugin } from "../worker/backends/plugins.ts";
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
  /** The backend of that plugin cannot start at all: the worker has to end without charging any item. */
  readonly onBroken: (plugin: string, reason: string) => void;
}

/** A plugin, and whether it can be executed: undefined when it can, or nobody knows before there is an item. */
export interface OpenedPlugin {
  readonly plugin: Plugin;
  readonly obstacle: Promise<string | undefined>;
}

/** In the order of the files. Throws what `loadManifest` throws, and `plugin_repeated`. */
export async function loadManifests(files: readonly string[]): Promise<Manifest[]> {
  const manifests = new Map<string, Manifest>();
  for (const file of files) {
    const manifest = await loadManifest(file);
    const { name } = manifest;
    const other = manifests.get(name);
    if (other !== undefined)
      throw failure("plugin_repeated", { file: manifest.file, name, other: other.file });
    manifests.set(name, manifest);
  }
  return [...manifests.values()];
}

/** Starts what can be started before there is an item. Throws file_unwritable for the journal of the mock backend. */
export function openPlugin(manifest: Manifest, ports: BackendPorts): OpenedPlugin {
  const { name, version, itemTimeoutMs } = manifest;
  const { backend, obstacle = Promise.resolve(undefined) } = openBackend(manifest, ports);
  const stateVersion = manifest.backend === "actor" ? manifest.spec.stateVersion : undefined;
  return { plugin: { name, version, stateVersion, backend, itemTimeoutMs }, obstacle };
}

interface OpenedBackend {
  readonly backend: Backend;
  readonly obstacle?: Promise<string | undefined>;
}

function openBackend(manifest: Manifest, ports: BackendPorts): OpenedBackend {
  const { environment, clock, random } = ports;
  const { workingDirectory } = manifest;
  const shared = {
    ...ports,
    ...{ workingDirectory, cwd: workingDirectory, env: environment },
    onBroken: (reason: string): void => ports.onBroken(manifest.name, reason),
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
