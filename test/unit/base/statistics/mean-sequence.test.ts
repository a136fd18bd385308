import { expect } from "chai";
import { seededRandom } from "../../../../src/base/random.ts";
import { addToMean, emptyMean, meanBounds } from "../../../../src/base/statistics/mean-sequence.ts";

const MOST = 12;

function countsOf(values: readonly number[], alpha: number): ReturnType<typeof emptyMean> {
  const counts = emptyMean();
  for (const value of values) addToMean(counts, value, alpha);
  return counts;
}

/** The same from the formula, with the whole sequence at hand. */
function fromTheWhole(values: readonly number[], alpha: number): { lower: number; upper: number } {
  const before = (at: number): readonly number[] => values.slice(0, at);
  const meanAfter = (at: number): number =>
    (0.5 + before(at).reduce((sum, value) => sum + value, 0)) / (at + 1);
  const varianceAfter = (at: number): number =>
    (0.25 + before(at).reduce((sum, value, index) => sum + (value - meanAfter(index + 1)) ** 2, 0)) /
    (at + 1);
  const weights = values.map((_, at) =>
    Math.min(0.5, Math.sqrt((2 * Math.log(2 / alpha)) / (varianceAfter(at) * (at + 1) * Math.log(at + 2)))),
  );
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const centre = weights.reduce((sum, weight, at) => sum + weight * (values[at] ?? NaN), 0) / total;
  const penalty = weights.reduce(
    (sum, weight, at) =>
      sum + 4 * ((values[at] ?? NaN) - meanAfter(at)) ** 2 * ((-Math.log(1 - weight) - weight) / 4),
    0,
  );
  const margin = (Math.log(2 / alpha) + penalty) / total;
  return { lower: Math.max(0, centre - margin), upper: Math.min(1, centre + margin) };
}

describe("a confidence sequence for a mean", () => {
  it("is the published one, from sums alone", () => {
    const random = seededRandom(7);
    for (const length of [1, 2, 5, 12, 100, 400]) {
      const values = Array.from({ length }, () => random.unit() ** 2);
      const [own, whole] = [meanBounds(countsOf(values, 0.01), 0.01), fromTheWhole(values, 0.01)];
      expect(own.lower).to.be.closeTo(whole.lower, 1e-9);
      expect(own.upper).to.be.closeTo(whole.upper, 1e-9);
    }
  });

  it("is never left with more than alpha, over every sequence of 12 zeros and ones", () => {
    const alpha = 0.2;
    for (const mean of [0.05, 0.2, 0.5, 0.8]) {
      let left = 0;
      for (let sequence = 0; sequence < 2 ** MOST; sequence++) {
        const counts = emptyMean();
        let chance = 1;
        let isOutside = false;
        for (let at = 0; at < MOST; at++) {
          const value = (sequence >> at) & 1;
          chance *= value === 1 ? mean : 1 - mean;
          addToMean(counts, value, alpha);
          const { lower, upper } = meanBounds(counts, alpha);
          isOutside ||= mean < lower || mean > upper;
        }
        if (isOutside) left += chance;
      }
      expect(left, `at ${mean}`).to.be.below(alpha);
    }
  });

  it("knows nothing before the first observation, and finds the mean of many", () => {
    expect(meanBounds(emptyMean(), 0.05)).to.deep.equal({ lower: 0, upper: 1 });
    const random = seededRandom(3);
    const values = Array.from({ length: 20_000 }, () => 0.6 + 0.2 * random.unit());
    const { lower, upper } = meanBounds(countsOf(values, 0.05), 0.05);
    expect(lower).to.be.within(0.69, 0.7);
    expect(upper).to.be.within(0.7, 0.71);
  });
});
