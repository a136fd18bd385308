// Items whose rows are being read outside the reactor. What was read of an item is worth nothing when the item has moved since
// the reading was asked for: then it is asked for again.
//
// Keeps true: a reading that is open here still holds (C8: as many as there are questions, and a bounded number of places).
import type { Place } from "./place.ts";

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

  /** What moved before the oldest question was asked, it has seen. */
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
