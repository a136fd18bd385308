// The cost of an item in runs of more items, and with more workers: the last item is to cost as much as the first. The plot in the documentation
// is drawn here.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Bench, Figure } from "./support/figure.ts";
import { round } from "./support/figure.ts";
import { ledInMemory } from "./support/in-memory-fleet.ts";
import { measure } from "./support/peers/contender.ts";
import type { Measured } from "./support/peers/contender.ts";
import { rollout } from "./support/peers/contenders.ts";
import { plot } from "./support/plot.ts";
import { WorkingFleet } from "./support/working-fleet.ts";

/** The largest of them may be said: a tenth of it and a hundredth are measured too, and what is between. */
const ITEMS_MAX = Number(process.env["ROLLOUT_BENCH_ITEMS"] ?? 1_000_000);
const SIZES = [0.01, 0.03, 0.1, 0.3, 1].map((part) => Math.round(part * ITEMS_MAX));
const FLEETS = [1, 10, 100, 1_000] as const;
const SLOTS = 64;
const PAYLOAD_BYTES = 100;
/** The documentation's is of a million. */
const PICTURE = resolve(
  import.meta.dirname,
  ITEMS_MAX < 1_000_000 ? "../.cache/bench/growth.svg" : "../docs/pictures/growth.svg",
);

type Note = (line: string) => void;

export const growth: Bench = {
  name: "growth",
  async run(note) {
    const figures: Figure[] = [];
    for (const workers of FLEETS) figures.push(...(await withWorkers(workers, note)));
    const runs: Measured[] = [];
    for (const items of SIZES) {
      const measured = await measure(rollout("rollout"), { mode: "overlapped", workers: 2, items });
      note(`${items} items: ${JSON.stringify(measured)}`);
      runs.push(measured);
      figures.push(...ofSize(items, measured));
    }
    mkdirSync(dirname(PICTURE), { recursive: true });
    writeFileSync(PICTURE, pictureOf(runs));
    note(`the plot is in ${PICTURE}`);
    return figures;
  },
};

/** A tenth of the items, in this process: the coordinator without sockets. */
async function withWorkers(workers: number, note: Note): Promise<Figure[]> {
  const items = Math.round(ITEMS_MAX / 10);
  return ledInMemory(workers, async (coordinator) => {
    const before = inUse();
    const fleet = new WorkingFleet(coordinator, workers, SLOTS);
    await fleet.join();
    const joined = inUse();
    const cpuBefore = process.threadCpuUsage();
    await fleet.execute(items, PAYLOAD_BYTES);
    const { user, system } = process.threadCpuUsage(cpuBefore);
    const ended = inUse();
    const what = `${workers} workers of ${SLOTS} slots, in memory, ${items} items`;
    note(`${what}: ${round((user + system) / items, 1)} µs`);
    return [
      { name: `${what}: main thread, an item`, value: round((user + system) / items, 1), unit: "µs" },
      { name: `${what}: in use by the workers that wait`, value: mib(joined - before), unit: "MiB" },
      { name: `${what}: in use after the last result`, value: mib(ended - before), unit: "MiB" },
    ];
  });
}

function ofSize(items: number, measured: Measured): Figure[] {
  return [
    { name: `${items} items: end to end`, value: measured.itemsPerSecond, unit: "1/s" },
    ...["coordinator", "workers", "producer"].map((who) => ({
      ...{
        name: `${items} items: CPU of ${who}, an item`,
        value: round(cost(measured, items, who), 1),
        unit: "µs",
      },
    })),
    {
      name: `${items} items: written by the coordinator, an item`,
      value: round((measured.processes["coordinator"]?.writtenBytes ?? NaN) / items),
      unit: "bytes",
    },
    {
      name: `${items} items: peak of the coordinator's memory`,
      value: mib(measured.processes["coordinator"]?.peakBytes ?? NaN),
      unit: "MiB",
    },
  ];
}

/** Microseconds of CPU. */
function cost({ processes }: Measured, items: number, who: string): number {
  const seconds = Object.entries(processes)
    .filter(([name]) => name === who || (who === "workers" && name.startsWith("worker ")))
    .reduce((sum, [, { cpuSeconds }]) => sum + cpuSeconds, 0);
  return (seconds * 1e6) / items;
}

function pictureOf(runs: readonly Measured[]): string {
  const line = (who: string) => ({
    name: who,
    points: runs.map((run, at) => ({ x: SIZES[at] ?? 0, y: cost(run, SIZES[at] ?? 1, who) })),
  });
  return plot({
    title: "CPU an item, as there are more of them",
    ...{ xName: "items of the run", yName: "µs an item" },
    lines: [line("coordinator"), line("workers"), line("producer")],
  });
}

/** After a collection: objects, and what they hold outside of the heap. */
function inUse(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  for (let times = 0; times < 2; times++) collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function mib(bytes: number): number {
  return round(bytes / 2 ** 20);
}
