// How late timers are: from the moment that each was due, by the coordinator, to the moment at which its event was recorded, the execution included.
import { createClient } from "@connectrpc/connect";
import { sleep, systemClock } from "../../../src/base/clock.ts";
import type { Line } from "../../../src/client/submit.ts";
import { KeyService } from "../../../src/gen/rollout/v1/keys_pb.ts";
import { MeasuredRun } from "../measured-run.ts";
import { withPlugin } from "./plugins.ts";

const WORKERS = 2;
const SLOTS = 16;
/** Alarms that are looked at: they are due soon, one after the other; the others are due much later. */
const SAMPLES = 100;
const FIRST_DUE_MS = 10_000;
const EVERY_MS = 50;
const MUCH_LATER_MS = 3_600_000;
const LOOK_MS = 250;

/** Milliseconds of each, in order; beside `armed` timers in all. Undefined where the worker arms none. */
export function timersLateness(armed: number): Promise<number[] | undefined> {
  return withPlugin("alarm", async ({ file, manifest }) => {
    const run = await MeasuredRun.start();
    try {
      for (let at = 0; at < WORKERS; at++) run.startWorker(SLOTS, "--plugin", file);
      await run.add(
        setLines("later", Math.max(0, armed - SAMPLES), () => MUCH_LATER_MS),
        manifest,
      );
      await run.until(({ done }) => done >= armed - SAMPLES);
      await run.add(
        setLines("soon", SAMPLES, (n) => FIRST_DUE_MS + n * EVERY_MS),
        manifest,
      );
      await run.until(({ done }) => done >= Math.max(armed, SAMPLES));
      return await latenessOf(run);
    } finally {
      await run.stop();
    }
  });
}

async function latenessOf(run: MeasuredRun): Promise<number[] | undefined> {
  const keys = createClient(KeyService, run.transport);
  const due = new Map<string, number>();
  for (let n = 0; n < SAMPLES; n++) {
    const key = `alarm/soon-${n}`;
    const dueAtMs = (await keys.getKey({ key })).asks?.timers[0]?.dueAtMs;
    if (dueAtMs === undefined) return undefined;
    due.set(key, dueAtMs);
  }
  const late: number[] = [];
  for (const [key, dueAtMs] of due)
    for (;;) {
      const [last] = (await keys.listKeyHistory({ key, limit: 1 })).results;
      if (last?.origin?.from.case === "timer") {
        late.push(Number(last.finishedAtMs) - dueAtMs);
        break;
      }
      run.demandWhole();
      await sleep(systemClock, LOOK_MS);
    }
  return late.toSorted((one, other) => one - other);
}

async function* setLines(name: string, count: number, delayOf: (n: number) => number): AsyncGenerator<Line> {
  for (let n = 0; n < count; n++) {
    const event = { type: "set", delayMs: delayOf(n) };
    yield { payload: Buffer.from(JSON.stringify(event)), key: `alarm/${name}-${n}`, eventId: "" };
  }
}
