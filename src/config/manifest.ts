// A plugin's manifest: which backend executes items, and how. Read strictly: whatever is unknown, of another type or out of
// range is refused with the file, the line, the key and what is allowed.
import { dirname, resolve } from "node:path";
import { stringify } from "smol-toml";
import { assert } from "../base/assert.ts";
import { demandTrusted } from "../base/trusted-place.ts";
import { FieldReader } from "./field-reader.ts";
import { refusalOfHttp } from "./http-rules.ts";
import { LIMITS } from "./limits.ts";
import { BACKEND_KINDS, fieldsOf } from "./manifest-fields.ts";
import type { BackendKind, SpecOf } from "./manifest-fields.ts";
import { nearestName } from "./nearest.ts";
import { parseConfigText, readTrustedText } from "./toml-file.ts";
import { nameOf } from "./value.ts";
import type { FieldRule } from "./field.ts";

interface ManifestBase {
  /** The file's absolute path; where it would stand when it was made of a command line. */
  readonly file: string;
  readonly name: string;
  readonly version: string;
  /** How long one attempt may take, unless the run says so. */
  readonly itemTimeoutMs: number | undefined;
  /** The directory for relative paths in it. */
  readonly directory: string;
  /** Where processes of it are started; `directory` unless said. */
  readonly workingDirectory: string;
}

/** A manifest with the spec of its backend; `backend` says which. */
export type ManifestOf<Kind extends BackendKind> = ManifestBase & {
  readonly backend: Kind;
  readonly spec: SpecOf<Kind>;
};
export type Manifest = { readonly [Kind in BackendKind]: ManifestOf<Kind> }[BackendKind];

/** A manifest whose backend loads a user's JavaScript. */
export type ModuleManifest = ManifestOf<"module"> | ManifestOf<"machine"> | ManifestOf<"actor">;

/** The plugin that a command line makes when no manifest is named. */
const COMMAND_PLUGIN = "command";
/** The plugin that a file of actors makes when no manifest is named. */
const ACTOR_PLUGIN = "actors";
/** The plugin that a worker has when no manifest is named. */
const MOCK_PLUGIN = "mock";

const NAME = /^[a-z0-9][a-z0-9-]*$/;

const COMMON = {
  name: { kind: "text", required: true, maxBytes: LIMITS.pluginTextBytes },
  version: { kind: "text", required: true, maxBytes: LIMITS.pluginTextBytes },
  backend: { kind: "choice", required: true, choices: BACKEND_KINDS },
  item_timeout: { kind: "duration", min: "100ms", max: "30d" },
  working_directory: { kind: "path" },
} as const satisfies Record<string, FieldRule>;

/** Throws `manifest_unreadable`, `not_trusted` and what `parseManifest` throws. `file` is relative to the working directory. */
export async function loadManifest(file: string): Promise<Manifest> {
  const path = resolve(file);
  const manifest = parseManifest(path, await readTrustedText(path, "manifest_unreadable"));
  // The worker executes it, or has it loaded.
  if (loadsModule(manifest)) await demandTrusted(resolve(manifest.directory, manifest.spec.module));
  return manifest;
}

function loadsModule(manifest: Manifest): manifest is ModuleManifest {
  return manifest.backend === "module" || manifest.backend === "machine" || manifest.backend === "actor";
}

/**
 * Throws `config_syntax`, `config_unknown_key`, `config_missing_key` or `config_invalid_value`. `file` is absolute.
 * @internal
 */
export function parseManifest(file: string, text: string): Manifest {
  const reader = readerOf(file, text);
  const name = reader.read("name", COMMON.name);
  if (!NAME.test(name))
    throw reader.refusal("name", "a to z, 0 to 9 and -, beginning with a letter or digit");
  const backend = reader.read("backend", COMMON.backend);
  refuseUnknown(reader, backend);
  const directory = dirname(file);
  const manifest = {
    file,
    name,
    version: reader.read("version", COMMON.version),
    itemTimeoutMs: reader.read("item_timeout", COMMON.item_timeout),
    directory,
    workingDirectory: reader.read("working_directory", COMMON.working_directory) ?? directory,
    backend,
    spec: Object.fromEntries(
      fieldsOf(backend).map(([key, field]) => [nameOf(key, field), reader.read(`${backend}.${key}`, field)]),
    ),
    // Each value was made by the rule of its own field.
  } as Manifest;
  refuseContradiction(manifest, reader);
  return Object.freeze(manifest);
}

