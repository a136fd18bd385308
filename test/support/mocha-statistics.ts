// A reporter: dots on the terminal, and mocha's own statistics in the file that `--reporter-option statistics=FILE`
// names. scripts/test.ts adds the files up; without one, a run counts as failed.
import { writeFileSync } from "node:fs";
import Mocha from "mocha";

const { EVENT_RUN_END } = Mocha.Runner.constants;

export default class Statistics extends Mocha.reporters.Dot {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const { statistics } = (options.reporterOptions ?? {}) as { statistics?: unknown };
    if (typeof statistics !== "string") throw new Error("give --reporter-option statistics=FILE");
    runner.once(EVENT_RUN_END, () => writeFileSync(statistics, JSON.stringify(this.stats)));
  }
}
