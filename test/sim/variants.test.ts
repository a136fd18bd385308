// A simulation that finds nothing says nothing unless it is known to find things: each broken cluster is noticed, and the same seed
// with the same trouble passes when nothing is broken.
import { expect } from "chai";
import { reportOf, withoutStacks } from "./report.ts";
import { simulate } from "./simulation.ts";
import type { Verdict } from "./simulation.ts";
import type { Variant } from "./variant.ts";
import { ACTOR_VARIANTS } from "./actor-variants.ts";
import { FLEET_VARIANTS } from "./fleet-variants.ts";
import { KEY_VARIANTS } from "./key-variants.ts";
import { RELEASE_VARIANTS } from "./release-variants.ts";
import { SHARED_VARIANTS } from "./shared-variants.ts";
import { VARIANTS } from "./variants.ts";

const SEEDS_MAX = 40;

async function firstCaught(variant: Variant): Promise<Verdict | undefined> {
  const { from = 1 } = variant;
  for (let seed = from; seed < from + SEEDS_MAX; seed++) {
    const verdict = await simulate(seed, variant);
    if (variant.noticedAs?.test(verdict.violation?.message ?? "") ?? verdict.violation !== undefined)
      return verdict;
  }
  return undefined;
}

function findsEach(variants: readonly Variant[]): void {
  withoutStacks();
  for (const variant of variants)
    it(variant.name, async () => {
      const caught = await firstCaught(variant);
      if (caught === undefined) return expect.fail("it was not noticed");
      const whole = { name: "whole", ...(variant.settings && { settings: variant.settings }) };
      const control = await simulate(caught.seed, whole);
      expect(control.violation, reportOf(control)).to.equal(undefined);
    });
}

describe(`a simulated cluster is found to be broken within ${SEEDS_MAX} seeds when`, () => {
  findsEach(VARIANTS);
});

describe(`a simulated cluster with keys is found to be broken within ${SEEDS_MAX} seeds when`, () => {
  findsEach(KEY_VARIANTS);
});

describe(`a simulated cluster with actors is found to be broken within ${SEEDS_MAX} seeds when`, () => {
  findsEach(ACTOR_VARIANTS);
});

describe(`a simulated cluster with a release is found to be broken within ${SEEDS_MAX} seeds when`, () => {
  findsEach(RELEASE_VARIANTS);
});

describe(`a simulated cluster with a fleet is found to be broken within ${SEEDS_MAX} seeds when`, () => {
  findsEach(FLEET_VARIANTS);
});

describe(`several coordinators over one database are found to be broken within ${SEEDS_MAX} seeds when`, () => {
  findsEach(SHARED_VARIANTS);
});
