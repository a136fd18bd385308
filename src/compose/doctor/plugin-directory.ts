// The directory of further versions that workers of this machine watch: what they would take from it, by their own rules, and what not and why.
// None of it ends a worker, so none of it is more than a warning. No code of a plugin is run.
import { join } from "node:path";
import { describeError, errnoOf } from "../../base/errors.ts";
import { LIMITS } from "../../config/limits.ts";
import { loadManifest, mockManifest } from "../../config/manifest.ts";
import type { Manifest } from "../../config/manifest.ts";
import { taskOf } from "../../config/task.ts";
import { silentLogger } from "../../observe/log.ts";
import { Plugins } from "../../worker/backends/plugins.ts";
import type { Plugin } from "../../worker/backends/versions.ts";
import { loadFollowed, refusalOf } from "../manifest-watch.ts";
import { manifestsIn } from "../plugin-directory.ts";
import { KnownManifests } from "../plugins.ts";
import { addVersion } from "../version-intake.ts";
import { UNOPENED } from "../worker-plugins.ts";
import type { Finding } from "./finding.ts";
import { examined, good, warning } from "./finding.ts";
import { examinePlugin } from "./plugins.ts";
import type { PluginLook } from "./plugins.ts";

const SUBJECT = "further version";
const HINT = "correct it: until then workers go on without it";

/** `files`: the manifests that the worker has by itself. Nothing where it watches no directory. */
export async function examinePluginDirectory(
  directory: string | undefined,
  files: readonly string[],
  look: PluginLook,
): Promise<readonly Finding[]> {
  if (directory === undefined) return [];
  const names = await manifestsIn(directory).catch(describedUnlessAbsent);
  if (names === undefined) return [good(SUBJECT, `none: there is no ${directory} yet`)];
  if (typeof names === "string") return [warning(SUBJECT, `none from ${directory}: ${names}`, HINT)];
  if (names.length === 0) return [good(SUBJECT, `none: no manifest is in ${directory}`)];
  const plugins = await ownPlugins(files);
  const findings: Finding[] = [];
  for (const name of names.slice(0, LIMITS.pluginsPerBeat))
    findings.push(await examineVersion(join(directory, name), plugins, look));
  const more = names.length - findings.length;
  return more === 0 ? findings : [...findings, warning(SUBJECT, `${more} more are not looked at`, HINT)];
}

/** Undefined for a directory that is not there. */
function describedUnlessAbsent(error: unknown): string | undefined {
  return errnoOf(error) === "ENOENT" ? undefined : describeError(error);
}

/** As the worker has them, without anything that executes. A manifest that is wrong has a finding of its own. */
async function ownPlugins(files: readonly string[]): Promise<Plugins> {
  const known = new KnownManifests();
  const manifests: Manifest[] = files.length === 0 ? [mockManifest()] : [];
  for (const file of files)
    await examined(SUBJECT, async () => {
      const manifest = await loadManifest(file);
      known.add(manifest);
      manifests.push(manifest);
      return [];
    });
  return new Plugins(manifests.map(unopened), () => undefined);
}

function unopened(manifest: Manifest): Plugin {
  const { name, version } = manifest;
  return { name, version, taskDigest: taskOf(manifest).digest, open: () => UNOPENED };
}

async function examineVersion(file: string, plugins: Plugins, look: PluginLook): Promise<Finding> {
  const manifest = await loadFollowed(file).catch(refusalOf);
  const refusal =
    typeof manifest === "string"
      ? manifest
      : addVersion({ plugins, make: unopened, log: silentLogger }, manifest);
  if (typeof manifest === "string" || refusal !== undefined)
    return warning(SUBJECT, `none from ${file}: ${refusal ?? ""}`, HINT);
  const { verdict, detail, hint } = await examinePlugin(manifest, look);
  return verdict === "good" ? good(SUBJECT, detail) : warning(SUBJECT, detail, hint ?? HINT);
}
