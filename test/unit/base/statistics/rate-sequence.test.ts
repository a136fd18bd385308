import { expect } from "chai";
import { rateBounds } from "../../../../src/base/statistics/rate-sequence.ts";
import { isPossible } from "./exact-mixture.ts";

const MOST = 12;
const ALPHAS_MILLIONTHS = [200_000, 50_000, 8_333, 1_000];

/** Every count of up to `MOST` observations. */
function* fewCounts(): Generator<{ readonly n: number; readonly k: number }> {
  for (let n = 1; n <= MOST; n++) for (let k = 0; k <= n; k++) yield { n, k };
}

describe("a confidence sequence for a rate", () => {
  it("holds exactly the rates that fractions of whole numbers hold, for up to 12 observations", () => {
    let compared = 0;
    for (const { n, k } of fewCounts()) {
      for (const alpha of ALPHAS_MILLIONTHS) {
        const { lower, upper } = rateBounds({ kind: "rate", n, k }, alpha / 1e6);
        for (let rate = 1; rate < 1_000_000; rate += 9_973) {
          const isInside = rate / 1e6 > lower && rate / 1e6 < upper;
          expect(isInside, `${k} of ${n}, alpha ${alpha}, rate ${rate}`).to.equal(
            isPossible(n, k, rate, alpha),
          );
          compared++;
        }
      }
    }
    expect(compared).to.be.above(30_000);
  });

  it("is never left with more than alpha, over every sequence of 12 observations", () => {
    const alpha = 0.05;
    let worst = 0;
    for (const rate of [0.001, 0.01, 0.024, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5]) {
      let left = 0;
      for (let sequence = 0; sequence < 2 ** MOST; sequence++) {
        if (leaves(sequence, rate, alpha)) left += chanceOf(sequence, rate);
      }
      expect(left, `at ${rate}`).to.be.below(alpha);
      worst = Math.max(worst, left);
    }
    // Nor is it so wide that it said less than it could.
    expect(worst).to.be.within(0.028, 0.03);
  });

  it("knows nothing before the first observation, and narrows with more", () => {
    expect(rateBounds({ kind: "rate", n: 0, k: 0 }, 0.05)).to.deep.equal({ lower: 0, upper: 1 });
    const widths = [10, 100, 1_000, 100_000, 10_000_000].map((n) => {
      const { lower, upper } = rateBounds({ kind: "rate", n, k: n / 10 }, 0.05);
      expect(lower).to.be.below(0.1);
      expect(upper).to.be.above(0.1);
      return upper - lower;
    });
    expect(widths).to.deep.equal(widths.toSorted((one, other) => other - one));
    expect(widths.at(-1)).to.be.below(0.001);
  });
});

/** Whether `rate` is outside at any of the first 12 observations: bit i is the i-th. */
function leaves(sequence: number, rate: number, alpha: number): boolean {
  let k = 0;
  for (let n = 1; n <= MOST; n++) {
    k += (sequence >> (n - 1)) & 1;
    const { lower, upper } = rateBounds({ kind: "rate", n, k }, alpha);
    if (rate < lower || rate > upper) return true;
  }
  return false;
}

function chanceOf(sequence: number, rate: number): number {
  let chance = 1;
  for (let at = 0; at < MOST; at++) chance *= (sequence >> at) & 1 ? rate : 1 - rate;
  return chance;
}
