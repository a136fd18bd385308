// Windows filled from the store: what each is to be given next, asked outside the reactor, and put in its place when it comes back.
import type { DelayedItem, Ledger, PendingItem } from "./ledger.ts";
import { sequenceOf } from "./place.ts";
import type { LoadRequest, Window } from "./window.ts";
import { LOW, WEIGHT_MAX } from "./window.ts";

export type WindowName = "returned" | "alone" | "delayed" | { readonly priority: number };

export interface WindowLoad extends LoadRequest {
  readonly window: WindowName;
}

export type LoadedWindow =
  | { readonly window: "delayed"; readonly entries: readonly DelayedItem[]; readonly hasMore: string | null }
  | {
      readonly window: "returned" | "alone" | { readonly priority: number };
      readonly entries: readonly PendingItem[];
      readonly hasMore: string | null;
    };

/** The loads to ask for now. Each window asks once until it is answered. */
export function wantedLoads(ledger: Ledger): WindowLoad[] {
  const loads: WindowLoad[] = [];
  const ask = (window: WindowName, request: LoadRequest | undefined): void => {
    if (request !== undefined) loads.push({ window, ...request });
  };
  ask("returned", ledger.returned.wants());
  ask("alone", ledger.returnedAlone.wants());
  ask("delayed", ledger.delayed.wants());
  askFresh(ledger, ask);
  return loads;
}

/**
 * Fresh windows share the room of one. Each waits for those of higher priority: until these have all that there is of them,
 * and little of it.
 */
function askFresh(
  { fresh }: Ledger,
  ask: (window: WindowName, request: LoadRequest | undefined) => void,
): void {
  for (const window of fresh.values()) if (window.isLoading) return;
  let [size, weight] = [0, 0];
  for (const [priority, window] of fresh) {
    ask({ priority }, window.wants(weight));
    size += window.size;
    weight += window.weight;
    if (!window.isWhole || size > LOW) return;
  }
}

/** Makes room for a load that one of them has got, in the others: in those of the lowest priority first. */
function shrinkFresh({ fresh }: Ledger): void {
  let weight = 0;
  for (const window of fresh.values()) weight += window.weight;
  if (weight <= WEIGHT_MAX) return;
  const filled: Window<PendingItem>[] = [...fresh.values()].filter(({ size }) => size > 0);
  // The first of all stays within its bound by itself.
  for (const window of filled.slice(1).reverse()) {
    if (weight <= WEIGHT_MAX) return;
    weight -= window.weight;
    window.shrinkTo(Math.max(0, WEIGHT_MAX - weight));
    weight += window.weight;
  }
}

/** Puts what was read into its window. */
export function applyLoad(ledger: Ledger, loaded: LoadedWindow): void {
  const { delayed, returned, returnedAlone, shelf, alone, fresh, tally } = ledger;
  switch (loaded.window) {
    case "delayed":
      return delayed.load(loaded.entries, loaded.hasMore);
    case "returned": {
      const waiting = loaded.entries.filter(({ key }) => !shelf.has(key));
      return returned.load(waiting, loaded.hasMore);
    }
    case "alone": {
      const waiting = loaded.entries.filter(({ key }) => !alone.has(key));
      return returnedAlone.load(waiting, loaded.hasMore);
    }
    default: {
      const { priority } = loaded.window;
      // The row of an item stays when it is given out, so a scan finds it again: the cursor is what says that it is gone.
      const cursor = tally.cursors.get(priority) ?? 0;
      const waiting = loaded.entries.filter(
        ({ key }) => sequenceOf(key) >= cursor && !ledger.setAside.has(key),
      );
      fresh.get(priority)?.load(waiting, loaded.hasMore);
      shrinkFresh(ledger);
    }
  }
}
