// The plugins that workers of this machine would have: whether their manifests are right, and whether what they name is there.
// No code of a plugin is run.
import { access, constants, stat } from "node:fs/promises";
import { resolve } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { failure } from "../../base/errors.ts";
import { systemReason } from "../../base/system-reason.ts";
import { loadManifest } from "../../config/manifest.ts";
import type { Manifest, ManifestOf, ModuleManifest } from "../../config/manifest.ts";
import { findProgram } from "../../worker/children/program-search.ts";
import { isTemplate } from "../../worker/backends/command/argv-template.ts";
import { exchange } from "../../transport/exchange.ts";
import { fillHeaders } from "../../worker/backends/http/headers.ts";
import { KnownManifests } from "../plugins.ts";
import type { Finding } from "./finding.ts";
import { examined, good, warning } from "./finding.ts";

export interface PluginLook {
  /** The environment of processes that execute items. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
}

/** A thing that is looked at, and what was found of it. */
type Sight =
  | { readonly kind: "there"; readonly what: string }
  | { readonly kind: "missing"; readonly reason: string }
  /** It may be there when it is needed. */
  | { readonly kind: "doubtful"; readonly what: string; readonly hint: string };

const SUBJECT = "plugin";
/** How long a server may take to say something. */
const ANSWER_MS = 3_000;

export async function examinePlugins(
  files: readonly string[],
  look: PluginLook,
): Promise<readonly Finding[]> {
  if (files.length === 0) return [good(SUBJECT, "no manifests: workers have the plugin mock")];
  const known = new KnownManifests();
  const findings: Finding[] = [];
  for (const file of files)
    findings.push(
      ...(await examined(SUBJECT, async () => {
        const manifest = await loadManifest(file);
        known.add(manifest);
        return [await examinePlugin(manifest, look)];
      })),
    );
  return findings;
}

export async function examinePlugin(manifest: Manifest, look: PluginLook): Promise<Finding> {
  const { name, version, backend, file } = manifest;
  const sight = await lookAt(manifest, look);
  const about = `${name}@${version} (${backend})`;
  switch (sight.kind) {
    case "there":
      return good(SUBJECT, `${about}: ${sight.what}`);
    case "doubtful":
      return warning(SUBJECT, `${about}: ${sight.what}`, sight.hint);
    case "missing": {
      const error = failure("backend_broken", { plugin: name, reason: sight.reason });
      return { subject: SUBJECT, verdict: "failure", detail: error.message, hint: `correct ${file}`, error };
    }
  }
}

function lookAt(manifest: Manifest, look: PluginLook): Promise<Sight> {
  switch (manifest.backend) {
    case "mock":
      return Promise.resolve({ kind: "there", what: "it pretends to work" });
    case "command": {
      const [first = ""] = manifest.spec.command;
      if (manifest.spec.shell) return programOf("/bin/sh", manifest, look);
      // Each item names its own.
      return isTemplate(first) ? workingDirectoryOf(manifest) : programOf(first, manifest, look);
    }
    case "process":
      return programOf(manifest.spec.command[0] ?? "", manifest, look);
    case "http":
      return serverOf(manifest, look);
    case "module":
    case "machine":
    case "actor":
      return moduleOf(manifest);
  }
}

async function programOf(
  program: string,
  { workingDirectory, spec }: ManifestOf<"command"> | ManifestOf<"process"> | ManifestOf<"http">,
  { environment }: PluginLook,
): Promise<Sight> {
  const path = spec.env["PATH"] ?? environment["PATH"];
  const found = await findProgram(program, workingDirectory, path);
  return found.kind === "missing" ? found : { kind: "there", what: `the program ${found.path} is there` };
}

/** Where its processes are started. */
async function workingDirectoryOf({ workingDirectory }: Manifest): Promise<Sight> {
  const found = await findProgram(process.execPath, workingDirectory, undefined);
  return found.kind === "missing" ? found : { kind: "there", what: `it is run in ${workingDirectory}` };
}

async function moduleOf(manifest: ModuleManifest): Promise<Sight> {
  const file = resolve(manifest.directory, manifest.spec.module);
  try {
    if (!(await stat(file)).isFile()) return { kind: "missing", reason: `the module ${file} is not a file` };
    await access(file, constants.R_OK);
  } catch (error) {
    return { kind: "missing", reason: `the module ${file}: ${systemReason(error)}` };
  }
  const directory = await workingDirectoryOf(manifest);
  return directory.kind === "missing" ? directory : { kind: "there", what: `the module ${file} is there` };
}

async function serverOf(manifest: ManifestOf<"http">, look: PluginLook): Promise<Sight> {
  const { url, launch, headers } = manifest.spec;
  const [program] = launch ?? [];
  const launched = program === undefined ? undefined : await programOf(program, manifest, look);
  if (launched?.kind === "missing") return launched;
  const filled = fillHeaders(headers, look.environment);
  if (filled.kind === "refused")
    return { kind: "doubtful", what: filled.reason, hint: "set it where the worker is started" };
  if (launched !== undefined) return launched;
  const { origin } = new URL(url);
  const reason = await silenceOf(origin, look.clock);
  return reason === undefined
    ? { kind: "there", what: `a server answers at ${origin}` }
    : {
        kind: "doubtful",
        what: `there is no server at ${origin}: ${reason}`,
        hint: "start it before the items: workers wait for it, for as long as ready_timeout says",
      };
}

/** Why nobody can be asked there; undefined when somebody can, whatever they say. */
async function silenceOf(origin: string, clock: Clock): Promise<string | undefined> {
  const end = await exchange({
    url: new URL(origin),
    method: "HEAD",
    headers: { "user-agent": "rollout" },
    body: undefined,
    agent: undefined,
    silenceMs: ANSWER_MS,
    limitBytes: 0,
    clock,
    signal: new AbortController().signal,
  });
  return end.kind === "unreachable" ? end.reason : undefined;
}
