// The committed states of one partition in memory, each with its commit: an exact match of the commit decides whether a state is the one
// that is meant, so an old one is no harm.
interface CachedState {
  readonly commit: number;
  readonly state: Uint8Array;
}

export interface KeyState {
  readonly key: string;
  readonly commit: number;
  /** Undefined: the key has none. */
  readonly state: Uint8Array | undefined;
}

/** Memory of a state beside its bytes. */
const STATE_WEIGHT = 200;

export class PartitionStates implements Iterable<KeyState> {
  readonly #states = new Map<string, CachedState>();
  #weight = 0;

  get size(): number {
    return this.#states.size;
  }

  /** Bytes of memory, about. */
  get weight(): number {
    return this.#weight;
  }

  get(key: string, commit: number): Uint8Array | undefined {
    const found = this.#states.get(key);
    return found?.commit === commit ? found.state : undefined;
  }

  /** A later one stays. Returns whether it is news. */
  put({ key, commit, state }: KeyState): boolean {
    const known = this.#states.get(key);
    if (
      known !== undefined &&
      (state === undefined ? commit > 0 && known.commit > commit : known.commit >= commit)
    )
      return false;
    this.#weight -= known === undefined ? 0 : weightOf(key, known.state);
    if (state === undefined) return this.#states.delete(key);
    // A copy: what keeps the state must not keep the whole message that it came in.
    this.#states.set(key, { commit, state: new Uint8Array(state) });
    this.#weight += weightOf(key, state);
    return true;
  }

  *[Symbol.iterator](): Generator<KeyState, void, undefined> {
    for (const [key, { commit, state }] of this.#states) yield { key, commit, state };
  }
}

function weightOf(key: string, state: Uint8Array): number {
  return STATE_WEIGHT + key.length + state.length;
}
