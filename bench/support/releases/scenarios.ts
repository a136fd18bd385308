// Scenarios of the calibration: those in which a verdict would be wrong, and those whose verdicts should come soon.
import type { MetricSpec, NumberMetric } from "../../../src/base/statistics/metric.ts";
import type { Scenario } from "./simulated-release.ts";

const SHARES = [0.01, 0.1, 0.5];
/** The score lies evenly around its mean, so that its deviation is 0.15 and its range is never left. */
const SCORE_HALF_WIDTH = 0.15 * Math.sqrt(3);
const SCORE = 0.6;

function errors(maxWorse: number): MetricSpec {
  return { kind: "errors", maxWorse };
}

function score(maxWorse: number): NumberMetric {
  return { kind: "number", name: "score", pointer: "/score", low: 0, high: 1, better: "higher", maxWorse };
}

function draw(rate: number, unit: () => number): number {
  return unit() < rate ? 1 : 0;
}

function drawScore(mean: number, unit: () => number): number {
  return mean + (2 * unit() - 1) * SCORE_HALF_WIDTH;
}

const WHOLE = { alpha: 0.05, shares: SHARES, minItems: 30, items: 12_000 } as const;

/** The error rates of the two versions, the same for every item. */
function ofErrors(stable: number, candidate: number): Scenario["observe"] {
  return (_, arm, __, unit) => draw(arm === "stable" ? stable : candidate, unit);
}

function ofScores(candidate: number): Scenario["observe"] {
  return (_, arm, __, unit) => drawScore(arm === "stable" ? SCORE : candidate, unit);
}

/** Items of the second half fail ten times as often. */
function growingHarder(worse: number): Scenario["observe"] {
  return (_, arm, part, unit) => draw((part < 0.5 ? 0.01 : 0.1) + (arm === "stable" ? 0 : worse), unit);
}

/** Errors, slow ones and a score at once, independent of each other; the candidate is worse by that in each. */
function ofThree(worse: number): Scenario["observe"] {
  return (metric, arm, _, unit) => {
    const by = arm === "stable" ? 0 : worse;
    return metric === 2 ? drawScore(SCORE - by, unit) : draw((metric === 0 ? 0.01 : 0.1) + by, unit);
  };
}

const THREE = [errors(0.02), { kind: "slower", thanMs: 1_000, maxWorse: 0.02 }, score(0.02)] as const;

/** A scenario in which one or both verdicts are wrong. */
export interface Trap extends Scenario {
  readonly wrong: readonly ("rolled back" | "completed")[];
}

const MARGIN = ["rolled back", "completed"] as const;
const EQUAL = ["rolled back"] as const;

export const TRAPS: readonly Trap[] = [
  {
    ...WHOLE,
    name: "no difference: 1 %",
    metrics: [errors(0.01)],
    observe: ofErrors(0.01, 0.01),
    wrong: EQUAL,
  },
  {
    ...{ ...WHOLE, name: "no difference and no margin: 20 %", metrics: [errors(0)] },
    ...{ observe: ofErrors(0.2, 0.2), wrong: MARGIN },
  },
  { ...WHOLE, name: "no difference: score", metrics: [score(0)], observe: ofScores(SCORE), wrong: MARGIN },
  { ...WHOLE, name: "no difference: three metrics", metrics: THREE, observe: ofThree(0), wrong: EQUAL },
  {
    ...WHOLE,
    name: "at the margin: 2 % and 1 %",
    metrics: [errors(0.01)],
    observe: ofErrors(0.01, 0.02),
    wrong: MARGIN,
  },
  {
    ...WHOLE,
    name: "at the margin: 1 % and 0",
    metrics: [errors(0.01)],
    observe: ofErrors(0, 0.01),
    wrong: MARGIN,
  },
  {
    ...WHOLE,
    name: "at the margin: score",
    metrics: [score(0.02)],
    observe: ofScores(SCORE - 0.02),
    wrong: MARGIN,
  },
  { ...WHOLE, name: "at the margin: three metrics", metrics: THREE, observe: ofThree(0.02), wrong: MARGIN },
  {
    ...{ ...WHOLE, name: "items grow harder: no difference", metrics: [errors(0.01)] },
    ...{ observe: growingHarder(0), wrong: EQUAL },
  },
  {
    ...{ ...WHOLE, name: "items grow harder: at the margin", metrics: [errors(0.01)] },
    ...{ observe: growingHarder(0.01), wrong: MARGIN },
  },
  ...[[0.5], [0.1, 0.5], [0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 0.75], [0.5, 0.1, 0.01]].map((shares): Trap => ({
    ...{ ...WHOLE, name: `stages ${shares.join(", ")}: at the margin`, shares, metrics: [errors(0.01)] },
    ...{ observe: ofErrors(0.01, 0.02), wrong: MARGIN },
  })),
];

