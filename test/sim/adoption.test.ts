// The cost of a loss of power: assignments that were not synced are forgotten, and items of them that workers have are executed
// once only because they are adopted. The same seeds, with and without.
import { expect } from "chai";
import { reportOf } from "./report.ts";
import type { Settings } from "./settings.ts";
import { simulate } from "./simulation.ts";
import type { Variant } from "./variant.ts";
import { hideTheForgotten } from "./variants.ts";

const SEEDS = 6;

/** Items that take long, so that many are under way when the coordinator's machine goes dark. */
const outages = (drawn: Settings): Settings => ({
  ...drawn,
  coordinators: 1,
  faults: ["coordinator-power"],
  items: 40,
  slots: 3,
  callers: 0,
  kinds: { slow: 1 },
  stormMs: 12_000,
  faultEveryMs: 350,
});

interface Cost {
  readonly executions: number;
  readonly adopted: number;
}

async function costOf(variant: Variant): Promise<Cost> {
  let [executions, adopted] = [0, 0];
  for (let seed = 1; seed <= SEEDS; seed++) {
    const verdict = await simulate(seed, variant);
    expect(verdict.violation, reportOf(verdict)).to.equal(undefined);
    executions += verdict.executions;
    adopted += verdict.adopted;
  }
  return { executions, adopted };
}

describe("a simulated cluster whose coordinator loses its power", () => {
  it("executes less a second time because what workers have is adopted", async () => {
    const adopting = await costOf({ name: "whole", settings: outages });
    const forgetting = await costOf({
      name: "nothing is adopted",
      settings: outages,
      tap: hideTheForgotten,
    });
    expect(adopting.adopted).to.be.above(0);
    expect(forgetting.adopted).to.equal(0);
    expect(adopting.executions).to.be.below(forgetting.executions);
  });
});
