import { expect } from "chai";
import type { RateCounts } from "../../../../src/base/statistics/rate-sequence.ts";
import { emptyMean } from "../../../../src/base/statistics/mean-sequence.ts";
import type { MetricSpec, NumberMetric } from "../../../../src/base/statistics/metric.ts";
import { addNumber, alphaOfArm, compare, isClipped } from "../../../../src/base/statistics/metric.ts";

const ERRORS: MetricSpec = { kind: "errors", maxWorse: 0.01 };
const SCORE: NumberMetric = {
  kind: "number",
  name: "score",
  pointer: "/score",
  low: 0,
  high: 10,
  better: "higher",
  maxWorse: 0.5,
};
/** One metric, three judged stages, alpha 0.05. */
const ALPHA = alphaOfArm(0.05, { judgedStages: 3, metrics: 1 });

function rate(n: number, k: number): RateCounts {
  return { kind: "rate", n, k };
}

describe("two versions compared by a metric", () => {
  it("shares alpha among stages, metrics and the two versions", () => {
    expect(ALPHA).to.be.closeTo(0.05 / 6, 1e-12);
    expect(alphaOfArm(0.05, { judgedStages: 3, metrics: 2 })).to.be.closeTo(0.05 / 12, 1e-12);
  });

  it("calls a candidate that always fails a breach with its third item, and not before", () => {
    const after = (items: number): string =>
      compare(ERRORS, { stable: rate(items * 99, items), candidate: rate(items, items) }, ALPHA).verdict;
    expect([1, 2, 3].map(after)).to.deep.equal(["hold", "hold", "breach"]);
  });

  it("proves nothing without data, and that equals are equal with enough of them", () => {
    expect(compare(ERRORS, { stable: rate(0, 0), candidate: rate(0, 0) }, ALPHA)).to.deep.equal({
      stable: { n: 0, value: undefined, lower: 0, upper: 1 },
      candidate: { n: 0, value: undefined, lower: 0, upper: 1 },
      difference: { value: undefined, lower: -1, upper: 1 },
      verdict: "hold",
    });
    const equals = (n: number): string =>
      compare(ERRORS, { stable: rate(n, n / 100), candidate: rate(n, n / 100) }, ALPHA).verdict;
    expect(equals(1_000)).to.equal("hold");
    expect(equals(20_000)).to.equal("proof");
  });

  it("holds a candidate that is worse by less than the margin, or better by as much as proves nothing", () => {
    const counts = { stable: rate(20_000, 200), candidate: rate(20_000, 400) };
    const { difference, verdict } = compare({ kind: "errors", maxWorse: 0.013 }, counts, ALPHA);
    expect(difference.lower).to.be.within(0, 0.013);
    expect(difference.upper).to.be.within(0.013, 0.026);
    expect(verdict).to.equal("hold");
  });

  it("says in the unit of a number how much worse the candidate is, whichever way is better", () => {
    for (const better of ["higher", "lower"] as const) {
      const metric = { ...SCORE, better };
      const [stable, candidate] = [emptyMean(), emptyMean()];
      for (let at = 0; at < 400; at++) {
        addNumber(metric, stable, better === "higher" ? 8 : 2, ALPHA);
        addNumber(metric, candidate, better === "higher" ? 5 : 5.5, ALPHA);
      }
      const { difference, verdict, ...arms } = compare(metric, { stable, candidate }, ALPHA);
      expect(verdict).to.equal("breach");
      expect(difference.value).to.be.closeTo(better === "higher" ? 3 : 3.5, 1e-9);
      expect(difference.lower).to.be.within(0.5, difference.value ?? 0);
      expect(difference.upper).to.be.within(difference.value ?? 0, 10);
      expect(arms.stable.value).to.be.closeTo(better === "higher" ? 8 : 2, 1e-9);
      expect(arms.candidate.lower).to.be.below(arms.candidate.value ?? 0);
      expect(arms.candidate.upper).to.be.above(arms.candidate.value ?? 0);
    }
  });

  it("takes a number beyond its range as the nearest end", () => {
    const [beyond, end] = [emptyMean(), emptyMean()];
    addNumber(SCORE, beyond, 1e300, ALPHA);
    addNumber(SCORE, beyond, -3, ALPHA);
    addNumber(SCORE, end, 10, ALPHA);
    addNumber(SCORE, end, 0, ALPHA);
    expect(beyond).to.deep.equal(end);
    expect([-3, 0, 10, 10.001].map((value) => isClipped(SCORE, value))).to.deep.equal([
      true,
      false,
      false,
      true,
    ]);
  });
});
