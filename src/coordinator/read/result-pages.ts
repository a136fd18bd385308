// Pages of results: what fits into one answer, and where the next one goes on. The cursor is text that its reader gives back; it
// names places in the ledger's own order, so it holds across restarts of the coordinator. Constant memory, whatever the run's size.
//
// As their items were submitted: items of one priority lie together, so what is next is looked for in each of them, the last one
// first; equal priorities, which is the rule, are read in long stretches. As they became final: an item that was retried stands in the
// record of each time that it became final; its row says which of them counts.
import { assert } from "../../base/assert.ts";
import type { LedgerExtent } from "../turn/run-terms.ts";
import type { Store } from "../../storage/store.ts";
import type { FinalItem, SeenItem } from "./stored-items.ts";
import { insidePlaceOf, isBeside, isInside, keyedPlaceOf, placeOf, sequenceOf } from "../ledger/place.ts";
import { seeItemAt, seeItems, seeItemsAt } from "./stored-items.ts";
import { corrupt } from "../../storage/records.ts";
import { nextKey } from "../../storage/store.ts";
import { readCompletions } from "../ledger/completions.ts";
import type { Place } from "../ledger/place.ts";

export interface PageLimits {
  /** Items, at least 1. */
  readonly items: number;
  readonly bytes: number;
  /** Whether payloads go with the results, and so count. */
  readonly withPayload: boolean;
  /** Only results of this version of the plugin; all of them unless said. */
  readonly pluginVersion?: string | undefined;
  /** Whether items are among them that nobody submitted; they are not unless said. */
  readonly withInside?: boolean;
  /** Only failures of such items, without those that were stopped. */
  readonly onlyFailedInside?: boolean;
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
/** Bytes of rows of one kind that one reading from the store brings, about. */
const READ_BYTES = 384 * 1_024;
/** Items of the first reading of a page, and how many times as many the next one has: who follows a run finds few. */
const READ_ITEMS_FIRST = 16;
const READ_ITEMS_GROWTH = 8;
/** Rows that are looked up by their keys: how many bytes these are is known too late, and large ones may follow small ones. */
const LOOKED_UP_FIRST = 4;
const LOOKED_UP_MAX = 64;
/** Rows that lie among so many others for each are looked up. */
const SPARSE = 2;
/** Items among which those of one reading lie. */
const READ_ITEMS_MAX = 1_024;

/** Items without a result of their own, or one that is wanted, that one page passes over: it ends then, with what it has. */
const SKIPPED_MAX = 10_000;
/** How often a reader of a run that is complete looks again for an item that seems not to be final. */
const LOOKS_MAX = 3;

/** Fills a page, and says how much to read at once. */
class PageFiller {
  readonly items: FinalItem[] = [];
  readonly #limits: PageLimits;
  #bytes = 0;
  #skipped = 0;
  #step = READ_ITEMS_FIRST;
  /** Few items until it is known how large they are. */
  lookedUpMax = LOOKED_UP_FIRST;

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

  wants({ final }: FinalItem): boolean {
    const { pluginVersion, onlyFailedInside = false } = this.#limits;
    if (pluginVersion !== undefined && final.record.pluginVersion !== pluginVersion) return false;
    return !onlyFailedInside || (final.kind === "failed" && final.record.class !== "cancelled");
  }

  /** One is passed over. */
  skip(): void {
    this.#skipped++;
  }

  /** Takes into account how large the results of the last reading were. */
  learn(seen: readonly SeenItem[]): void {
    const bytes = seen.reduce((sum, one) => sum + bytesReadFor(one), 0);
    const fitting = Math.floor((seen.length * READ_BYTES) / Math.max(1, bytes));
    this.lookedUpMax = Math.max(1, Math.min(fitting, seen.length * 2, LOOKED_UP_MAX));
    this.#step *= READ_ITEMS_GROWTH;
  }

