// Takes up a plugin whose files change, between items: the manifest, and the files that it names.
//
// Keeps true: what runs goes on with what it began with; a plugin that cannot be executed, or is another task, never replaces
// one that can.
import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { RolloutError, describeError } from "../base/errors.ts";
import { loadManifest } from "../config/manifest.ts";
import type { Manifest } from "../config/manifest.ts";
import { taskOf } from "../config/task.ts";
import type { EventEmitter } from "../observe/events.ts";
import type { Logger } from "../observe/log.ts";
import type { Plugins } from "../worker/backends/plugins.ts";
import type { OpenedPlugin } from "./plugins.ts";

export interface HotReloadOptions {
  /** The manifest that the plugin was made of. */
  readonly manifest: Manifest;
  readonly plugins: Plugins;
  readonly open: (manifest: Manifest) => OpenedPlugin;
  readonly clock: Clock;
  readonly events: EventEmitter;
  readonly log: Logger;
}

/** How often the files are looked at. A change counts when it has stood still from one look to the next. */
const LOOK_INTERVAL_MS = 500;
/** Words of a command that are looked at: enough for `python3 -u infer.py`. */
const WORDS_MAX = 16;
/** Larger files are known by size and time alone. */
const READ_MAX_BYTES = 16 * 1_024 * 1_024;

export class HotReload {
  readonly #options: HotReloadOptions;
  readonly #stopping = new AbortController();
  #manifest: Manifest;
  /** Files as they were when they were last judged. */
  #judged: string;
  #lastLook: string;
  #ended: Promise<void> = Promise.resolve();

  private constructor(options: HotReloadOptions, print: string) {
    this.#options = options;
    this.#manifest = options.manifest;
    this.#judged = print;
    this.#lastLook = print;
  }

  /** Looks until it is stopped. */
  static start(options: HotReloadOptions): HotReload {
    const reload = new HotReload(options, "");
    reload.#ended = reload.#watch();
    return reload;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#ended;
  }

  async #watch(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    this.#judged = this.#lastLook = await fingerprint(this.#manifest);
    for (;;) {
      await sleep(clock, LOOK_INTERVAL_MS, signal);
      if (signal.aborted) return;
      await this.#look();
    }
  }

  async #look(): Promise<void> {
    const print = await fingerprint(this.#manifest);
    const isStill = print === this.#lastLook;
    this.#lastLook = print;
    // A file that is being written is judged when its writer is done with it.
    if (!isStill || print === this.#judged) return;
    this.#judged = print;
    const refusal = await this.#reload();
    if (refusal === undefined) return;
    const { name, version } = this.#manifest;
    this.#options.log.warn(`plugin ${name} stays at version ${version}: ${refusal}`);
  }

  /** Why not, if it is not. */
  async #reload(): Promise<string | undefined> {
    const { plugins, events, log } = this.#options;
    const before = this.#manifest;
    const after = await loadManifest(before.file).catch(refusalOf);
    if (typeof after === "string") return after;
    if (after.name !== before.name) return `the manifest is of a plugin ${after.name} now`;
    const [was, is] = [taskOf(before), taskOf(after)];
    if (!is.digest.equals(was.digest))
      return `another task needs a run of its own: it was ${was.summary}, and is ${is.summary}`;
    const { plugin, obstacle } = this.#options.open(after);
    const reason = await obstacle;
    if (reason !== undefined || this.#stopping.signal.aborted) {
      await plugin.backend.close();
      return reason;
    }
    plugins.replace(plugin);
    this.#manifest = after;
    // It may name other files.
    this.#judged = this.#lastLook = await fingerprint(after);
    const { name, version } = after;
    events.emit("plugin_reloaded", { plugin: name, version, previous_version: before.version });
    log.info(`plugin ${name} is reloaded: version ${before.version} before, ${version} now`);
    return undefined;
  }
}

function refusalOf(error: unknown): string {
  if (error instanceof RolloutError) return `${describeError(error)} (${error.hint})`;
  throw error;
}

/** Equal as long as no file has changed. */
async function fingerprint(manifest: Manifest): Promise<string> {
  const prints = await Promise.all(filesOf(manifest).map(filePrint));
  return prints.join("\n");
}

/** The manifest, and what it names; a word of a command that is no file has no print. */
function filesOf(manifest: Manifest): string[] {
  const { file, directory, workingDirectory } = manifest;
  switch (manifest.backend) {
    case "module":
    case "machine":
    case "actor":
      return [file, resolve(directory, manifest.spec.module)];
    case "command":
    case "process":
      return [
        file,
        ...manifest.spec.command.slice(0, WORDS_MAX).map((word) => resolve(workingDirectory, word)),
      ];
    case "mock":
    case "http":
      return [file];
  }
}

async function filePrint(file: string): Promise<string> {
  try {
    const found = await stat(file);
    if (!found.isFile()) return "";
    if (found.size > READ_MAX_BYTES) return `${found.size} ${found.mtimeMs}`;
    return createHash("sha256")
      .update(await readFile(file))
      .digest("hex");
  } catch {
    // It is not there, or cannot be read, which is what whoever needs it will say.
    return "";
  }
}
