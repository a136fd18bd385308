// The outcome of a run, counted from its results.
import type { RolloutClient } from "../../src/compose/rollout-client.ts";

export interface Tally {
  /** Items with a result that is good. */
  readonly items: number;
  /** Results beyond one for each of them. */
  readonly duplicated: number;
}

/** A machine with much else to do answers late. */
const PATIENCE_MS = 60_000;

export async function tallyResults(client: RolloutClient): Promise<Tally> {
  const items = new Set<string>();
  let all = 0;
  for await (const { ok, item } of client.results({ patienceMs: PATIENCE_MS })) {
    if (!ok) continue;
    all++;
    items.add(item);
  }
  return { items: items.size, duplicated: all - items.size };
}
