// Events of actors, and items of a module that does nothing, on the same slots: how many a second, when all were submitted before the first begins.
import type { Line } from "../../../src/client/submit.ts";
import { MeasuredRun } from "../measured-run.ts";
import { withPlugin } from "./plugins.ts";

const WORKERS = 2;
const SLOTS = 16;

/** `actors`: over how many the events go. */
export function eventsPerSecond(events: number, actors: number): Promise<number> {
  return measured("counter", events, (n) => keyed(`counter/${n % actors}`, { type: "add" }));
}

export function moduleItemsPerSecond(items: number): Promise<number> {
  return measured("module", items, (n) => Buffer.from(JSON.stringify({ n })));
}

/** Events of actors whose states have so many bytes, each of which was made so large by its first event. */
export function sizedEventsPerSecond(events: number, actors: number, stateBytes: number): Promise<number> {
  const lineOf = (n: number): Line =>
    keyed(`counter/${n % actors}`, n < actors ? { type: "grow", bytes: stateBytes } : { type: "add" });
  return measured("counter", actors + events, lineOf, actors);
}

/** `unmeasured`: so many of the first are not counted. */
function measured(
  backend: "counter" | "module",
  items: number,
  lineOf: (n: number) => Line,
  unmeasured = Math.ceil(items / 10),
): Promise<number> {
  return withPlugin(backend, async ({ file, manifest }) => {
    const run = await MeasuredRun.start();
    try {
      await run.add(lines(items, lineOf), manifest);
      for (let at = 0; at < WORKERS; at++) run.startWorker(SLOTS, "--plugin", file);
      return await run.ratePerSecond(unmeasured, items);
    } finally {
      await run.stop();
    }
  });
}

async function* lines(count: number, lineOf: (n: number) => Line): AsyncGenerator<Line> {
  for (let n = 0; n < count; n++) yield lineOf(n);
}

function keyed(key: string, event: object): Line {
  return { payload: Buffer.from(JSON.stringify(event)), key, eventId: "" };
}
