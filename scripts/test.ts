// `make test`: runs the checks, two at a time on two cores and what mostly waits beside them, and says what failed. Names of checks or of kinds may be
// given; without any, all run. The closing line counts mocha's own statistics.
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { delimiter, resolve } from "node:path";
import { systemClock } from "../src/base/clock.ts";
import { PACE_FILE } from "../test/support/pace.ts";
import { PostgresServer, SERVER_URL } from "../test/support/postgres-server.ts";
import { type Check, CHECKS } from "./checks.ts";

interface Outcome {
  readonly check: Check;
  readonly failed: boolean;
  readonly output: string;
  /** One line about a check that passed. */
  readonly note: string;
  readonly seconds: number;
  readonly passes: number;
  readonly failures: number;
}

const CACHE = ".cache/test";
/** Node's compiled forms of sources, types taken away: of hundreds of processes only the first has to make them. Empty at the start. */
const COMPILED = resolve(CACHE, "compiled");
/** The latest measurement of the machine, by whichever run of tests has taken it. */
const PACE = resolve(CACHE, "pace");
/** A check that was told to end has so long for its last words; what it has started and left is killed after it. */
const LAST_WORDS_MS = 5_000;
/** A limit is lengthened by no more than this. */
const CROWDING_MAX = 4;
const running = new Set<number>();

function statisticsFile(check: Check): string {
  return `${CACHE}/${check.name}.json`;
}

function commandOf(check: Check): [string, string[]] {
  const [program, ...args] = check.command;
  if (check.kind !== "tests") return [program, args];
  const reporter = ["--reporter", "test/support/mocha-statistics.ts"];
  return [program, [...reporter, "--reporter-option", `statistics=${statisticsFile(check)}`, ...args]];
}

/** Kills what a check started, and all that those started in turn: each check is a process group of its own. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Gone already.
  }
}

let postgres: Promise<PostgresServer> | undefined;

/** One server for every test, unless the environment names one. It ends with this process, however that ends. */
async function postgresFor(check: Check): Promise<Readonly<Record<string, string>>> {
  if (check.kind !== "tests" || process.env[SERVER_URL] !== undefined) return {};
  postgres ??= PostgresServer.start();
  return { [SERVER_URL]: (await postgres).url };
}

async function execute(check: Check): Promise<{ code: number; output: string }> {
  const [program, args] = commandOf(check);
  const database = await postgresFor(check);
  const path = `${resolve("node_modules/.bin")}${delimiter}${process.env["PATH"] ?? ""}`;
  const child = spawn(program, args, {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      ...database,
      PATH: path,
      NO_COLOR: "1",
      NODE_COMPILE_CACHE: COMPILED,
      [PACE_FILE]: PACE,
    },
  });
  let output = "";
  const collect = (chunk: Buffer): void => {
    output += chunk.toString();
  };
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  const { pid } = child;
  if (pid !== undefined) running.add(pid);
  const startMs = systemClock.monotonicMs();
  const end = (): void => {
    const tookMs = systemClock.monotonicMs() - startMs;
    const leftMs = check.limitMs * crowding() - tookMs;
    if (leftMs > 0) return void (limit = systemClock.after(leftMs, end));
    output += `\nended after ${Math.round(tookMs)} ms\n`;
    // Tests say then what has failed, and which of them it is that hangs.
    child.kill("SIGTERM");
    limit = systemClock.after(LAST_WORDS_MS, () => {
      if (pid !== undefined) killGroup(pid);
    });
  };
  let limit = systemClock.after(check.limitMs, end);
  const code = await new Promise<number>((done) => {
    child.once("error", (error) => {
      output += `${error.message}\n`;
      done(1);
    });
    child.once("close", (exit) => done(exit ?? 1));
  });
  limit.cancel();
  if (pid !== undefined) {
    killGroup(pid);
    running.delete(pid);
  }
  return { code, output };
}

/** How many processes want each core: 1 on a quiet machine, where the limits hold as they stand. */
function crowding(): number {
  return Math.min(CROWDING_MAX, Math.max(1, (loadavg()[0] ?? 0) / availableParallelism()));
}

