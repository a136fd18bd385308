// `npm run test:slowest`: the tests that took longest in the last `make test`, and of which of them the limit is less than eight
// times what they took. A test that waits beside others shows the whole of its wait.
import { readdirSync, readFileSync } from "node:fs";
import type { TestTime } from "../test/support/mocha-statistics.ts";

const CACHE = ".cache/test";
const SHOWN = 20;
/** A limit is a guard against hanging: so many times what the test takes on a quiet machine. */
const LIMIT_FACTOR = 8;

const tests = readdirSync(CACHE)
  .filter((name) => name.endsWith(".json"))
  .flatMap((name) => {
    const { tests: times } = JSON.parse(readFileSync(`${CACHE}/${name}`, "utf8")) as { tests: TestTime[] };
    return times.map((time) => ({ ...time, check: name.slice(0, -".json".length) }));
  })
  .toSorted((one, other) => other.tookMs - one.tookMs);

for (const { check, title, tookMs } of tests.slice(0, SHOWN))
  console.log(`${(tookMs / 1_000).toFixed(1).padStart(6)} s  ${check.padEnd(13)}  ${title}`);
const tight = tests.filter(({ tookMs, limitMs }) => tookMs * LIMIT_FACTOR > limitMs);
console.log(
  `${tests.length} tests, ${tight.length} with a limit of less than ${LIMIT_FACTOR} times what they took`,
);
for (const { title, tookMs, limitMs } of tight) console.log(`  ${tookMs} ms of ${limitMs} ms: ${title}`);
