// How often the statistics of a release are wrong, and how many items a right verdict takes: simulated releases, each looked at after
// every item. A false rollback or a false proof may be as frequent as alpha; the campaign says with 99 % how frequent it is at most. As many
// of each kind as ROLLOUT_BENCH_RELEASES says.
import { certainBound } from "./support/releases/certain-bound.ts";
import { longRandom } from "./support/releases/long-random.ts";
import { RACES, TRAPS } from "./support/releases/scenarios.ts";
import type { Race, Trap } from "./support/releases/scenarios.ts";
import { simulateRelease } from "./support/releases/simulated-release.ts";
import type { Outcome, Scenario } from "./support/releases/simulated-release.ts";
import { round } from "./support/figure.ts";
import type { Bench, Figure } from "./support/figure.ts";

const RELEASES = Number(process.env["ROLLOUT_BENCH_RELEASES"] ?? 10_000);
/** Where a verdict takes ten thousands of items its median is known well enough from fewer. */
const LONG_RACE_ITEMS = 5_000;
const LONG_RACE_RELEASES = Math.ceil(RELEASES / 10);
const CONFIDENCE = 0.99;
/** As many times the median of the design. */
const MEDIAN_MAX = 1.2;

interface Checked {
  readonly name: string;
  readonly figures: readonly Figure[];
  readonly holds: boolean;
}

export const releaseCalibration: Bench = {
  name: "release-calibration",
  isLong: true,
  run: async (say) => {
    const checked = [
      ...TRAPS.map((trap, at) => fall(trap, at)),
      ...RACES.map((race, at) => finish(race, TRAPS.length + at)),
    ];
    for (const { name, holds } of checked) if (!holds) say(`NOT AS DEMANDED: ${name}`);
    const failed = checked.filter(({ holds }) => !holds);
    return {
      figures: checked.flatMap(({ figures }) => figures),
      release_calibration: { holds: failed.length === 0, failed: failed.map(({ name }) => name) },
    };

    function fall(trap: Trap, seed: number): Checked {
      say(trap.name);
      const outcomes = simulated(trap, RELEASES, seed);
      const figures = trap.wrong.flatMap((ending): Figure[] => {
        const name = `${trap.name}: false ${ending === "completed" ? "proofs" : "rollbacks"}`;
        const count = outcomes.filter((outcome) => outcome.ending === ending).length;
        return [
          { name, value: count, unit: `of ${RELEASES}` },
          {
            name: `${name}, upper 99 % bound`,
            value: round(certainBound(count, RELEASES, CONFIDENCE), 5),
            unit: `alpha ${trap.alpha}`,
          },
        ];
      });
      for (const { name, value, unit } of figures) say(`${name}: ${value} ${unit}`);
      const bounds = figures.filter(({ unit }) => unit.startsWith("alpha"));
      return { name: trap.name, figures, holds: bounds.every(({ value }) => value <= trap.alpha) };
    }

    function finish(race: Race, seed: number): Checked {
      say(race.name);
      const outcomes = simulated(race, race.median > LONG_RACE_ITEMS ? LONG_RACE_RELEASES : RELEASES, seed);
      const right = outcomes.filter(({ ending }) => ending === race.ending);
      const tried = right.map((outcome) => outcome.tried).sort((one, other) => one - other);
      const at = (part: number): number => tried[Math.floor(tried.length * part)] ?? NaN;
      const figures = [
        {
          name: `${race.name}: candidate items, median`,
          value: at(0.5),
          unit: `items (design ${race.median})`,
        },
        { name: `${race.name}: candidate items, p95`, value: at(0.95), unit: "items" },
        { name: `${race.name}: ${race.ending}`, value: right.length, unit: `of ${outcomes.length}` },
      ];
      for (const { name, value, unit } of figures) say(`${name}: ${value} ${unit}`);
      return { name: race.name, figures, holds: at(0.5) <= MEDIAN_MAX * race.median };
    }
  },
};

function simulated(scenario: Scenario, releases: number, seed: number): readonly Outcome[] {
  const unit = longRandom(seed);
  return Array.from({ length: releases }, () => simulateRelease(scenario, unit));
}
