// The plugins that a worker has: what executes the items that name them, each in one version or in several (versions.ts). One may
// be replaced while it is in use; then the attempts that run finish with what they began with, and later ones begin with the new.
import { assert } from "../../base/assert.ts";
import { LIMITS } from "../../config/limits.ts";
import type { Learner } from "./backend.ts";
import { shortened } from "./trouble-words.ts";
import { Versions } from "./versions.ts";
import type { NotYet, Plugin, TakenPlugin } from "./versions.ts";

/** As unless it is said: one that executes, and one that is tried. */
const LOADED_VERSIONS = 2;

export interface PluginsOptions {
  /** So many versions of one plugin have a backend at once. */
  readonly loadedVersions?: number;
}

/** A plugin in words of a beat. */
export interface ListedPlugin extends Pick<Plugin, "name" | "version" | "taskDigest"> {
  readonly stateVersion: number;
}

/** Plugins that stay, or are replaced one by one. */
export class Plugins {
  readonly #byName = new Map<string, Versions>();
  readonly #closing = new Set<Promise<void>>();
  readonly #onCloseFailed: (error: unknown) => void;
  readonly #loadedVersions: number;
  /** Why versions that this worker was to have beside its own are not here, by plugin and version. */
  readonly #unusable = new Map<string, string>();
  #onRoom: () => void = () => undefined;
  #broken: string | undefined;
  #isClosed = false;

  /**
   * The first of a name is the worker's own version of it, and is opened at once. `onCloseFailed`: a backend could not end what it
   * keeps. There is nothing more to be done about it than to say so.
   */
  constructor(
    plugins: readonly Plugin[],
    onCloseFailed: (error: unknown) => void,
    { loadedVersions = LOADED_VERSIONS }: PluginsOptions = {},
  ) {
    this.#onCloseFailed = onCloseFailed;
    this.#loadedVersions = loadedVersions;
    for (const plugin of plugins) {
      const known = this.#byName.get(plugin.name);
      if (known === undefined) this.#byName.set(plugin.name, this.#versionsOf(plugin));
      else known.add(plugin);
    }
  }

  /** Called each time that a version was closed: one that could not be taken may be taken then. */
  whenRoom(onRoom: () => void): void {
    this.#onRoom = onRoom;
  }

  /**
   * Lends what executes items of this plugin and version from now on; undefined when there is none. The plugin "" is the first one,
   * the version "" the worker's own.
   */
  take(name: string, version = ""): TakenPlugin | NotYet | undefined {
    const versions = name === "" ? this.#byName.values().next().value : this.#byName.get(name);
    return this.#isClosed ? undefined : versions?.take(version);
  }

  /** As a beat says it: the versions of a name together, the worker's own first. */
  list(): readonly ListedPlugin[] {
    return [...this.#byName.values()]
      .flatMap(({ plugins }) => plugins)
      .map(({ name, version, stateVersion = 0, taskDigest }) => ({
        name,
        version,
        stateVersion,
        taskDigest,
      }));
  }

  /** How many versions of one plugin have a backend at once; undefined while there is none in two. */
  get loadedVersions(): number | undefined {
    const isAnyInTwo = [...this.#byName.values()].some(({ plugins }) => plugins.length > 1);
    return isAnyInTwo ? this.#loadedVersions : undefined;
  }

  /** All that has learned something that it can save, among those that execute items now. */
  learners(): readonly Learner[] {
    return [...this.#byName.values()]
      .flatMap(({ opened }) => opened)
      .flatMap(({ backend }) => backend.learners?.() ?? []);
  }

  /** The trouble that keeps any of them from executing, as a beat says it; empty when there is none. */
  trouble(): string {
    if (this.#broken !== undefined) return this.broken();
    const isOnlyOne = this.#byName.size === 1;
    const told = [...this.#byName].flatMap(([name, { opened, plugins }]) =>
      opened.flatMap(({ version, backend }) => {
        const words = backend.trouble?.();
        if (words === undefined) return [];
        if (plugins.length > 1) return [`${name}@${version}: ${words}`];
        return isOnlyOne ? [words] : [`${name}: ${words}`];
      }),
    );
    return shortened([...told, ...this.#unusable.values()].join("; "), LIMITS.troubleBytes);
  }

  /** Why the worker leaves, when that is because one of them is broken; empty otherwise. */
  broken(): string {
    return shortened(this.#broken ?? "", LIMITS.troubleBytes);
  }

  /**
   * That version cannot execute anything any more. Whether the worker ends by that: then the reason is what `trouble` says from now on.
   * A version beside the worker's own is not here any more instead, and what names it is handed back.
   */
  sayBroken(name: string, version: string, reason: string): boolean {
    const versions = this.#byName.get(name);
    if (versions !== undefined && !versions.isOwn(version)) {
      // One that was replaced, or dropped before, is nobody's loss.
      if (versions.find(version) === undefined) return false;
      versions.drop(version);
      this.#unusable.set(`${name}@${version}`, `${name}@${version} is broken: ${reason}`);
      return false;
    }
    this.#broken ??= `the backend of ${name} is broken: ${reason}`;
    return true;
  }

  /** Undefined when this worker does not have it. */
  find(name: string, version: string): Plugin | undefined {
    return this.#byName.get(name)?.find(version);
  }

  /** Whether the successor of that version may be opened beside it, to see whether it can be executed. */
  opensSuccessor(name: string, version: string): boolean {
    return this.#loadedVersions > 1 && this.#byName.get(name)?.isOpen(version) === true;
  }

  /**
   * From now on items that would have begun with the version `before` of it begin with this one. There has to be that version. It is
   * opened at once, unless said.
   */
  replace(before: string, plugin: Plugin, { opens = true } = {}): void {
    const versions = this.#byName.get(plugin.name);
    assert(versions !== undefined && !this.#isClosed, "what is replaced is there");
    versions.replace(before, plugin, opens);
  }

  /** Another version of a plugin that is here, beside those that there are. Why not, if it is not taken. */
  add(plugin: Plugin): string | undefined {
    const { name, version } = plugin;
    const versions = this.#byName.get(name);
    if (versions === undefined) return `this worker has no plugin ${name} that it could be a version of`;
    if (versions.find(version) !== undefined)
      return `this worker has a version ${version} of ${name} already`;
    if (this.list().length >= LIMITS.pluginsPerBeat)
      return `a worker has ${LIMITS.pluginsPerBeat} versions of plugins at most`;
    if (this.#isClosed) return "the worker ends";
    this.#unusable.delete(`${name}@${version}`);
    versions.add(plugin);
    return undefined;
  }

  /** Closes every backend, whatever still executes. Idempotent. Nothing can be taken any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const versions of this.#byName.values()) versions.close();
    while (this.#closing.size > 0) await Promise.all(this.#closing);
  }

  #versionsOf(own: Plugin): Versions {
    return new Versions(own, {
      loaded: this.#loadedVersions,
      onClosing: (closing) => {
        const closed = closing.catch(this.#onCloseFailed).then(() => void this.#closing.delete(closed));
        this.#closing.add(closed);
        return closed;
      },
      onClosed: () => this.#onRoom(),
    });
  }
}
