// A simulation that finds nothing says nothing unless it is known to find things: each broken cluster is noticed, and the same seed
// with the same trouble passes when nothing is broken.
import { expect } from "chai";
import { reportOf } from "./report.ts";
import { simulate } from "./simulation.ts";
import type { Verdict } from "./simulation.ts";
import type { Variant } from "./variant.ts";
import { VARIANTS } from "./variants.ts";

const SEEDS_MAX = 40;

async function firstCaught(variant: Variant): Promise<Verdict | undefined> {
  for (let seed = 1; seed <= SEEDS_MAX; seed++) {
    const verdict = await simulate(seed, variant);
    if (verdict.violation !== undefined) return verdict;
  }
  return undefined;
}

describe(`a simulated cluster is found to be broken within ${SEEDS_MAX} seeds when`, () => {
  for (const variant of VARIANTS)
    it(variant.name, async () => {
      const caught = await firstCaught(variant);
      expect(caught, "it was not noticed").not.to.equal(undefined);
      if (caught === undefined) return;
      const whole = { name: "whole", ...(variant.settings && { settings: variant.settings }) };
      const control = await simulate(caught.seed, whole);
      expect(control.violation, reportOf(control)).to.equal(undefined);
    });
});
