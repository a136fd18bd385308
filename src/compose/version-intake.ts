// A manifest that has changed, or is new, becomes part of a worker's plugins: as the successor of the version that it was of, when it
// runs the same task, and as a version beside the others when it is another task under another version.
//
// Keeps true: what runs goes on with what it began with; a plugin that cannot be executed never replaces one that can; a version never
// becomes another task.
import type { Manifest } from "../config/manifest.ts";
import { taskOf } from "../config/task.ts";
import type { EventEmitter } from "../observe/events.ts";
import type { Logger } from "../observe/log.ts";
import type { Plugins } from "../worker/backends/plugins.ts";
import type { Plugin } from "../worker/backends/versions.ts";
import type { OpenedPlugin } from "./plugins.ts";

export interface IntakeOptions {
  readonly plugins: Plugins;
  /** A plugin that is opened when its first item comes. */
  readonly make: (manifest: Manifest) => Plugin;
  /** One that is open, to see whether it can be executed. */
  readonly open: (manifest: Manifest) => OpenedPlugin;
  /** Aborts when nothing is to be taken up any more. */
  readonly signal: AbortSignal;
  readonly events: EventEmitter;
  readonly log: Logger;
}

/** Why not, if it is not. `before`: the manifest as it was last taken up. */
export async function takeUp(
  options: IntakeOptions,
  after: Manifest,
  before: Manifest | undefined,
): Promise<string | undefined> {
  if (before === undefined) return addVersion(options, after);
  if (after.name !== before.name) return `the manifest is of a plugin ${after.name} now`;
  const [was, is] = [taskOf(before), taskOf(after)];
  if (is.digest.equals(was.digest)) return succeed(options, after, before);
  if (after.version !== before.version) return addVersion(options, after);
  return `another task needs a run of its own, or a version of its own: it was ${was.summary}, and is ${is.summary}`;
}

/** Why not, if it is not added. A version that is here with the same task may have come by another file, and is left as it is. */
export function addVersion(
  { plugins, make, log }: Pick<IntakeOptions, "plugins" | "make" | "log">,
  manifest: Manifest,
): string | undefined {
  const { name, version } = manifest;
  const known = plugins.find(name, version)?.taskDigest;
  if (known !== undefined && taskOf(manifest).digest.equals(known)) return undefined;
  if (known !== undefined) return `this worker has another task as version ${version} of ${name} already`;
  const refusal = plugins.add(make(manifest));
  if (refusal === undefined) log.info(`version ${version} of plugin ${name} is here beside the others`);
  return refusal;
}

async function succeed(
  { plugins, make, open, signal, events, log }: IntakeOptions,
  after: Manifest,
  before: Manifest,
): Promise<string | undefined> {
  const { name, version } = after;
  if (plugins.find(name, before.version) === undefined)
    return `version ${before.version} is not here any more`;
  if (version !== before.version && plugins.find(name, version) !== undefined)
    return `this worker has a version ${version} of ${name} already`;
  if (plugins.opensSuccessor(name, before.version)) {
    const { plugin, backend, obstacle } = open(after);
    const reason = await obstacle;
    if (reason !== undefined || signal.aborted) {
      await backend.close();
      return reason;
    }
    plugins.replace(before.version, plugin);
  } else plugins.replace(before.version, make(after), { opens: false });
  events.emit("plugin_reloaded", { plugin: name, version, previous_version: before.version });
  log.info(`plugin ${name} is reloaded: version ${before.version} before, ${version} now`);
  return undefined;
}
