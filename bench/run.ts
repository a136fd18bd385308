// `npm run bench -- [--only NAME,NAME] [--json]`: runs the benchmarks one after the other, or all that are not long, and prints
// their figures.
// Speed is compared within one run; the figures of two machines, or of one machine on two days, are not comparable.
import { cpus, loadavg, totalmem } from "node:os";
import { parseArgs } from "node:util";
import type { Bench, Figure } from "./support/figure.ts";
import { actors } from "./actors.ts";
import { failover } from "./failover.ts";
import { growth } from "./growth.ts";
import { heartbeat } from "./heartbeat.ts";
import { inspect } from "./inspect.ts";
import { keys } from "./keys.ts";
import { latency } from "./latency.ts";
import { localRun } from "./local-run.ts";
import { memory } from "./memory.ts";
import { page } from "./page.ts";
import { onPostgres, peers } from "./peers.ts";
import { realUse } from "./real-use.ts";
import { release } from "./release.ts";
import { releaseCalibration } from "./release-calibration.ts";
import { replayBench } from "./replay.ts";
import { results as resultsBench } from "./results.ts";
import { start } from "./start.ts";
import { steal } from "./steal.ts";
import { throughput } from "./throughput.ts";
import { transitions } from "./transitions.ts";

const BENCHES: readonly Bench[] = [
  ...[heartbeat, throughput, transitions, latency, replayBench, memory, resultsBench, start, steal],
  ...[growth, peers, onPostgres, failover, inspect, page, realUse, localRun, keys, actors],
  ...[release, releaseCalibration],
];

const { values } = parseArgs({
  options: { only: { type: "string" }, json: { type: "boolean", default: false } },
});
const wanted = values.only?.split(",");
const unknown = wanted?.find((name) => !BENCHES.some((bench) => bench.name === name));
if (unknown !== undefined) {
  process.stderr.write(`no benchmark ${unknown}; there are: ${BENCHES.map(({ name }) => name).join(", ")}\n`);
  process.exit(2);
}

const machine = {
  node: process.version,
  cpu: cpus()[0]?.model ?? "unknown",
  cores: cpus().length,
  memory_bytes: totalmem(),
  /** The last minute's, before anything was measured: figures of a busy machine are worth little. */
  load: loadavg()[0] ?? NaN,
};
const results: { bench: string; figures: readonly Figure[] }[] = [];
const beside: Record<string, unknown> = {};
for (const bench of BENCHES) {
  const isWanted = wanted === undefined ? bench.isLong !== true : wanted.includes(bench.name);
  if (!isWanted) continue;
  const yielded = await bench.run((line) => process.stderr.write(`${bench.name}: ${line}\n`));
  const { figures, ...more } = "figures" in yielded ? yielded : { figures: yielded };
  Object.assign(beside, more);
  results.push({ bench: bench.name, figures });
  if (!values.json)
    for (const { name, value, unit } of figures)
      process.stdout.write(`${bench.name}  ${name}: ${value} ${unit}\n`);
}
if (values.json) process.stdout.write(`${JSON.stringify({ machine, results, ...beside })}\n`);
