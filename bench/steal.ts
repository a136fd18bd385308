// The worth of stealing: a run with two workers and a third that is twenty times slower, with it and without. Each worker asks
// for sixteen items beside the one that it executes, so the slow one has seconds of work in its backlog when the others run out.
import { systemClock } from "../src/base/clock.ts";
import { sleep } from "../src/base/clock.ts";
import type { Bench } from "./support/figure.ts";
import { round } from "./support/figure.ts";
import { SleepingFleet } from "./support/sleeping-fleet.ts";

const ITEMS = 400;
const FAST_MS = 10;
const SLOW_MS = 20 * FAST_MS;
const PREFETCH = 16;
const POLL_MS = 5;

export const steal: Bench = {
  name: "steal",
  async run(note) {
    const withoutMs = await wallMs(false);
    note(`without stealing: ${round(withoutMs)} ms`);
    const withMs = await wallMs(true);
    note(`with stealing: ${round(withMs)} ms`);
    return [
      { name: "one worker of three 20 times slower, without stealing", value: round(withoutMs), unit: "ms" },
      { name: "the same with stealing", value: round(withMs), unit: "ms" },
      { name: "without / with", value: round(withoutMs / withMs, 2), unit: "×" },
    ];
  },
};

/** From when the workers may begin to the last result. */
async function wallMs(steals: boolean): Promise<number> {
  const fleet = await SleepingFleet.start({ steals });
  try {
    for (const itemMs of [FAST_MS, FAST_MS, SLOW_MS]) await fleet.join({ itemMs, prefetch: PREFETCH });
    const startedMs = systemClock.monotonicMs();
    await fleet.submit(ITEMS);
    while ((await fleet.done()) < ITEMS) await sleep(systemClock, POLL_MS);
    return systemClock.monotonicMs() - startedMs;
  } finally {
    await fleet.stop();
  }
}
