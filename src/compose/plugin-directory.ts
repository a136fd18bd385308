// Manifests of further versions in a directory that is watched: whoever puts one there, or a link to one, gives the version to every
// worker that watches it, without a restart.
//
// Keeps true: the directory and each manifest belong to this user or to root, by the file that a link leads to; one that cannot be taken
// up is a warning and ends no worker; a version stays when its file goes, because items may name it.
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { describeError, errnoOf } from "../base/errors.ts";
import { demandTrusted } from "../base/trusted-place.ts";
import { LIMITS } from "../config/limits.ts";
import { LOOK_INTERVAL_MS, ManifestWatch } from "./manifest-watch.ts";
import { takeUp } from "./version-intake.ts";
import type { IntakeOptions } from "./version-intake.ts";

const MANIFEST = /^[^.].*\.toml$/;

/** Names of files, in order. Throws not_trusted and what the system throws. */
export async function manifestsIn(directory: string): Promise<string[]> {
  await demandTrusted(directory);
  return (await readdir(directory)).filter((name) => MANIFEST.test(name)).sort();
}

export interface PluginDirectoryOptions extends Omit<IntakeOptions, "signal"> {
  /** It need not be there yet. */
  readonly directory: string;
  readonly clock: Clock;
}

export class PluginDirectory {
  readonly #options: PluginDirectoryOptions;
  readonly #stopping = new AbortController();
  readonly #watches = new Map<string, ManifestWatch>();
  /** The reason why it could not be read, as it was said last. */
  #trouble = "";
  #ended: Promise<void> = Promise.resolve();

  private constructor(options: PluginDirectoryOptions) {
    this.#options = options;
  }

  /** With what is in it now taken up; looks until it is stopped. */
  static async open(options: PluginDirectoryOptions): Promise<PluginDirectory> {
    const directory = new PluginDirectory(options);
    await directory.#look({ isStill: true });
    directory.#ended = directory.#watch();
    return directory;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#ended;
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stopping;
    for (;;) {
      await sleep(this.#options.clock, LOOK_INTERVAL_MS, signal);
      if (signal.aborted) return;
      await this.#look({ isStill: false });
    }
  }

  async #look(how: { readonly isStill: boolean }): Promise<void> {
    for (const name of await this.#names()) {
      let watch = this.#watches.get(name);
      if (watch === undefined) this.#watches.set(name, (watch = this.#watchOf(name)));
      await watch.look(how);
    }
  }

  #watchOf(name: string): ManifestWatch {
    const { directory, log } = this.#options;
    const file = join(directory, name);
    const intake = { ...this.#options, signal: this.#stopping.signal };
    return new ManifestWatch({
      ...{ file, taken: undefined },
      takeUp: (after, before) => takeUp(intake, after, before),
      onRefused: (reason) => log.warn(`no version is taken from ${file}: ${reason}`),
    });
  }

  /** No more than there are plugins in a beat: those that were seen first stay. */
  async #names(): Promise<string[]> {
    const { directory } = this.#options;
    const seen = [...this.#watches.keys()];
    try {
      const added = (await manifestsIn(directory)).filter((name) => !this.#watches.has(name));
      const names = [...seen, ...added];
      this.#say(
        names.length > LIMITS.pluginsPerBeat ? `more than ${LIMITS.pluginsPerBeat} manifests in it` : "",
      );
      return names.slice(0, LIMITS.pluginsPerBeat);
    } catch (error) {
      if (errnoOf(error) !== "ENOENT") this.#say(describeError(error));
      return [];
    }
  }

  #say(trouble: string): void {
    if (trouble !== "" && trouble !== this.#trouble)
      this.#options.log.warn(
        `not every version in ${this.#options.directory} (worker.plugin_dir) is taken up: ${trouble}`,
      );
    this.#trouble = trouble;
  }
}
