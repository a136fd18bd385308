// Two states of a coordinator, compared in everything that is meant to survive it (C4).
import type { CoordinatorState } from "../../src/coordinator/turn/state.ts";
import { workerChart } from "../../src/coordinator/turn/state.ts";
import { runChart } from "../../src/coordinator/run/run.ts";

/** The first part in which they differ, with both values; undefined when they are the same. */
export function difference(one: CoordinatorState, other: CoordinatorState): string | undefined {
  const [left, right] = [persistedOf(one), persistedOf(other)];
  for (const [name, value] of Object.entries(left)) {
    const [stored, live] = [JSON.stringify(value), JSON.stringify(right[name])];
    if (stored !== live) return `${name}: stored ${stored}, live ${live}`;
  }
  return undefined;
}

function persistedOf(state: CoordinatorState): Record<string, unknown> {
  const { workers, workersCount, ledger, run, task, countedFrom } = state;
  const { segments, nextSequence, nextCompletion, cursors, failedByClass, failures } = ledger.tally.numbers;
  return {
    run: [runChart.states[run.state], run.context],
    task: task && [Buffer.from(task.digest).toString("hex"), task.plugin, task.summary],
    countedFrom,
    failed: [failedByClass, failures],
    segments,
    sequences: [nextSequence, nextCompletion],
    cursors: [...cursors].sort(([left], [right]) => left - right),
    running: [...ledger.running]
      .map(([key, { place, row, number }]) => [
        Buffer.from(key, "latin1").toString("hex"),
        place,
        row,
        number,
      ])
      .sort(byText),
    held: [...workers.values()]
      .map(({ id, held }) => [id, [...held.values()].map(({ place }) => place).sort()])
      .sort(byText),
    workersCount: workersCount.count,
    workers: [...workers.values()]
      .map((row) => [row.id, workerChart.states[row.chart.state], row.chart.context, row.slots, row.sequence])
      .sort(byText),
  };
}

function byText(one: readonly unknown[], other: readonly unknown[]): number {
  return String(one[0]) < String(other[0]) ? -1 : 1;
}
