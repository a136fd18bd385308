// The plugins that a worker has: what executes the items that name them. One may be replaced while it is in use; then the
// attempts that run finish with what they began with, and later ones begin with the new.
//
// Keeps true: a backend is closed once, and when replaced not before the last attempt that holds it has ended.
import { assert } from "../../base/assert.ts";
import { LIMITS } from "../../config/limits.ts";
import type { Backend, Learner } from "./backend.ts";
import { shortened } from "./trouble-words.ts";

/** A name, a version, and what executes. The name is unique within a worker. */
export interface Plugin {
  readonly name: string;
  readonly version: string;
  /** The version of the shape of states of keys that it leaves, and goes on from; undefined where these have none. */
  readonly stateVersion?: number | undefined;
  readonly backend: Backend;
  /** How long one attempt may take, unless the run says so; undefined: as long as it likes. */
  readonly itemTimeoutMs?: number | undefined;
}

/** A plugin in the hands of one attempt. */
export interface TakenPlugin {
  readonly version: string;
  readonly stateVersion?: number | undefined;
  readonly backend: Backend;
  readonly itemTimeoutMs: number | undefined;
  /** The attempt has ended. Once for each `take`. */
  release(): void;
}

/** A plugin and who holds it. `release` is called through it, so that taking one costs a count and no object. */
class Holding implements TakenPlugin {
  readonly plugin: Plugin;
  readonly #onClosing: (closing: Promise<void>) => void;
  #holders = 0;
  #isRetired = false;
  #closing: Promise<void> | undefined;

  constructor(plugin: Plugin, onClosing: (closing: Promise<void>) => void) {
    this.plugin = plugin;
    this.#onClosing = onClosing;
  }

  get version(): string {
    return this.plugin.version;
  }

  get stateVersion(): number | undefined {
    return this.plugin.stateVersion;
  }

  get backend(): Backend {
    return this.plugin.backend;
  }

  get itemTimeoutMs(): number | undefined {
    return this.plugin.itemTimeoutMs;
  }

  take(): this {
    this.#holders++;
    return this;
  }

  release(): void {
    assert(this.#holders > 0, "what is released was taken");
    this.#holders--;
    if (this.#isRetired && this.#holders === 0) this.close();
  }

  /** Nobody takes it any more. */
  retire(): void {
    this.#isRetired = true;
    if (this.#holders === 0) this.close();
  }

  /** Idempotent. */
  close(): void {
    if (this.#closing !== undefined) return;
    this.#closing = this.plugin.backend.close();
    this.#onClosing(this.#closing);
  }
}

/** Plugins that stay, or are replaced one by one. */
export class Plugins {
  readonly #current = new Map<string, Holding>();
  /** Plugins that were replaced, until they are closed. */
  readonly #retired = new Set<Holding>();
  readonly #closing = new Set<Promise<void>>();
  readonly #onCloseFailed: (error: unknown) => void;
  #broken: string | undefined;
  #isClosed = false;

  /** `onCloseFailed`: a backend could not end what it keeps. There is nothing more to be done about it than to say so. */
  constructor(plugins: readonly Plugin[], onCloseFailed: (error: unknown) => void) {
    this.#onCloseFailed = onCloseFailed;
    for (const plugin of plugins) {
      assert(!this.#current.has(plugin.name), "a plugin's name is unique");
      this.#current.set(plugin.name, this.#holdingOf(plugin));
    }
  }

  /** Lends the plugin that executes items of this name from now on; undefined when there is none. "" is the first one. */
  take(name: string): TakenPlugin | undefined {
    const holding = name === "" ? this.#current.values().next().value : this.#current.get(name);
    return this.#isClosed ? undefined : holding?.take();
  }

  /** As a beat says it. */
  list(): readonly (Pick<Plugin, "name" | "version"> & { readonly stateVersion: number })[] {
    const plugins = [...this.#current.values()].map(({ plugin }) => plugin);
    return plugins.map(({ name, version, stateVersion = 0 }) => ({ name, version, stateVersion }));
  }

  /** All that has learned something that it can save, among those that execute items now. */
  learners(): readonly Learner[] {
    return [...this.#current.values()].flatMap(({ plugin: { backend } }) => backend.learners?.() ?? []);
  }

  /** The trouble that keeps any of them from executing, as a beat says it; empty when there is none. */
  trouble(): string {
    if (this.#broken !== undefined) return this.broken();
    const all = [...this.#current.values()];
    const told = all.flatMap(({ plugin: { name, backend } }) => {
      const words = backend.trouble?.();
      if (words === undefined) return [];
      return all.length === 1 ? [words] : [`${name}: ${words}`];
    });
    return shortened(told.join("; "), LIMITS.troubleBytes);
  }

  /** Why the worker leaves, when that is because one of them is broken; empty otherwise. */
  broken(): string {
    return shortened(this.#broken ?? "", LIMITS.troubleBytes);
  }

  /** That plugin cannot execute anything any more: its reason is what `trouble` says from now on, and the worker ends. */
  sayBroken(name: string, reason: string): void {
    this.#broken ??= `the backend of ${name} is broken: ${reason}`;
  }

  /** From now on items of that name begin with this one. There has to be a plugin of that name. */
  replace(plugin: Plugin): void {
    const before = this.#current.get(plugin.name);
    assert(before !== undefined && !this.#isClosed, "what is replaced is there");
    this.#current.set(plugin.name, this.#holdingOf(plugin));
    this.#retired.add(before);
    before.retire();
  }

  /** Closes every backend, whatever still executes. Idempotent. Nothing can be taken any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const holding of [...this.#current.values(), ...this.#retired]) holding.close();
    while (this.#closing.size > 0) await Promise.all(this.#closing);
  }

  #holdingOf(plugin: Plugin): Holding {
    const holding = new Holding(plugin, (closing) => {
      const closed = closing.catch(this.#onCloseFailed).then(() => {
        this.#retired.delete(holding);
        this.#closing.delete(closed);
      });
      this.#closing.add(closed);
    });
    return holding;
  }
}