  /** Whether the item is one of those that are asked for. */
  wantsPlace(place: Place): boolean {
    const { withInside = false, onlyFailedInside = false } = this.#limits;
    return isInside(place) ? withInside || onlyFailedInside : !onlyFailedInside;
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
      const found = page.wantsPlace(seen.place) ? await finalOrNot(source, seen) : "never";
      if (found === "unfinished") return end(true);
      if (found === "never" || !page.wants(found)) page.skip();
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
    ...keyedPriorities.map(
      (priority): Lane =>
        (sequence) =>
          insidePlaceOf(priority, sequence),
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
    const range = { from, to: lane(upTo), limit: count, bytesMax: READ_BYTES };
    const seen = await seeItems(store, range);
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
  // Items from inside have keys.
  if (limits.onlyFailedInside === true && extent.keyedPriorities.length === 0)
    return { items: [], next: from, isCaughtUp: true };
  const page = new PageFiller(limits);
  const order = new CompletionReader(store, from, extent.nextCompletion);
  const end = (isCaughtUp: boolean): ResultPage<CompletionCursor> => ({
    items: page.items,
    next: order.next,
    isCaughtUp,
  });
  while (!page.isFull) {
    const places = await order.peek(page.step);
    if (places.length === 0) return end(true);
    const wanted = places.filter((place) => page.wantsPlace(place));
    const stretch = wanted.length === 0 ? [] : await readFirst(store, wanted, page.lookedUpMax);
    if (stretch.length > 0) page.learn(stretch);
    const passed = places.values();
    const passBefore = (end: Place | undefined): void => {
      for (const place of passed) {
        if (place === end) return;
        order.pass();
        page.skip();
      }
    };
    for (const seen of stretch) {
      passBefore(seen.place);
      const found = await countedOrNot(source, seen, order.next.record);
      if (found === undefined || !page.wants(found)) page.skip();
      else if (!page.add(found)) return end(false);
      order.pass();
    }
    if (wanted.length === 0) passBefore(undefined);
  }
  return end(false);
}

/** The places of items in the order in which they became final, some records of them at a time. */
class CompletionReader {
  readonly #store: Store;
  readonly #endRecord: number;
  #next: CompletionCursor;
  /** From the record of `#next` on, as far as they were read. */
  #records: readonly (readonly Place[])[] = [];

  constructor(store: Store, from: CompletionCursor, endRecord: number) {
    this.#store = store;
    this.#next = from;
    this.#endRecord = endRecord;
  }

  /** The cursor of the first place that was not passed. */
  get next(): CompletionCursor {
    return this.#next;
  }

  /** Places that follow, without passing them: not more than `count`, at least one unless there is none. */
  async peek(count: number): Promise<readonly Place[]> {
    while (this.#next.record < this.#endRecord) {
      if (this.#records.length === 0)
        this.#records = await readCompletions(this.#store, { from: this.#next.record, to: this.#endRecord });
      const [first = [], ...rest] = this.#records;
      const places = first.slice(this.#next.at);
      if (places.length === 0) {
        this.#leaveRecord();
        continue;
      }
      for (const record of rest) {
        if (places.length >= count) break;
        places.push(...record);
      }
      return places.slice(0, count);
    }
    return [];
  }

  pass(): void {
    const { record, at } = this.#next;
    this.#next = { record, at: at + 1 };
    if (at + 1 >= (this.#records[0]?.length ?? 0)) this.#leaveRecord();
    // A turn that has taken keys of another run leaves one without a place.
    while (this.#records[0]?.length === 0) this.#leaveRecord();
  }

  #leaveRecord(): void {
    this.#next = { record: this.#next.record + 1, at: 0 };
    this.#records = this.#records.slice(1);
  }
}

/** The first of these items, at least one. */
async function readFirst(
  store: Store,
  places: readonly Place[],
  lookedUpMax: number,
): Promise<readonly SeenItem[]> {
  const { count, ...range } = denseStart(places);
  if (count > lookedUpMax) {
    const found = new Map((await seeItems(store, range)).map((seen) => [seen.place, seen]));
    const missing = places.findIndex((place, at) => at === count || !found.has(place));
    const first = missing === -1 ? places : places.slice(0, missing);
    if (first.length > 0) return first.map((place) => found.get(place) as SeenItem);
  }
  const some = places.slice(0, lookedUpMax);
  const found = await seeItemsAt(store, some);
  return some.map((place, at) => found[at] ?? corrupt(store, place, "an item that became final is missing"));
}

/** As many of the first places as lie together, with few others among them: their rows are read together. */
function denseStart(places: readonly Place[]): Parameters<typeof seeItems>[1] & { readonly count: number } {
  const [start] = places;
  assert(start !== undefined, "there is a first place");
  let [from, last] = [start, start];
  let dense = { from, to: nextKey(last), limit: 1, count: 1 };
  for (const [at, place] of places.entries()) {
    if (!isBeside(place, start)) break;
    if (place < from) from = place;
    if (place > last) last = place;
    const limit = sequenceOf(last) - sequenceOf(from) + 1;
    if (limit > READ_ITEMS_MAX) break;
    if (limit <= (at + 1) * SPARSE) dense = { from, to: nextKey(last), limit, count: at + 1 };
  }
  return { ...dense, bytesMax: READ_BYTES };
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
