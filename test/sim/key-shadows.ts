// All that is kept of keys beside the room of keys: their mailboxes, the ring that gives them to workers, and actors where they are such.
import type { Batch, Entry } from "../../src/storage/store.ts";
import type { Settings } from "./settings.ts";
import { ShadowActors } from "./shadow-actors.ts";
import type { Circumstances } from "./shadow-actors.ts";
import { ShadowKeys } from "./shadow-keys.ts";
import { ShadowRing } from "./shadow-ring.ts";

/** Keys for which operators have asked something. It outlives rows that a store has lost. */
export interface Asked {
  readonly mayPass: ReadonlySet<string>;
  readonly mayBePaused: ReadonlySet<string>;
}

export class KeyShadows {
  readonly #keys: ShadowKeys;
  /** Undefined where keys are no actors. */
  readonly #actors: ShadowActors | undefined;
  readonly #ring = new ShadowRing();

  /** `stored`: all that a store has. */
  constructor(settings: Settings, { mayPass, mayBePaused }: Asked, stored: readonly Entry[] = []) {
    const { hasActors, keys: actors, skipsFailed } = settings;
    this.#keys = new ShadowKeys(mayPass, mayBePaused, hasActors);
    if (hasActors) this.#actors = new ShadowActors({ actors, skipsFailed, mayPass });
    if (stored.length === 0) return;
    this.#keys.take({ puts: stored, deletes: [] }, true);
    this.#actors?.restore(stored);
    this.#ring.take({ puts: stored }, true);
  }

  /** A turn of a leader. Throws a violation. */
  take(batch: Batch, circumstances: Circumstances): void {
    this.#keys.take(batch);
    this.#ring.take(batch);
    this.#actors?.take(batch, circumstances);
  }

  /** Nothing of a key is taken late. */
  has(idText: string): boolean {
    return this.#keys.has(idText);
  }

  /** Whether any worker may have the item now, as far as its key goes. */
  mayBeNext(idText: string): boolean {
    return this.#keys.mayBeNext(idText) && this.#actors?.isChoosy(idText) !== true;
  }

  /** See `ShadowActors`. */
  isExcused(idText: string): boolean {
    return this.#actors?.isExcused(idText) === true;
  }
}
