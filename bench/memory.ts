// Memory of the coordinator's process: at more and more items, with a worker that is slow, and on a disk that is. Queues are
// windows over the store, so what is in use after a collection has to be flat. Resident memory is more: what the collector and
// the allocator have not given back, and pages of the database's files.
import { join } from "node:path";
import { sleep, systemClock } from "../src/base/clock.ts";
import type { Bench, Figure } from "./support/figure.ts";
import { round } from "./support/figure.ts";
import type { LagReport } from "./support/measured-coordinator.ts";
import { MeasuredRun } from "./support/measured-run.ts";

const SIZES = [10_000, 100_000, 1_000_000] as const;
const PAYLOAD_BYTES = 200;
const WORKERS = 2;
const SLOTS = 256;
/** With 48 the process ends: a turn and the submissions in it take some beside what is in use after a collection. */
const SMALL_HEAP_MIB = 64;
const TROUBLED_ITEMS = 100_000;
const SLOW_WATCH_MS = 10_000;
const DISK_MS = 25;
const SLOW_DISK = join(import.meta.dirname, "support/slow-disk.ts");

type Note = (line: string) => void;

export const memory: Bench = {
  name: "memory",
  async run(note) {
    const figures: Figure[] = [];
    for (const items of SIZES) figures.push(...(await worked(items, note)));
    figures.push(...(await inASmallHeap(note)));
    figures.push(...(await besideASlowWorker(note)), ...(await onASlowDisk(note)));
    return figures;
  },
};

/** Submitted, and then worked off. */
async function worked(items: number, note: Note): Promise<Figure[]> {
  const run = await MeasuredRun.start({ collects: true });
  try {
    const before = await run.coordinator.lag();
    await run.submit(items, PAYLOAD_BYTES);
    const submitted = await run.coordinator.lag();
    for (let at = 0; at < WORKERS; at++) run.startWorker(SLOTS);
    await run.until(({ done }) => done === items);
    const ended = await run.coordinator.lag();
    note(`${items} items: ${mib(before)} MiB, submitted ${mib(submitted)} MiB, done ${mib(ended)} MiB`);
    return [
      figure(`${items} items: in use before the first of them`, before.in_use_bytes),
      figure(`${items} items: in use after they were submitted`, submitted.in_use_bytes),
      figure(`${items} items: in use after the last result`, ended.in_use_bytes),
      figure(`${items} items: after they were submitted`, submitted.rss_bytes),
      figure(`${items} items: after the last result`, ended.rss_bytes),
      figure(`${items} items: of these, pages of the database's files`, ended.rss_of_files_bytes),
    ];
  } finally {
    await run.stop();
  }
}

/**
 * A garbage collector keeps all that it was not made to give back: with a heap that is a fraction of what it takes unasked, the
 * largest run either works or ends the process.
 */
async function inASmallHeap(note: Note): Promise<Figure[]> {
  const items = Math.max(...SIZES);
  const run = await MeasuredRun.start({ env: { NODE_OPTIONS: `--max-old-space-size=${SMALL_HEAP_MIB}` } });
  try {
    await run.submit(items, PAYLOAD_BYTES);
    for (let at = 0; at < WORKERS; at++) run.startWorker(SLOTS);
    await run.until(({ done }) => done === items);
    const ended = await run.coordinator.lag();
    note(`${items} items in a heap of ${SMALL_HEAP_MIB} MiB: ${mib(ended)} MiB`);
    const name = `${items} items, heap of ${SMALL_HEAP_MIB} MiB`;
    return [
      figure(`${name}: after the last result`, ended.rss_bytes),
      figure(`${name}: of these, pages of the database's files`, ended.rss_of_files_bytes),
    ];
  } finally {
    await run.stop();
  }
}

/** A worker that takes seconds for an item, and many items that wait. */
async function besideASlowWorker(note: Note): Promise<Figure[]> {
  const run = await MeasuredRun.start();
  try {
    run.startWorker(SLOTS, "--mock-sleep", "2s");
    await run.submit(TROUBLED_ITEMS, PAYLOAD_BYTES);
    await run.until(({ running }) => running >= SLOTS);
    await sleep(systemClock, SLOW_WATCH_MS);
    const report = await run.coordinator.lag();
    note(`beside a slow worker: ${mib(report)} MiB`);
    return [figure(`${TROUBLED_ITEMS} items and a slow worker: at most`, report.rss_peak_bytes)];
  } finally {
    await run.stop();
  }
}

/** Work comes in and results come back faster than the disk takes them. */
async function onASlowDisk(note: Note): Promise<Figure[]> {
  const run = await MeasuredRun.start({ preload: SLOW_DISK, env: { BENCH_DISK_MS: String(DISK_MS) } });
  try {
    for (let at = 0; at < WORKERS; at++) run.startWorker(SLOTS);
    await run.submit(TROUBLED_ITEMS, PAYLOAD_BYTES);
    await run.until(({ done }) => done === TROUBLED_ITEMS);
    const report = await run.coordinator.lag();
    note(`on a slow disk: ${mib(report)} MiB`);
    return [figure(`${TROUBLED_ITEMS} items, each write ${DISK_MS} ms: at most`, report.rss_peak_bytes)];
  } finally {
    await run.stop();
  }
}

function figure(name: string, bytes: number): Figure {
  return { name, value: round(bytes / 2 ** 20), unit: "MiB" };
}

function mib({ rss_bytes }: LagReport): number {
  return round(rss_bytes / 2 ** 20);
}
