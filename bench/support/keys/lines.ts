// Items of keys, as they are submitted.
import type { Line } from "../../../src/client/submit.ts";

/** About 100 bytes of JSON each; `keyOf` gives the key of the nth, empty for none. `from` is the number of the first. */
export async function* keyedLines(
  items: number,
  keyOf: (n: number) => string,
  from = 0,
): AsyncGenerator<Line> {
  for (let n = from; n < from + items; n++) {
    const payload = Buffer.from(JSON.stringify({ n, pad: "x".repeat(76) }));
    const key = keyOf(n);
    yield key === "" ? payload : { payload, key, eventId: "" };
  }
}
