// A reporter: dots on the terminal, and mocha's own statistics in the file that `--reporter-option statistics=FILE`
// names, with how long each test took beside them. scripts/test.ts adds the files up; without one, a run counts as failed.
import { writeFileSync } from "node:fs";
import Mocha from "mocha";

const { EVENT_RUN_END, EVENT_TEST_PASS } = Mocha.Runner.constants;

/** A test that passed. */
export interface TestTime {
  readonly title: string;
  readonly tookMs: number;
  /** After so long it would have failed. */
  readonly limitMs: number;
}

export default class Statistics extends Mocha.reporters.Dot {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const { statistics } = (options.reporterOptions ?? {}) as { statistics?: unknown };
    if (typeof statistics !== "string") throw new Error("give --reporter-option statistics=FILE");
    const tests: TestTime[] = [];
    runner.on(EVENT_TEST_PASS, (test) => {
      tests.push({ title: test.fullTitle(), tookMs: test.duration ?? 0, limitMs: test.timeout() });
    });
    runner.once(EVENT_RUN_END, () => writeFileSync(statistics, JSON.stringify({ ...this.stats, tests })));
  }
}