/** A scenario whose verdict should come after about so many items of the candidate. */
export interface Race extends Scenario {
  readonly ending: "rolled back" | "completed";
  /** The median that the design found, and as often as the campaign may be above. */
  readonly median: number;
}

interface Run {
  readonly share: number;
  readonly metric: MetricSpec;
  readonly observe: Scenario["observe"];
  readonly ending: Race["ending"];
  readonly median: number;
  /** The metric is the only one, in the only stage that is judged. */
  readonly isAlone?: true;
}

/** One stage of three, unless it is alone, until its verdict. */
function race(name: string, { share, metric, observe, ending, median, isAlone }: Run): Race {
  return {
    ...{ name, alpha: 0.05, shares: [share], judgedStages: isAlone ? 1 : 3, metrics: [metric] },
    ...{ minItems: 1, items: 2_000_000, observe, ending, median },
  };
}

const BREACH = "rolled back";
const PROOF = "completed";

export const RACES: readonly Race[] = [
  ...(
    [
      [1, 3],
      [0.4, 9],
      [0.3, 14],
      [0.1, 90],
    ] as const
  ).map(([rate, median]) =>
    race(`1 % and ${rate * 100} %, margin 1, share 1 %`, {
      ...{ share: 0.01, metric: errors(0.01), observe: ofErrors(0.01, rate), ending: BREACH, median },
    }),
  ),
  race("1 % and 10 %, margin 1, share 10 %", {
    ...{ share: 0.1, metric: errors(0.01), observe: ofErrors(0.01, 0.1), ending: BREACH, median: 177 },
  }),
  race("1 % and 3 %, margin 1, share 50 %", {
    ...{ share: 0.5, metric: errors(0.01), observe: ofErrors(0.01, 0.03), ending: BREACH, median: 15_000 },
  }),
  race("0 and 40 %, margin 5, share 10 %", {
    ...{ share: 0.1, metric: errors(0.05), observe: ofErrors(0, 0.4), ending: BREACH, median: 19 },
  }),
  ...(
    [
      [0.01, 0.01, 6_800],
      [0.01, 0.02, 1_700],
      [0, 0.01, 880],
      [0, 0.05, 160],
    ] as const
  ).map(([rate, margin, median]) =>
    race(`equal ${rate * 100} %, margin ${margin * 100}, share 50 %`, {
      ...{ share: 0.5, metric: errors(margin), observe: ofErrors(rate, rate), ending: PROOF, median },
    }),
  ),
  ...(
    [
      [0.1, 167],
      [0.05, 770],
    ] as const
  ).map(([worse, median]) =>
    race(`score worse by ${worse}, margin 0.02, share 10 %`, {
      ...{ share: 0.1, metric: score(0.02), observe: ofScores(SCORE - worse), ending: BREACH, median },
      isAlone: true,
    }),
  ),
  ...(
    [
      [0.02, 3_070],
      [0.05, 520],
    ] as const
  ).map(([margin, median]) =>
    race(`score equal, margin ${margin}, share 50 %`, {
      ...{ share: 0.5, metric: score(margin), observe: ofScores(SCORE), ending: PROOF, median },
      isAlone: true,
    }),
  ),
];
