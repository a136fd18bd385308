// Results as their items became final. An item that was retried stands in the record of each time that it became final; its row
// says which of them counts.
import type { Store } from "../../storage/store.ts";
import { readCompletions } from "../ledger/completions.ts";
import type { FinalItem, SeenItem } from "./stored-items.ts";
import { corrupt, seeItemAt } from "./stored-items.ts";
import type { Place } from "../ledger/place.ts";
import type { PageLimits, ResultPage, ResultSource } from "./result-page.ts";
import { LOOKS_MAX, PageFiller } from "./result-page.ts";

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

function seeAll(store: Store, places: readonly Place[]): Promise<SeenItem[]> {
  return Promise.all(
    places.map(async (place) => {
      const seen = await seeItemAt(store, place);
      return seen ?? corrupt(store, place, "an item that became final is missing");
    }),
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
