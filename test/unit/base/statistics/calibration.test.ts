// The short form of `npm run bench -- --only release-calibration`, and what it rests on.
import { expect } from "chai";
import { certainBound } from "../../../../bench/support/releases/certain-bound.ts";
import { JudgedMetric } from "../../../../bench/support/releases/judged-metric.ts";
import { longRandom } from "../../../../bench/support/releases/long-random.ts";
import { RACES, TRAPS } from "../../../../bench/support/releases/scenarios.ts";
import { simulateRelease } from "../../../../bench/support/releases/simulated-release.ts";
import type { Scenario } from "../../../../bench/support/releases/simulated-release.ts";
import { alphaOfArm, compare } from "../../../../src/base/statistics/metric.ts";

const MOST = 12;

describe("the calibration of releases", () => {
  it("passes over no look that would end in a verdict", () => {
    let verdicts = 0;
    for (const [seed, scenario] of [...TRAPS, ...RACES].entries()) {
      const unit = longRandom(seed);
      for (const [index, metric] of scenario.metrics.entries()) {
        const judged = new JudgedMetric(metric, alphaOfArm(scenario.alpha, { judgedStages: 1, metrics: 1 }));
        for (let at = 0; at < 1_500; at++) {
          const arm = unit() < 0.3 ? "candidate" : "stable";
          judged.add(arm, scenario.observe(index, arm, 0.7, unit));
          const { verdict } = compare(metric, judged, judged.alphaOfArm);
          expect(judged.look(), `${scenario.name}, item ${at}`).to.equal(verdict);
          if (verdict !== "hold") verdicts++;
        }
      }
    }
    expect(verdicts).to.be.above(1_000);
  });

  it("simulates as often as every sequence of 12 items says exactly", () => {
    for (const [stable, candidate, margin] of [
      [0, 1, 0],
      [0.1, 0.9, 0],
      [0.2, 0.7, 0.1],
      [0.5, 0.5, 0],
    ] as const) {
      const scenario: Scenario = {
        ...{ name: "a few items", alpha: 0.8, shares: [0.5], minItems: MOST + 1, items: MOST },
        metrics: [{ kind: "errors", maxWorse: margin }],
        observe: (_, arm, __, unit) => (unit() < (arm === "stable" ? stable : candidate) ? 1 : 0),
      };
      const unit = longRandom(12);
      const releases = 4_000;
      let rolledBack = 0;
      for (let at = 0; at < releases; at++)
        if (simulateRelease(scenario, unit).ending === "rolled back") rolledBack++;
      const exact = chanceOfRollback(scenario, { stable, candidate });
      const deviation = Math.sqrt((exact * (1 - exact)) / releases);
      expect(rolledBack / releases).to.be.closeTo(exact, 4 * deviation + 1e-9);
      if (candidate - stable <= margin) expect(exact).to.be.below(scenario.alpha);
      else expect(exact).to.be.above(0.05);
    }
  });

  for (const [seed, trap] of TRAPS.entries()) {
    it(`is seldom wrong: ${trap.name}`, () => {
      const releases = 60;
      const unit = longRandom(seed);
      const wrong: readonly string[] = trap.wrong;
      let count = 0;
      for (let at = 0; at < releases; at++)
        if (wrong.includes(simulateRelease({ ...trap, minItems: 20, items: 4_000 }, unit).ending)) count++;
      expect(count).to.be.at.most(trap.alpha * releases);
    });
  }

  for (const [seed, race] of RACES.filter(({ median }) => median < 1_000).entries()) {
    it(`decides soon: ${race.name}`, () => {
      const unit = longRandom(seed);
      const outcomes = Array.from({ length: 101 }, () => simulateRelease(race, unit));
      expect(outcomes.map(({ ending }) => ending)).to.deep.equal(outcomes.map(() => race.ending));
      const tried = outcomes.map((outcome) => outcome.tried).sort((one, other) => one - other);
      // So few releases know the median to about an eighth.
      expect(tried[50]).to.be.at.most(1.35 * race.median);
    });
  }

  it("says how frequent at most something is that was seen so often", () => {
    // The rule of three, with 99 %: ln(100) / n.
    expect(certainBound(0, 10_000, 0.99)).to.be.closeTo(Math.log(100) / 10_000, 1e-6);
    expect(certainBound(450, 10_000, 0.99)).to.be.within(0.0495, 0.0505);
  });
});

type Counts = readonly [stableN: number, stableK: number, n: number, k: number];

/** Over every order of arms and observations: the counts say all, so sequences that lead to the same ones are taken together. */
function chanceOfRollback(
  { alpha, metrics: [metric] }: Scenario,
  rates: { readonly stable: number; readonly candidate: number },
): number {
  if (metric === undefined) throw new Error("a scenario has a metric");
  const level = alphaOfArm(alpha, { judgedStages: 1, metrics: 1 });
  const isBreached = ([stableN, stableK, n, k]: Counts): boolean => {
    const arms = {
      stable: { kind: "rate", n: stableN, k: stableK },
      candidate: { kind: "rate", n, k },
    } as const;
    return compare(metric, arms, level).verdict === "breach";
  };
  let open = new Map<string, { readonly counts: Counts; readonly chance: number }>([
    ["", { counts: [0, 0, 0, 0], chance: 1 }],
  ]);
  let rolledBack = 0;
  for (let item = 0; item < MOST; item++) {
    const next: typeof open = new Map();
    for (const { counts, chance } of open.values()) {
      for (const { after, part } of oneMore(counts, rates)) {
        const known = next.get(after.join())?.chance ?? 0;
        if (isBreached(after)) rolledBack += chance * part;
        else next.set(after.join(), { counts: after, chance: known + chance * part });
      }
    }
    open = next;
  }
  return rolledBack;
}

function oneMore(
  [stableN, stableK, n, k]: Counts,
  { stable, candidate }: { readonly stable: number; readonly candidate: number },
): readonly { readonly after: Counts; readonly part: number }[] {
  return [
    { after: [stableN + 1, stableK + 1, n, k], part: stable / 2 },
    { after: [stableN + 1, stableK, n, k], part: (1 - stable) / 2 },
    { after: [stableN, stableK, n + 1, k + 1], part: candidate / 2 },
    { after: [stableN, stableK, n + 1, k], part: (1 - candidate) / 2 },
  ];
}
