// Pages of results: what fits into one answer, and where the next one goes on. The cursor is text that its reader gives back; it
// names places in the ledger's own order, so it holds across restarts of the coordinator. Constant memory, whatever the run's size.
//
// As their items were submitted: items of one priority lie together, so what is next is looked for in each of them, the last one
// first; equal priorities, which is the rule, are read in long stretches. As they became final: an item that was retried stands in the
// record of each time that it became final; its row says which of them counts.
import type { LedgerExtent } from "../turn/run-terms.ts";
import type { Store } from "../../storage/store.ts";
import type { FinalItem, SeenItem } from "./stored-items.ts";
import { keyedPlaceOf, placeOf, sequenceOf } from "../ledger/place.ts";
import { seeItemAt, seeItems, seeItemsAt } from "./stored-items.ts";
import { corrupt } from "../../storage/records.ts";
import { readCompletions } from "../ledger/completions.ts";
import type { Place } from "../ledger/place.ts";

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
const LOOKS_MAX = 3;

/** Fills a page, and says how much to read at once: few items until it is known how large they are. */
class PageFiller {
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

const GUESSED_MAX = 4;

/** `from` is the sequence of the first item that is not read yet. Throws store_corrupt. */
export async function readByInput(
  source: ResultSource,
  from: number,
  limits: PageLimits,
): Promise<ResultPage<number>> {
  const { store, extent } = source;
  const page = new PageFiller(limits);
  const lanes = lanesOf(extent);
  let next = from;
  const end = (isCaughtUp: boolean): ResultPage<number> => ({ items: page.items, next, isCaughtUp });
  while (!page.isFull) {
    if (next >= extent.nextSequence) return end(true);
    const stretch = await readStretch(source, lanes, next, page.step);
    if (stretch.length === 0) return corrupt(store, placeOf(0, next), `item ${next} is missing`);
    page.learn(stretch);
    for (const seen of stretch) {
      const found = await finalOrNot(source, seen);
      if (found === "unfinished") return end(true);
      if (found === "never") page.skip();
      else if (!page.add(found)) return end(false);
      next++;
    }
  }
  return end(false);
}

/** Items of one priority, with keys or without, lie together: the place of a sequence in them. */
type Lane = (sequence: number) => Place;

function lanesOf({ priorities, keyedPriorities }: LedgerExtent): Lane[] {
  return [
    ...priorities.map(
      (priority): Lane =>
        (sequence) =>
          placeOf(priority, sequence),
    ),
    ...keyedPriorities.map(
      (priority): Lane =>
        (sequence) =>
          keyedPlaceOf(priority, sequence),
    ),
  ];
}

/** Items whose sequences follow each other without a gap, in one lane; moves that lane to the front. */
async function readStretch(
  { store, extent }: ResultSource,
  lanes: Lane[],
  sequence: number,
  limit: number,
): Promise<SeenItem[]> {
  for (const [at, lane] of lanes.entries()) {
    const from = lane(sequence);
    // Where it is only guessed that the item is there, little is read.
    const count = at === 0 ? limit : Math.min(limit, GUESSED_MAX);
    const upTo = Math.min(sequence + count, extent.nextSequence);
    const seen = await seeItems(store, { from, to: lane(upTo), limit: count });
    const gap = seen.findIndex(({ place }, offset) => sequenceOf(place) !== sequence + offset);
    const stretch = gap === -1 ? seen : seen.slice(0, gap);
    if (stretch.length === 0) continue;
    lanes.splice(at, 1);
    lanes.unshift(lane);
    return stretch;
  }
  return [];
}

/** `never`: the run was cancelled, and it stays as it is, or the item stands in quarantine. */
async function finalOrNot(
  { store, extent, look }: ResultSource,
  seen: SeenItem,
): Promise<FinalItem | "unfinished" | "never"> {
  if (isFinal(seen)) return seen;
  if (extent.setAside.has(seen.place)) return "never";
  if (extent.phase === "cancelled") return extent.isOver ? "never" : "unfinished";
  // All items of a complete run are final, unless some were retried since.
  for (let looks = 0; looks < LOOKS_MAX; looks++) {
    const { phase } = await look();
    if (phase !== "complete") return "unfinished";
    const again = await seeItemAt(store, seen.place);
    if (again !== undefined && isFinal(again)) return again;
  }
  return corrupt(store, seen.place, "the run is complete, and what became of this item is missing");
}

function isFinal(seen: SeenItem): seen is FinalItem {
  return seen.final !== undefined;
}

export interface CompletionCursor {
  /** Number of the record of completions. */
  readonly record: number;
  /** In it. */
  readonly at: number;
}

/** Throws store_corrupt. */
export async function readByCompletion(
  source: ResultSource,
  from: CompletionCursor,
  limits: PageLimits,
): Promise<ResultPage<CompletionCursor>> {
  const { store, extent } = source;
  const page = new PageFiller(limits);
  let next = from;
  // A record may be long, and is read once for a page.
  let places: readonly Place[] = [];
  let placesOf = -1;
  while (!page.isFull) {
    if (next.record >= extent.nextCompletion) return { items: page.items, next, isCaughtUp: true };
    const { record, at } = next;
    if (placesOf !== record) [places, placesOf] = [await readCompletions(store, record), record];
    if (at >= places.length) {
      next = { record: record + 1, at: 0 };
      continue;
    }
    const seen = await seeAll(store, places.slice(at, at + page.step));
    page.learn(seen);
    for (const one of seen) {
      const found = await countedOrNot(source, one, record);
      if (found === undefined) page.skip();
      else if (!page.add(found)) return { items: page.items, next, isCaughtUp: false };
      next = { record, at: next.at + 1 };
    }
  }
  return { items: page.items, next, isCaughtUp: false };
}

async function seeAll(store: Store, places: readonly Place[]): Promise<SeenItem[]> {
  const found = await seeItemsAt(store, places);
  return places.map(
    (place, at) => found[at] ?? corrupt(store, place, "an item that became final is missing"),
  );
}

/** Undefined when the item was retried since it became final in that record: it comes again, if it does. */
async function countedOrNot(
  { store, extent, look }: ResultSource,
  first: SeenItem,
  record: number,
): Promise<FinalItem | undefined> {
  let seen: SeenItem | undefined = first;
  for (let looks = 0; looks <= LOOKS_MAX; looks++) {
    const final = seen?.final;
    if (seen !== undefined && final !== undefined) {
      if (final.record.completion === record) return { ...seen, final };
      if (final.record.completion > record) return undefined;
      return corrupt(store, first.place, "it became final before the record that says when it did");
    }
    if (extent.setAside.has(first.place)) return undefined;
    const { phase } = looks === 0 ? extent : await look();
    if (phase !== "complete") return undefined;
    seen = await seeItemAt(store, first.place);
  }
  return corrupt(store, first.place, "the run is complete, and what became of this item is missing");
}
