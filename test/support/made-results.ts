// Results that a test makes up: any number of them, each known by its number.
import type { Result, ResultPage } from "../../src/client/results.ts";
import type { WorkerId } from "../../src/base/ids.ts";
import { parseUlid } from "../../src/base/ids.ts";

export const MADE_WORKER = parseUlid<WorkerId>("01JZ8Q6T0C5V9W3R7X2Y4B6D8F");
const STARTED_MS = Date.UTC(2026, 10, 3, 10);

/** Each third one has failed unless `change` says otherwise. */
export function madeResult(number: number, change: Partial<Result> = {}): Result {
  const ok = number % 3 !== 2;
  return {
    item: number.toString(16).padStart(64, "0"),
    id: `line-${number}`,
    sequence: number,
    ok,
    output: ok ? Buffer.from(`{"n":${number}}`) : new Uint8Array(),
    error: ok ? undefined : { class: "error", message: `broke on ${number}` },
    attempt: 1,
    worker: MADE_WORKER,
    pluginVersion: "1",
    startedAtMs: STARTED_MS + number,
    durationMs: 12,
    finishedAtMs: STARTED_MS + number + 12,
    input: undefined,
    origin: undefined,
    ...change,
  };
}

/** Pages of `size` of `count` results, from behind the cursor `after`, as a coordinator would give them. */
export function* madePages(count: number, size: number, after = ""): Generator<ResultPage> {
  let at = after === "" ? 0 : Number(after);
  for (;;) {
    const end = Math.min(count, at + size);
    const results = Array.from({ length: end - at }, (_, offset) => madeResult(at + offset));
    at = end;
    yield { results, cursor: String(at), caughtUp: at === count, end: at === count };
    if (at === count) return;
  }
}
