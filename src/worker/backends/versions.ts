// The versions of one plugin that a worker has, side by side: the first is its own, which executes what names no version. So many
// have a backend at once, because a machine may have room for so many models and no more: another version is opened when its first
// item comes, after one that executes nothing has been closed for it.
//
// Keeps true: a backend is closed once, and not before the last attempt that holds it has ended, unless everything ends; a version is
// opened for another one only when that is closed.
import { assert } from "../../base/assert.ts";
import type { Backend } from "./backend.ts";

/** A name, a version, and what executes. The two are unique within a worker. */
export interface Plugin {
  readonly name: string;
  readonly version: string;
  /** SHA-256 over what it runs; undefined where nobody needs to know. */
  readonly taskDigest?: Uint8Array | undefined;
  /** The version of the shape of states of keys that it leaves, and goes on from; undefined where these have none. */
  readonly stateVersion?: number | undefined;
  /** How long one attempt may take, unless the run says so; undefined: as long as it likes. */
  readonly itemTimeoutMs?: number | undefined;
  /** Makes what executes it: again, when that was closed for another version. */
  open(): Backend;
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

/** Why a version that is here cannot be taken now: others are held by attempts, or one is being closed for it. */
export type NotYet = "held" | "closing";

/** A version and who holds it. `release` is called through it, so that taking one costs a count and no object. */
class Holding implements TakenPlugin {
  readonly plugin: Plugin;
  readonly #onClosing: (holding: Holding, closing: Promise<void>) => void;
  #backend: Backend | undefined;
  #holders = 0;
  #isRetired = false;
  isClosing = false;
  /** Counts the takings of all versions: the one that was taken last has the highest. */
  lastTaken = 0;

  constructor(plugin: Plugin, onClosing: (holding: Holding, closing: Promise<void>) => void) {
    this.plugin = plugin;
    this.#onClosing = onClosing;
  }

  get version(): string {
    return this.plugin.version;
  }

  get stateVersion(): number | undefined {
    return this.plugin.stateVersion;
  }

  get itemTimeoutMs(): number | undefined {
    return this.plugin.itemTimeoutMs;
  }

  get backend(): Backend {
    assert(this.#backend !== undefined, "what was taken is open");
    return this.#backend;
  }

  /** Undefined while it is closed. */
  get opened(): Backend | undefined {
    return this.#backend;
  }

  get isIdle(): boolean {
    return this.#backend !== undefined && this.#holders === 0;
  }

  open(): void {
    assert(!this.isClosing, "what is being closed is not opened");
    this.#backend ??= this.plugin.open();
  }

  take(): this {
    this.open();
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
    const backend = this.#backend;
    if (backend === undefined) return;
    this.#backend = undefined;
    this.isClosing = true;
    this.#onClosing(this, backend.close());
  }
}

export interface VersionsOptions {
  /** So many have a backend at once, at least 1. */
  readonly loaded: number;
  /** Follows the closing of a backend; resolves when it is over, whether it has failed or not. */
  readonly onClosing: (closing: Promise<void>) => Promise<void>;
  /** A version was closed, so that another one may be opened. */
  readonly onClosed: () => void;
}

export class Versions {
  readonly #options: VersionsOptions;
  /** The worker's own is the first. */
  readonly #current: Holding[];
  /** Versions that were replaced or dropped, until they are closed. */
  readonly #retired = new Set<Holding>();
  #takings = 0;

  /** The own version is opened at once. */
  constructor(own: Plugin, options: VersionsOptions) {
    this.#options = options;
    const holding = this.#holdingOf(own);
    this.#current = [holding];
    holding.open();
  }

  get plugins(): readonly Plugin[] {
    return this.#current.map(({ plugin }) => plugin);
  }

  /** The versions that have a backend now, with it. */
  get opened(): readonly { readonly version: string; readonly backend: Backend }[] {
    return this.#current.flatMap(({ version, opened }) =>
      opened === undefined ? [] : [{ version, backend: opened }],
    );
  }

  find(version: string): Plugin | undefined {
    return this.#find(version)?.plugin;
  }

  isOpen(version: string): boolean {
    return this.#find(version)?.opened !== undefined;
  }

  isOwn(version: string): boolean {
    return this.#current[0]?.version === version;
  }

  /** Lends a version, and opens it if it is closed; undefined for one that is not here. */
  take(version: string): TakenPlugin | NotYet | undefined {
    const holding = version === "" ? this.#current[0] : this.#find(version);
    if (holding === undefined) return undefined;
    if (holding.opened === undefined) {
      const notYet = this.#makeRoom();
      if (notYet !== undefined) return notYet;
    }
    holding.lastTaken = ++this.#takings;
    return holding.take();
  }

  /** From now on what begins with the version `before` begins with this one. `opens`: it is opened at once. */
  replace(before: string, plugin: Plugin, opens: boolean): void {
    const at = this.#current.findIndex(({ version }) => version === before);
    const replaced = this.#current[at];
    assert(replaced !== undefined, "what is replaced is there");
    const holding = this.#holdingOf(plugin);
    this.#current[at] = holding;
    if (opens) holding.open();
    this.#retire(replaced);
  }

  /** A version that there was not. */
  add(plugin: Plugin): void {
    assert(this.#find(plugin.version) === undefined, "a version is there once");
    this.#current.push(this.#holdingOf(plugin));
  }

  /** Nobody takes that version any more, which is not the own one. */
  drop(version: string): void {
    const at = this.#current.findIndex((holding) => holding.version === version);
    assert(at > 0, "what is dropped is there, and is not the worker's own");
    for (const holding of this.#current.splice(at, 1)) this.#retire(holding);
  }

  close(): void {
    for (const holding of [...this.#current, ...this.#retired]) holding.close();
  }

  #find(version: string): Holding | undefined {
    return this.#current.find((holding) => holding.version === version);
  }

  /** Undefined when one more may be opened now. Otherwise the one that was taken longest ago is closed, as soon as none holds it. */
  #makeRoom(): NotYet | undefined {
    const loaded = [...this.#current, ...this.#retired].filter(
      ({ opened, isClosing }) => opened !== undefined || isClosing,
    );
    if (loaded.length < this.#options.loaded) return undefined;
    if (loaded.some(({ isClosing }) => isClosing)) return "closing";
    const idle = loaded.filter(({ isIdle }) => isIdle);
    const [first] = idle.sort((one, other) => one.lastTaken - other.lastTaken);
    first?.close();
    return first === undefined ? "held" : "closing";
  }

  #retire(holding: Holding): void {
    this.#retired.add(holding);
    holding.retire();
    if (holding.opened === undefined && !holding.isClosing) this.#retired.delete(holding);
  }

  #holdingOf(plugin: Plugin): Holding {
    return new Holding(plugin, (holding, closing) => void this.#follow(holding, closing));
  }

  async #follow(holding: Holding, closing: Promise<void>): Promise<void> {
    await this.#options.onClosing(closing);
    holding.isClosing = false;
    this.#retired.delete(holding);
    this.#options.onClosed();
  }
}
