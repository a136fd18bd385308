// A whole cluster whose workers come from a provider that answers late, twice, wrongly and not at all, while its coordinator is killed at any
// step. Thousands by `npm run simulate -- --fleet`.
import { expect } from "chai";
import { WITH_FLEET } from "./fleet-mix.ts";
import { reportOf, withoutStacks } from "./report.ts";
import { simulate } from "./simulation.ts";

const SEEDS = 20;
/** Each has found something, which is mended. */
const FINDS = [2, 570, 5_137];

describe("a simulated cluster with a fleet", () => {
  withoutStacks();

  it(`leaves no machine, starts none twice and keeps its budget (seeds 1 to ${SEEDS})`, async () => {
    const met = { launched: 0, leaderships: 0, shared: 0 };
    for (const seed of [...FINDS, ...Array.from({ length: SEEDS }, (_, at) => 1 + at)]) {
      const verdict = await simulate(seed, WITH_FLEET);
      expect(verdict.violation, reportOf(verdict)).to.equal(undefined);
      met.launched += verdict.launched;
      met.leaderships += verdict.leaderships;
      if (verdict.settings.coordinators > 1) met.shared++;
    }
    expect(met.launched).to.be.above(2 * SEEDS);
    expect(met.leaderships).to.be.above(2 * SEEDS);
    expect(met.shared).to.be.above(SEEDS / 5);
  });

  it("is the same cluster as without one, but for the fleet", async () => {
    const [one, other] = [await simulate(3, WITH_FLEET), await simulate(3, WITH_FLEET)];
    expect([other.hash, other.lines]).to.deep.equal([one.hash, one.lines]);
    expect((await simulate(3)).settings.fleet).to.equal(undefined);
  });
});
