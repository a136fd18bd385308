// Rates of a run with keys that nothing else is compared with: one key alone, keys that are new, and the rest beside one key that is parked with
// all that waits behind it.
import { createClient } from "@connectrpc/connect";
import { systemClock } from "../../../src/base/clock.ts";
import { steerKeys } from "../../../src/client/keys.ts";
import { KeyService } from "../../../src/gen/rollout/v1/keys_pb.ts";
import { MeasuredRun } from "../measured-run.ts";
import { keyedLines } from "./lines.ts";

const WORKERS = 2;
const SLOTS = 256;
/** Before anything is measured, programs have to be warm. */
const WARM_ITEMS = 5_000;
const PARKED = "parked";

/** Items of one key, all submitted before the first begins: how many a second. */
export function oneKey(items: number, stateBytes: number): Promise<number> {
  return during(async (run) => {
    await run.add(keyedLines(items, () => "one"));
    startWorkers(run, "--mock-state", `${stateBytes}B`);
    return run.ratePerSecond(Math.ceil(items / 10), items);
  });
}

export interface NewKeys {
  /** From the submission of the first item of every key on to its last result. */
  readonly firstPerSecond: number;
  readonly warmPerSecond: number;
}

export function newKeys(keys: number): Promise<NewKeys> {
  return during(async (run) => {
    let submitted = 0;
    const round = async (items: number, keyOf: (n: number) => string): Promise<number> => {
      const fromMs = systemClock.monotonicMs();
      await run.add(keyedLines(items, keyOf, submitted));
      submitted += items;
      await run.until(({ done }) => done === submitted);
      return (items / (systemClock.monotonicMs() - fromMs)) * 1_000;
    };
    startWorkers(run);
    await round(WARM_ITEMS, (n) => `warm${n % keys}`);
    const firstPerSecond = await round(keys, (n) => `k${n % keys}`);
    return { firstPerSecond, warmPerSecond: await round(keys, (n) => `k${n % keys}`) };
  });
}

/** Items without keys, and as many of keys, beside a key that an operator has paused and `behind` items of it: how many a second. */
export function besideParked(items: number, behind: number): Promise<number> {
  return during(async (run) => {
    if (behind > 0) {
      await run.add(keyedLines(behind, () => PARKED));
      await steerKeys(createClient(KeyService, run.transport), "pause", [PARKED]);
    }
    await run.add(keyedLines(items, (n) => (n % 2 === 0 ? "" : `k${n % 1_000}`), behind));
    startWorkers(run);
    return run.ratePerSecond(Math.ceil(items / 10), items);
  });
}

async function during<Found>(use: (run: MeasuredRun) => Promise<Found>): Promise<Found> {
  const run = await MeasuredRun.start();
  try {
    return await use(run);
  } finally {
    await run.stop();
  }
}

function startWorkers(run: MeasuredRun, ...settings: string[]): void {
  for (let at = 0; at < WORKERS; at++) run.startWorker(SLOTS, ...settings);
}