/**
 * The manifest that stands for a command line: a process for each item. `workingDirectory` is absolute, and where the command
 * is meant. Throws `config_invalid_value` for a command line that no manifest can hold.
 */
export function commandManifest(command: readonly string[], workingDirectory: string): Manifest {
  return parseManifest(
    resolve(workingDirectory, "command line"),
    commandManifestText(command, workingDirectory),
  );
}

/** The same as a file, for workers to read: wherever it stands, it means the same. Without a directory: for hosts, which have their own. */
export function commandManifestText(
  command: readonly string[],
  workingDirectory: string | undefined,
): string {
  return stringify({
    name: COMMAND_PLUGIN,
    version: "1",
    backend: "command",
    ...(workingDirectory !== undefined && { working_directory: workingDirectory }),
    command: { command },
  });
}

/** The file that has actors, and the names of its exports that are types of them. */
export interface ActorModule {
  readonly module: string;
  readonly types: readonly string[];
  /** 1 unless said. */
  readonly stateVersion?: number;
}

/** The manifest that stands for a file of actors. `workingDirectory` is absolute. Throws `config_invalid_value` for what no manifest can hold. */
export function actorManifest(actors: ActorModule, workingDirectory: string): Manifest {
  return parseManifest(resolve(workingDirectory, "actors"), actorManifestText(actors, workingDirectory));
}

/** The same as a file, for workers to read: wherever it stands, it means the same. */
export function actorManifestText(
  { module, types, stateVersion = 1 }: ActorModule,
  workingDirectory: string,
): string {
  return stringify({
    name: ACTOR_PLUGIN,
    version: "1",
    backend: "actor",
    working_directory: workingDirectory,
    actor: { module: resolve(workingDirectory, module), types: [...types], state_version: stateVersion },
  });
}

/** The plugin of a worker without manifests, and so the task of items that are submitted without one. */
export function mockManifest(spec: Partial<SpecOf<"mock">> = {}): ManifestOf<"mock"> {
  const text = stringify({ name: MOCK_PLUGIN, version: "1", backend: "mock" });
  const manifest = parseManifest(resolve("mock"), text);
  assert(manifest.backend === "mock", "it is what was written");
  return Object.freeze({ ...manifest, spec: { ...manifest.spec, ...spec } });
}

/** Rules between fields, which their types cannot say. */
function refuseContradiction(manifest: Manifest, reader: FieldReader): void {
  if (manifest.backend === "command" && manifest.spec.shell && manifest.spec.command.length !== 1)
    throw reader.refusal("command.command", "one text in a list, because command.shell is true");
  const refusal = manifest.backend === "http" ? refusalOfHttp(manifest.spec) : undefined;
  if (refusal !== undefined) throw reader.refusal(`http.${refusal.key}`, refusal.allowed);
}

function readerOf(file: string, text: string): FieldReader {
  const isSection = (name: string): boolean => BACKEND_KINDS.some((kind) => kind === name);
  return new FieldReader(file, parseConfigText(file, text, isSection));
}

function refuseUnknown(reader: FieldReader, backend: BackendKind): void {
  const known = [...Object.keys(COMMON), ...fieldsOf(backend).map(([key]) => `${backend}.${key}`)];
  for (const setting of reader.settings) {
    if (known.includes(setting.key)) continue;
    if (setting.key === backend) throw reader.refusal(backend, `a table, written [${backend}]`);
    throw reader.unknown(setting, suggest(setting.key, backend, known));
  }
}

function suggest(key: string, backend: BackendKind, known: readonly string[]): string {
  const [table = ""] = key.split(".", 1);
  if (table !== backend && BACKEND_KINDS.some((kind) => kind === table))
    return `backend is "${backend}": its table is [${backend}]`;
  const bare = known.find((name) => name === `${backend}.${key}`);
  if (bare !== undefined) return `write it below [${backend}]`;
  const nearest = nearestName(key, known);
  return nearest === undefined ? `known are ${known.join(", ")}` : `did you mean ${nearest}?`;
}
