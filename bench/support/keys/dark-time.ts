// How long keys wait when one of two workers is killed with -9 under light load: those that had an item with it, and all others.
import { sleep, systemClock } from "../../../src/base/clock.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { readResults } from "../../../src/client/results.ts";
import type { Line } from "../../../src/client/submit.ts";
import { MeasuredRun } from "../measured-run.ts";

const KEYS = 40;
const EVERY_MS = 100;
const BEFORE_MS = 3_000;
const AFTER_MS = 10_000;
const SLOTS = 64;

export interface DarkTime {
  /** The longest wait of a key that had an item with the worker, from an item's submission to its result. */
  readonly ranThereMs: number;
  readonly elsewhereMs: number;
  readonly keysThatRanThere: number;
}

interface Asked {
  readonly k: number;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export async function measureDarkTime(): Promise<DarkTime> {
  const run = await MeasuredRun.start();
  try {
    const pids = [0, 1].map(() => run.startWorker(SLOTS, "--mock-sleep", "20ms"));
    await run.until(({ workers }) => workers.ready === pids.length);
    await ask(run, BEFORE_MS);
    const killedAtMs = systemClock.wallMs();
    process.kill(pids[0] ?? 0, "SIGKILL");
    await ask(run, AFTER_MS);
    await run.seal();
    await run.until(({ state }) => state === "complete");
    return await waits(run, killedAtMs);
  } finally {
    await run.stop();
  }
}

/** An item of each key, again and again. */
async function ask(run: MeasuredRun, forMs: number): Promise<void> {
  const endMs = systemClock.monotonicMs() + forMs;
  while (systemClock.monotonicMs() < endMs) {
    const at = systemClock.wallMs();
    await run.add(lines(at));
    await sleep(systemClock, Math.max(0, at + EVERY_MS - systemClock.wallMs()));
  }
}

async function* lines(at: number): AsyncGenerator<Line> {
  for (let k = 0; k < KEYS; k++) {
    const asked: Asked = { k, at };
    yield { payload: Buffer.from(JSON.stringify(asked)), key: `k${k}`, eventId: "" };
  }
}

/** Items count that were submitted no earlier than a second before the kill. */
async function waits(run: MeasuredRun, killedAtMs: number): Promise<DarkTime> {
  const longest = new Array<number>(KEYS).fill(0);
  const ranThere = new Set<number>();
  const options = { order: "completion", follow: false, clock: systemClock, random: systemRandom } as const;
  for await (const { results } of readResults(run.transport, options))
    for (const { output, attempt, finishedAtMs } of results) {
      const { k, at } = JSON.parse(Buffer.from(output).toString()) as Asked;
      if (at < killedAtMs - 1_000) continue;
      if (attempt > 1) ranThere.add(k);
      longest[k] = Math.max(longest[k] ?? 0, finishedAtMs - at);
    }
  const most = (there: boolean): number =>
    Math.max(0, ...longest.filter((_, k) => ranThere.has(k) === there));
  return { ranThereMs: most(true), elsewhereMs: most(false), keysThatRanThere: ranThere.size };
}
