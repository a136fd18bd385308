// Lookups of items whose rows are read outside the reactor, and their findings. A finding is worth nothing when the item has
// moved since the lookup was asked for: then it is asked for again.
//
// Keeps true: a reading that is open here still holds (C8: as many as there are questions, and a bounded number of places).
import type { Place } from "./place.ts";
import type { DoneRecord, ReturnedRecord } from "./records.ts";

interface Waiting {
  readonly place: Place;
  readonly budgets: ReturnedRecord;
  /** Checksum of the row that says so. */
  readonly checksum: number;
}

export type Finding =
  | ({ readonly kind: "returned" } & Waiting)
  | ({ readonly kind: "delayed"; readonly delayed: string } & Waiting)
  /** No row says where it is: it was never given out, or somebody has it. */
  | { readonly kind: "fresh"; readonly place: Place }
  | ({ readonly kind: "done"; readonly place: Place } & Pick<
      DoneRecord,
      "digest" | "attempt" | "worker" | "pluginVersion"
    >)
  /** The same, and what was reported contradicts it. */
  | { readonly kind: "contradicted"; readonly place: Place; readonly isEvidence: boolean }
  /** Unknown or failed, or it cannot be used out of turn. */
  | { readonly kind: "other" };

/** Where the item was found. */
export function placeIn(finding: Finding | undefined): Place | undefined {
  return finding === undefined || finding.kind === "other" ? undefined : finding.place;
}

export interface FoundClaims {
  /** In the order of the claims. */
  readonly findings: readonly Finding[];
  /** By priority: the items that were never given out, from the first on, up to the last that is claimed. */
  readonly lanes: ReadonlyMap<number, readonly Place[]>;
}

export interface FoundReport {
  readonly finding: Finding;
  /** When the item was never given out: those of its priority that were not either, from the first on, up to it. */
  readonly lane: readonly Place[];
}

/** So many places are remembered that moved while something was being read; with more, everything is read again. */
const MOVED_MAX = 16_384;

export class Lookups {
  /** Item key → questions about it that still hold. */
  readonly #open = new Map<string, Set<object>>();
  /** When each was asked, in this order; those that do not hold any more included. */
  readonly #askedAt = new Map<object, number>();
  /** Items that moved whose ids were not at hand: when, in this order. */
  readonly #moved = new Map<Place, number>();
  /** Counts what happens here. */
  #time = 0;

  /** Readings that are under way. */
  get size(): number {
    return this.#askedAt.size;
  }

  /** A reading is asked for; `question` tells it from others of the same item. `end` is called once for it. */
  begin(itemKey: string, question: object): void {
    this.#askedAt.set(question, ++this.#time);
    const known = this.#open.get(itemKey);
    if (known === undefined) this.#open.set(itemKey, new Set([question]));
    else known.add(question);
  }

  /** Whether what was read still holds. `place` is where the item was found, if it was. */
  end(itemKey: string, question: object, place: Place | undefined): boolean {
    const known = this.#open.get(itemKey);
    const isOpen = known?.delete(question) === true;
    if (known?.size === 0) this.#open.delete(itemKey);
    const askedAt = this.#askedAt.get(question) ?? 0;
    const movedAt = place === undefined ? 0 : (this.#moved.get(place) ?? 0);
    this.#askedAt.delete(question);
    if (this.#askedAt.size === 0) this.#moved.clear();
    return isOpen && movedAt < askedAt;
  }

  /** The item moves. */
  touch(itemKey: string): void {
    this.#open.delete(itemKey);
  }

  /** An item moves whose id is not at hand. */
  touchPlace(place: Place): void {
    if (this.#askedAt.size === 0) return;
    this.#moved.delete(place);
    this.#moved.set(place, ++this.#time);
    if (this.#moved.size > MOVED_MAX) this.#forgetMoved();
  }

  /** The oldest question has seen every item that moved before it was asked. */
  #forgetMoved(): void {
    const [oldest = 0] = this.#askedAt.values();
    for (const [place, atTime] of this.#moved) {
      if (atTime > oldest) break;
      this.#moved.delete(place);
    }
    if (this.#moved.size <= MOVED_MAX) return;
    this.#moved.clear();
    this.#open.clear();
  }
}
