// How far this host has seen a store get: leaderships, items and results of which somebody was told. It is kept outside the store, so that a
// store that went back to an older state, such as a restored copy, is noticed before anything is written over it.
//
// Keeps true: what is remembered only grows, until a person accepts that the store went back; whoever has accepted that less often knows less.
import type { Epoch } from "../../base/ids.ts";

/** How far a store had got, as its rows said when they were durable. */
export interface StoreExtent {
  /** The highest that was given; -1 when none was. */
  readonly epoch: number;
  /** Number of the next record of completions. */
  readonly completion: number;
  readonly submitted: number;
  readonly done: number;
}

export const NO_EXTENT: StoreExtent = { epoch: -1, completion: 0, submitted: 0, done: 0 };

/** The port to what this host remembers of one store. */
export interface StoreMemory {
  /** The furthest that any process of this host has seen, as far as it has been written down; this process's own in any case. */
  recall(): Promise<Remembered>;
  /** Total, and at once: it is written down soon. A number below the one that is known changes nothing. */
  note(seen: Partial<StoreExtent>): void;
  /** Written down when it resolves. Never rejects: a host that cannot remember still leads. */
  keep(): Promise<void>;
  /**
   * The store went back to this, and somebody goes on with it: what was further is forgotten, but for the epoch. A claim has to go above that
   * one, however often it is begun.
   */
  accept(extent: StoreExtent): void;
  /** Somebody, on another host perhaps, has accepted that the store went back: known no later than by the claim of that one. */
  adopt(accepted: Remembered): void;
}

export interface Remembered extends StoreExtent {
  /** How often somebody has gone on with a store that had gone back. */
  readonly accepted: number;
}

export const NOTHING_SEEN: Remembered = { ...NO_EXTENT, accepted: 0 };

/** The later one of two memories of a store. The host that accepted that it went back may not have known its last leader: the epoch stays. */
export function laterOf(one: Remembered, other: Remembered): Remembered {
  const epoch = Math.max(one.epoch, other.epoch);
  if (one.accepted !== other.accepted) return { ...(one.accepted > other.accepted ? one : other), epoch };
  return {
    accepted: one.accepted,
    epoch,
    completion: Math.max(one.completion, other.completion),
    submitted: Math.max(one.submitted, other.submitted),
    done: Math.max(one.done, other.done),
  };
}

/** The store is at an older state than somebody has seen it. */
export interface StoreRollback {
  readonly found: StoreExtent;
  readonly seen: StoreExtent;
  /** As far as is known: what was written last may never have been seen. */
  readonly missing: { readonly done: number; readonly submitted: number };
}

/** Undefined when the store has all that was seen of it. */
export function rollbackTo(found: StoreExtent, seen: StoreExtent): StoreRollback | undefined {
  if (found.epoch >= seen.epoch && found.completion >= seen.completion && found.submitted >= seen.submitted)
    return undefined;
  const missing = {
    done: Math.max(seen.done - found.done, 0),
    submitted: Math.max(seen.submitted - found.submitted, 0),
  };
  return { found, seen, missing };
}

/** Higher ones are nobody's: there is no room above them for the epochs of lost branches. */
const EPOCH_BELIEVED_MAX = 2 ** 51;

/** Whether a worker's word of an epoch can be true. */
export function isBelievable(epochSeen: number): epochSeen is Epoch {
  return Number.isSafeInteger(epochSeen) && epochSeen >= 0 && epochSeen <= EPOCH_BELIEVED_MAX;
}
