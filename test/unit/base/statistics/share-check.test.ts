import { expect } from "chai";
import { seededRandom } from "../../../../src/base/random.ts";
import { fitsShare } from "../../../../src/base/statistics/share-check.ts";

describe("the check of a share", () => {
  it("accepts what chance gives, looked at after every item", () => {
    const random = seededRandom(11);
    for (let release = 0; release < 20; release++) {
      const given = { stable: 0, candidate: 0 };
      for (let item = 0; item < 5_000; item++) {
        given[random.unit() < 0.1 ? "candidate" : "stable"]++;
        expect(fitsShare(given, 0.1)).to.equal(true);
      }
    }
  });

  it("refuses another share, once there are enough items to see it", () => {
    expect(fitsShare({ stable: 9, candidate: 3 }, 0.1)).to.equal(true);
    expect(fitsShare({ stable: 900, candidate: 300 }, 0.1)).to.equal(false);
    expect(fitsShare({ stable: 1_000, candidate: 20 }, 0.1)).to.equal(false);
  });
});
