// How long it takes from the moment one item is submitted to the moment who follows knows its result, through a worker that is a process of
// its own: one item after the other, and at a steady pace. Measured are rollout, and BullMQ with each write synced, where that can be had.
import { systemClock, sleep } from "../src/base/clock.ts";
import type { Figure } from "./support/figure.ts";
import { round } from "./support/figure.ts";
import type { Followed } from "./support/followed.ts";
import { withBullMq } from "./support/followed-bullmq.ts";
import { withRollout } from "./support/followed-rollout.ts";

const SAMPLES = 400;
const UNMEASURED = 20;
/** Between two items that are submitted one after the other. */
const PAUSE_MS = 20;
/** 100 items a second. */
const EVERY_MS = 10;

const PACES = { idle, "at 100 items a second": steadily } as const;

export async function knownResults(note: (line: string) => void): Promise<readonly Figure[]> {
  const own = await withRollout((followed) => figuresOf("", followed, note));
  const peer = await withBullMq(
    (followed) => figuresOf("BullMQ, appendfsync always: ", followed, note),
    note,
  );
  return [...own, ...peer];
}

async function figuresOf(
  whose: string,
  followed: Followed,
  note: (line: string) => void,
): Promise<readonly Figure[]> {
  await idle(followed, UNMEASURED);
  const figures: Figure[] = [];
  for (const [how, measure] of Object.entries(PACES)) {
    const sorted = (await measure(followed, SAMPLES)).toSorted((one, other) => one - other);
    const [p50 = NaN, p99 = NaN] = [0.5, 0.99].map((share) => sorted[Math.floor(share * sorted.length)]);
    const name = `${whose}submit to result known, ${how}`;
    note(`${name}: p50 ${round(p50, 2)} ms, p99 ${round(p99, 2)} ms`);
    figures.push({ name: `${name}, p50`, value: round(p50, 2), unit: "ms" });
    figures.push({ name: `${name}, p99`, value: round(p99, 2), unit: "ms" });
  }
  return figures;
}

/** Milliseconds of each, submitted when the one before is known. */
async function idle(followed: Followed, items: number): Promise<number[]> {
  const all: number[] = [];
  for (let at = 0; at < items; at++) {
    all.push(await known(followed));
    await sleep(systemClock, PAUSE_MS);
  }
  return all;
}

/** The same, submitted at a pace that does not wait for them. */
async function steadily(followed: Followed, items: number): Promise<number[]> {
  const all: Promise<number>[] = [];
  const startedMs = systemClock.monotonicMs();
  for (let at = 0; at < items; at++) {
    all.push(known(followed));
    await sleep(systemClock, Math.max(0, startedMs + (at + 1) * EVERY_MS - systemClock.monotonicMs()));
  }
  return Promise.all(all);
}

async function known(followed: Followed): Promise<number> {
  const sentMs = systemClock.monotonicMs();
  return (await followed.submit()) - sentMs;
}
