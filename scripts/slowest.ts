// `npm run test:slowest`: the tests that took longest in the last `make test`, the files of tests that cost the processors most, and
// the tests of which the limit is less than eight times what they took. A test that waits beside others shows the whole of its wait.
import { readdirSync, readFileSync } from "node:fs";
import type { Statistics } from "../test/support/mocha-statistics.ts";

const CACHE = ".cache/test";
const SHOWN = 20;
/** A limit is a guard against hanging: so many times what the test takes on a quiet machine. */
const LIMIT_FACTOR = 8;

const checks = readdirSync(CACHE)
  .filter((name) => name.endsWith(".json"))
  .map((name) => {
    const statistics = JSON.parse(readFileSync(`${CACHE}/${name}`, "utf8")) as Statistics;
    return { name: name.slice(0, -".json".length), ...statistics };
  });
const tests = checks
  .flatMap((check) => check.tests.map((time) => ({ ...time, check: check.name })))
  .toSorted((one, other) => other.tookMs - one.tookMs);
const files = checks.flatMap(({ processorMs }) => Object.entries(processorMs));

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1).padStart(6)} s`;
for (const { check, title, tookMs } of tests.slice(0, SHOWN))
  console.log(`${seconds(tookMs)}  ${check.padEnd(13)}  ${title}`);
console.log("of the processors:");
for (const [file, ms] of files.toSorted(([, one], [, other]) => other - one).slice(0, SHOWN))
  console.log(`${seconds(ms)}  ${file}`);
for (const { name, processorMs } of checks)
  console.log(`${seconds(Object.values(processorMs).reduce((sum, ms) => sum + ms, 0))}  ${name}`);
const tight = tests.filter(({ tookMs, limitMs }) => tookMs * LIMIT_FACTOR > limitMs);
console.log(
  `${tests.length} tests, ${tight.length} with a limit of less than ${LIMIT_FACTOR} times what they took`,
);
for (const { title, tookMs, limitMs } of tight) console.log(`  ${tookMs} ms of ${limitMs} ms: ${title}`);
