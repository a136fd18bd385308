// The cost of a transition of a compiled chart: items go their usual way (given out, done) and the way of a preemption (given out, handed
// back, given out, done), by the chart that the coordinator moves its items with.
import { systemClock } from "../src/base/clock.ts";
import { assert } from "../src/base/assert.ts";
import { itemChart } from "../src/coordinator/items/transitions.ts";
import type { Effect } from "../src/runtime/compile.ts";
import type { ItemEvent } from "../machines/work-item.ts";
import type { Bench } from "./support/figure.ts";
import { round } from "./support/figure.ts";

const ITEMS = 200_000;
/** The first ones compile the code; of the others the median counts. */
const ROUNDS = 9;
const WARM_FROM = 4;

export const transitions: Bench = {
  name: "transitions",
  run(note) {
    const each = Array.from({ length: ROUNDS }, () => nanosecondsOfOne());
    note(`${ROUNDS} rounds, ns: ${each.map((ns) => round(ns)).join(" ")}`);
    const warm = each.slice(WARM_FROM).toSorted((one, other) => one - other);
    const ns = warm[warm.length >> 1] ?? NaN;
    return Promise.resolve([
      { name: "a transition of an item's compiled chart", value: round(ns / 1_000, 2), unit: "µs" },
      { name: "transitions on one core", value: round(1_000 / ns, 1), unit: "million/s" },
    ]);
  },
};

function nanosecondsOfOne(): number {
  const effects: Effect[] = [];
  let steps = 0;
  const startMs = systemClock.monotonicMs();
  for (let at = 0; at < ITEMS; at++) {
    let row = itemChart.initial({ maxAttempts: 3, maxLost: 5 });
    const send = (event: ItemEvent): void => {
      row = itemChart.step(row, event, effects);
      steps++;
    };
    const on = { worker: "w", incarnation: "i", epoch: 1 };
    send({ type: "item.assigned", ...on });
    if (at % 2 === 0) {
      send({ type: "item.returned", ...on, attempt: 1, atMs: at });
      send({ type: "item.assigned", ...on });
    }
    send({ type: "item.succeeded", ...on, attempt: row.context.attempt });
    assert(itemChart.nameOf(row) === "Done", "the item is done");
    effects.length = 0;
  }
  return ((systemClock.monotonicMs() - startMs) * 1e6) / steps;
}