/** Mocha's counts; undefined when it did not come to its end. */
function statisticsOf(check: Check): { passes: number; failures: number; pending: number } | undefined {
  try {
    return JSON.parse(readFileSync(statisticsFile(check), "utf8")) as ReturnType<typeof statisticsOf>;
  } catch {
    return undefined;
  }
}

async function run(check: Check): Promise<Outcome> {
  rmSync(statisticsFile(check), { force: true });
  const startMs = systemClock.monotonicMs();
  const { code, output } = await execute(check);
  const seconds = (systemClock.monotonicMs() - startMs) / 1000;
  const base = { check, output, seconds };
  if (check.kind !== "tests") {
    return {
      ...base,
      failed: code !== 0,
      note: output.trim().split("\n").at(-1) ?? "",
      passes: 0,
      failures: 0,
    };
  }
  const counted = statisticsOf(check);
  if (counted === undefined) {
    return { ...base, failed: true, note: "", output: `${output}\nno statistics`, passes: 0, failures: 0 };
  }
  const { passes, failures, pending } = counted;
  const note = `${passes} passed, ${failures} failed, ${pending} skipped`;
  const failed = code !== 0 || failures > 0 || pending > 0 || passes === 0;
  return { ...base, failed, note, output: `${output}\n${note}`, passes, failures };
}

function tell({ check, failed, seconds, note, output }: Outcome): void {
  const line = `${failed ? "FAIL" : "ok  "} ${check.name.padEnd(15)} ${seconds.toFixed(1).padStart(6)} s`;
  console.log(`${line}  ${failed ? "" : note.slice(0, 90)}`.trimEnd());
  if (failed) console.log(output.trim().replace(/^/gm, "     | "));
}

/** Runs all of them: as many at a time as there are cores, and those that mostly wait beside them. */
async function runAll(selected: readonly Check[]): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const waiting = [...selected];
  const active = new Map<string, Promise<void>>();
  const isActive = ({ name }: Check): boolean => active.has(name);
  const isBlocked = (check: Check): boolean =>
    [...waiting, ...CHECKS.filter(isActive)].some(({ name }) => check.after?.includes(name));
  const hasCore = (check: Check): boolean =>
    check.mostlyWaits === true ||
    CHECKS.filter((other) => isActive(other) && other.mostlyWaits !== true).length < availableParallelism();
  while (waiting.length + active.size > 0) {
    const next = waiting.findIndex((check) => !isBlocked(check) && hasCore(check));
    const check = next === -1 ? undefined : waiting.splice(next, 1)[0];
    if (check === undefined) {
      await Promise.race(active.values());
      continue;
    }
    const ended = run(check).then((outcome) => {
      active.delete(check.name);
      outcomes.push(outcome);
      tell(outcome);
    });
    active.set(check.name, ended);
  }
  return outcomes;
}

function select(words: readonly string[]): Check[] {
  const unknown = words.filter((word) => !CHECKS.some((check) => [check.name, check.kind].includes(word)));
  if (unknown.length > 0) {
    throw new Error(
      `no such check: ${unknown.join(", ")}; there are ${CHECKS.map((check) => check.name).join(", ")}`,
    );
  }
  return CHECKS.filter(
    (check) => words.length === 0 || words.some((word) => [check.name, check.kind].includes(word)),
  );
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    for (const pid of running) killGroup(pid);
    process.exit(130);
  });
}

const startMs = systemClock.monotonicMs();
mkdirSync(CACHE, { recursive: true });
rmSync(COMPILED, { recursive: true, force: true });
const outcomes = await runAll(select(process.argv.slice(2)));
const failed = outcomes.filter((outcome) => outcome.failed).map((outcome) => outcome.check.name);
const sum = (count: (outcome: Outcome) => number): number =>
  outcomes.reduce((total, one) => total + count(one), 0);
console.log(`${outcomes.length} checks in ${((systemClock.monotonicMs() - startMs) / 1000).toFixed(1)} s`);
if (failed.length > 0) console.log(`checks that failed: ${failed.join(", ")}`);
if (outcomes.some((outcome) => outcome.check.kind === "tests")) {
  console.log(`${sum((one) => one.passes)} passed, ${sum((one) => one.failures)} failed`);
}
await (await postgres)?.close();
process.exitCode = failed.length === 0 && outcomes.length > 0 ? 0 : 1;
