// Takes up a plugin whose files change, between items: the manifest, and the files that it names.
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import type { Manifest } from "../config/manifest.ts";
import { LOOK_INTERVAL_MS, ManifestWatch } from "./manifest-watch.ts";
import { takeUp } from "./version-intake.ts";
import type { IntakeOptions } from "./version-intake.ts";

export interface HotReloadOptions extends Omit<IntakeOptions, "signal"> {
  /** The manifest that the plugin was made of. */
  readonly manifest: Manifest;
  readonly clock: Clock;
}

export class HotReload {
  readonly #stopping = new AbortController();
  #ended: Promise<void> = Promise.resolve();

  /** Looks until it is stopped. */
  static start(options: HotReloadOptions): HotReload {
    const reload = new HotReload();
    reload.#ended = reload.#watch(options);
    return reload;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#ended;
  }

  async #watch({ manifest, clock, ...options }: HotReloadOptions): Promise<void> {
    const { signal } = this.#stopping;
    const intake = { ...options, signal };
    const watch = new ManifestWatch({
      ...{ file: manifest.file, taken: manifest },
      takeUp: (after, before) => takeUp(intake, after, before),
      onRefused: (reason, { name, version } = manifest) =>
        options.log.warn(`plugin ${name} stays at version ${version}: ${reason}`),
    });
    await watch.begin();
    for (;;) {
      await sleep(clock, LOOK_INTERVAL_MS, signal);
      if (signal.aborted) return;
      await watch.look();
    }
  }
}
