// A reporter: what failed on the terminal, and nothing else, because whoever reads a long log sees its beginning; and mocha's own
// statistics in the file that `--reporter-option statistics=FILE` names, with how long each test took beside them, and what it
// cost the processors. scripts/test.ts adds the files up; without one, a run counts as failed.
import { readFileSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import Mocha from "mocha";

const { EVENT_HOOK_BEGIN, EVENT_HOOK_END, EVENT_RUN_END, EVENT_TEST_BEGIN, EVENT_TEST_END, EVENT_TEST_PASS } =
  Mocha.Runner.constants;
/** The unit in which Linux counts a process's time. */
const TICKS_PER_SECOND = 100;

/** A test that passed. */
export interface TestTime {
  readonly title: string;
  readonly tookMs: number;
  /** After so long it would have failed. */
  readonly limitMs: number;
}

export interface Statistics {
  readonly tests: readonly TestTime[];
  /** By file, in milliseconds: of this process and of all that have ended below it. */
  readonly processorMs: Readonly<Record<string, number>>;
}

export default class StatisticsReporter extends Mocha.reporters.Base {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const { statistics } = (options.reporterOptions ?? {}) as { statistics?: unknown };
    if (typeof statistics !== "string") throw new Error("give --reporter-option statistics=FILE");
    const tests: TestTime[] = [];
    const processorMs: Record<string, number> = {};
    let chargedMs = processorTimeMs();
    for (const event of [EVENT_HOOK_END, EVENT_TEST_END])
      runner.on(event, ({ file = "" }: Mocha.Runnable) => {
        const [beforeMs, name] = [chargedMs, relative("", file)];
        chargedMs = processorTimeMs();
        processorMs[name] = (processorMs[name] ?? 0) + chargedMs - beforeMs;
      });
    runner.on(EVENT_TEST_PASS, (test) => {
      tests.push({ title: test.fullTitle(), tookMs: test.duration ?? 0, limitMs: test.timeout() });
    });
    let underWay = "nothing";
    for (const event of [EVENT_HOOK_BEGIN, EVENT_TEST_BEGIN])
      runner.on(event, (one: Mocha.Runnable) => (underWay = one.fullTitle()));
    // The limit of its check has come: its failures so far are worth as much as those of a whole run.
    process.once("SIGTERM", () => {
      Mocha.reporters.Base.list(this.failures);
      console.log(`under way: ${underWay}`);
      process.exit(1);
    });
    runner.once(EVENT_RUN_END, () => {
      const found: Statistics = { tests, processorMs };
      writeFileSync(statistics, JSON.stringify({ ...this.stats, ...found }));
      this.epilogue();
    });
  }
}

/** The time of this process and its children so far; 0 where the system does not tell. */
function processorTimeMs(): number {
  try {
    const fields = readFileSync("/proc/self/stat", "utf8")
      .replace(/^.*\) /, "")
      .split(" ");
    // User and system time, its own and that of children that have been waited for.
    return fields.slice(11, 15).reduce((sum, ticks) => sum + (Number(ticks) * 1_000) / TICKS_PER_SECOND, 0);
  } catch {
    return 0;
  }
}
