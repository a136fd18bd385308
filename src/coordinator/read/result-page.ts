// A page of results: what fits into one answer, and where the next one goes on. The cursor is text that its reader gives back; it
// names places in the ledger's own order, so it holds across restarts of the coordinator.
import type { LedgerExtent } from "../turn/run-view.ts";
import type { Store } from "../../storage/store.ts";
import type { FinalItem, SeenItem } from "./stored-items.ts";

export interface PageLimits {
  /** Items, at least 1. */
  readonly items: number;
  readonly bytes: number;
  /** Whether payloads go with the results, and so count. */
  readonly withPayload: boolean;
}

export interface ResultPage<Cursor> {
  readonly items: readonly FinalItem[];
  readonly next: Cursor;
  readonly isCaughtUp: boolean;
}

/** The items that a page is read from. */
export interface ResultSource {
  readonly store: Store;
  /** Asked before the page was begun. */
  readonly extent: LedgerExtent;
  /** Asks again. */
  readonly look: () => Promise<LedgerExtent>;
}

/** Bytes of a result beside its output, payload and texts. */
const RESULT_BYTES = 256;
/** Bytes that one reading from the store is to bring, about. */
const READ_BYTES = 2 ** 20;
const READ_ITEMS_FIRST = 4;
/** Large items may follow small ones without a sign. */
const READ_ITEMS_MAX = 64;

/** Items without a result of their own that one page passes over: it ends then, with what it has. */
const SKIPPED_MAX = 10_000;
/** How often a reader of a run that is complete looks again for an item that seems not to be final. */
export const LOOKS_MAX = 3;

/** Fills a page, and says how much to read at once: few items until it is known how large they are. */
export class PageFiller {
  readonly items: FinalItem[] = [];
  readonly #limits: PageLimits;
  #bytes = 0;
  #skipped = 0;
  #step = READ_ITEMS_FIRST;

  constructor(limits: PageLimits) {
    this.#limits = limits;
  }

  get isFull(): boolean {
    const isLong = this.items.length >= this.#limits.items || this.#bytes >= this.#limits.bytes;
    return isLong || this.#skipped >= SKIPPED_MAX;
  }

  get step(): number {
    return Math.min(this.#step, this.#limits.items - this.items.length);
  }

  /** False when the page is full without it; the first one always fits. */
  add(item: FinalItem): boolean {
    const bytes = this.#weigh(item);
    if (this.items.length > 0 && (this.isFull || this.#bytes + bytes > this.#limits.bytes)) return false;
    this.items.push(item);
    this.#bytes += bytes;
    return true;
  }

  /** One is passed over. */
  skip(): void {
    this.#skipped++;
  }

  /** Takes into account how large the results of the last reading were. */
  learn(seen: readonly SeenItem[]): void {
    const bytes = seen.reduce((sum, one) => sum + bytesReadFor(one), 0);
    const fitting = Math.floor((seen.length * READ_BYTES) / Math.max(1, bytes));
    this.#step = Math.max(1, Math.min(fitting, seen.length * 2, READ_ITEMS_MAX));
  }

  #weigh({ item, final }: FinalItem): number {
    const payload = this.#limits.withPayload ? item.payload.length : 0;
    const told =
      final.kind === "done"
        ? final.record.output.length
        : Buffer.byteLength(final.record.message) + final.record.response.length;
    return RESULT_BYTES + payload + told + Buffer.byteLength(item.label);
  }
}

function bytesReadFor({ item, final }: SeenItem): number {
  return item.payload.length + (final?.kind === "done" ? final.record.output.length : 0);
}
