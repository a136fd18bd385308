// Results as their items were submitted. Items of one priority lie together, so what is next is looked for in each of them, the
// last one first: equal priorities, which is the rule, are read in long stretches. Constant memory, whatever the run's size.
import { placeOf, sequenceOf } from "../ledger/place.ts";
import type { FinalItem, SeenItem } from "./stored-items.ts";
import { corrupt, seeItemAt, seeItems } from "./stored-items.ts";
import type { PageLimits, ResultPage, ResultSource } from "./result-page.ts";
import { LOOKS_MAX, PageFiller } from "./result-page.ts";

const GUESSED_MAX = 4;

/** `from` is the sequence of the first item that is not read yet. Throws store_corrupt. */
export async function readByInput(
  source: ResultSource,
  from: number,
  limits: PageLimits,
): Promise<ResultPage<number>> {
  const { store, extent } = source;
  const page = new PageFiller(limits);
  const priorities = [...extent.priorities];
  let next = from;
  const end = (isCaughtUp: boolean): ResultPage<number> => ({ items: page.items, next, isCaughtUp });
  while (!page.isFull) {
    if (next >= extent.nextSequence) return end(true);
    const stretch = await readStretch(source, priorities, next, page.step);
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

/** Items whose sequences follow each other without a gap, in one priority; moves that priority to the front. */
async function readStretch(
  { store, extent }: ResultSource,
  priorities: number[],
  sequence: number,
  limit: number,
): Promise<SeenItem[]> {
  for (const [at, priority] of priorities.entries()) {
    const from = placeOf(priority, sequence);
    // Where it is only guessed that the item is there, little is read.
    const count = at === 0 ? limit : Math.min(limit, GUESSED_MAX);
    const upTo = Math.min(sequence + count, extent.nextSequence);
    const seen = await seeItems(store, { from, to: placeOf(priority, upTo), limit: count });
    const gap = seen.findIndex(({ place }, offset) => sequenceOf(place) !== sequence + offset);
    const stretch = gap === -1 ? seen : seen.slice(0, gap);
    if (stretch.length === 0) continue;
    priorities.splice(at, 1);
    priorities.unshift(priority);
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
