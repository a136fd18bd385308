// `npm run simulate -- --seeds N [--seed S] [--coordinators 1|3] [--fleet] [--json]`: runs N simulated clusters, the seeds from S on, and says
// what they violated. One coordinator or three are as each seed has it, unless said. With --fleet each
// has a fleet. Ends with 1 when any did. The same seed is the same run, on every machine.
import { parseArgs } from "node:util";
import type { ParseArgsConfig } from "node:util";
import { systemClock } from "../src/base/clock.ts";
import { WITH_FLEET } from "../test/sim/fleet-mix.ts";
import { reportOf } from "../test/sim/report.ts";
import type { Verdict } from "../test/sim/simulation.ts";
import { simulate } from "../test/sim/simulation.ts";

/** After so many failures the rest would say the same. */
const FAILURES_MAX = 5;
const TOLD_EVERY_MS = 10_000;
const HOUR_MS = 3_600_000;
/** One seed alone is looked at closely. */
const WHOLE_TRACE = Infinity;

interface Summary {
  readonly seeds: number;
  readonly failed: readonly number[];
  readonly seconds: number;
  readonly seedsPerSecond: number;
  readonly simulatedHours: number;
  readonly executions: number;
  /** How often somebody came to lead. */
  readonly leaderships: number;
}

const USAGE = "npm run simulate -- [--seeds N] [--seed FIRST] [--coordinators 1|3] [--fleet] [--json]";
const OPTIONS = {
  seeds: { type: "string", default: "1000" },
  seed: { type: "string", default: "1" },
  coordinators: { type: "string" },
  fleet: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const satisfies ParseArgsConfig["options"];

const values = valuesOf();
const [first, count] = [numberOf("seed", values.seed), numberOf("seeds", values.seeds)];
// Thousands of errors are made for refusals that are part of the game, and their stacks are a tenth of the work. A seed alone has them.
if (count > 1) Error.stackTraceLimit = 0;
const coordinators =
  values.coordinators === undefined ? undefined : numberOf("coordinators", values.coordinators);
let running = first;
process.on("unhandledRejection", (reason) => {
  console.error(`seed ${running}: a promise was rejected and nobody handled it`);
  throw reason;
});
const summary = await runAll();
if (values.json) console.log(JSON.stringify({ kind: "summary", ...summary }));
else console.log(inWords(summary));
process.exitCode = summary.failed.length === 0 ? 0 : 1;

async function runAll(): Promise<Summary> {
  const startMs = systemClock.monotonicMs();
  const failed: number[] = [];
  let [done, simulatedMs, executions, leaderships, toldMs] = [0, 0, 0, 0, startMs];
  for (; done < count && failed.length < FAILURES_MAX; done++) {
    running = first + done;
    const verdict = await simulate(running, values.fleet ? WITH_FLEET : undefined, coordinators);
    simulatedMs += verdict.simulatedMs;
    executions += verdict.executions;
    leaderships += verdict.leaderships;
    if (verdict.violation !== undefined) failed.push(verdict.seed);
    tell(verdict);
    if (systemClock.monotonicMs() - toldMs < TOLD_EVERY_MS) continue;
    toldMs = systemClock.monotonicMs();
    console.error(`${done + 1} of ${count} seeds, ${failed.length} failed`);
  }
  const seconds = (systemClock.monotonicMs() - startMs) / 1_000;
  const simulatedHours = simulatedMs / HOUR_MS;
  return {
    seeds: done,
    failed,
    seconds,
    seedsPerSecond: done / seconds,
    simulatedHours,
    executions,
    leaderships,
  };
}

function tell(verdict: Verdict): void {
  const { seed, violation, hash, settings } = verdict;
  if (values.json) {
    if (violation === undefined && count > 1) return;
    const said = violation === undefined ? {} : { violation: violation.message, tail: verdict.tail };
    console.log(JSON.stringify({ kind: "seed", seed, hash, settings, ...said }));
  } else if (violation !== undefined || count === 1) {
    console.log(reportOf(verdict, coordinators, count === 1 ? WHOLE_TRACE : undefined));
    if (violation !== undefined) console.log(violation.stack);
  }
}

function inWords(summary: Summary): string {
  const { seeds, failed, seconds, seedsPerSecond, simulatedHours, executions, leaderships } = summary;
  const rate = `${seconds.toFixed(1)} s, ${seedsPerSecond.toFixed(1)} seeds/s`;
  const size = `${simulatedHours.toFixed(1)} simulated hours, ${executions} executions, ${leaderships} leaderships`;
  const result = failed.length === 0 ? "nothing was violated" : `seeds that failed: ${failed.join(", ")}`;
  return `${seeds} seeds in ${rate}; ${size}; ${result}`;
}

function valuesOf(): ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>["values"] {
  try {
    const parsed = parseArgs({ options: OPTIONS }).values;
    if (!parsed.help) return parsed;
    console.log(USAGE);
    process.exit(0);
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error));
  }
}

function numberOf(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0 || text === "")
    return refuse(`--${name} takes a whole number, not ${text}`);
  return value;
}

function refuse(why: string): never {
  console.error(`${why}\n${USAGE}`);
  process.exit(2);
}
