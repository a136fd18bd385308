import { expect } from "chai";
import fc from "fast-check";
import { seededRandom, systemRandom } from "../../../src/base/random.ts";

describe("chance", () => {
  it("of one seed draws the same again, numbers and bytes", () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const [one, other] = [seededRandom(seed), seededRandom(seed)];
        const draw = (random: typeof one) => [random.unit(), random.bytes(7), random.unit(), random.bytes(3)];
        expect(draw(one)).to.deep.equal(draw(other));
      }),
    );
  });

  it("of one seed is pinned: a seed that somebody wrote down means the same later", () => {
    const random = seededRandom(42);
    expect([random.unit(), random.unit()].map((unit) => unit.toFixed(10))).to.deep.equal([
      "0.6011037519",
      "0.4482905590",
    ]);
    expect([...seededRandom(42).bytes(4)]).to.deep.equal([153, 114, 218, 171]);
  });

  it("of another seed draws something else", () => {
    const first = Array.from({ length: 200 }, (_, seed) => seededRandom(seed).unit());
    expect(new Set(first).size).to.equal(200);
  });

  for (const [name, random] of Object.entries({ seeded: seededRandom(1), system: systemRandom }))
    it(`(${name}) is in [0, 1), and as many bytes as asked for`, () => {
      const units = Array.from({ length: 10_000 }, () => random.unit());
      for (const unit of units) expect(unit >= 0 && unit < 1).to.equal(true);
      // Each tenth holds about a thousand: the chance of missing this by luck is nil.
      for (let tenth = 0; tenth < 10; tenth++)
        expect(units.filter((unit) => Math.floor(unit * 10) === tenth).length).to.be.within(800, 1_200);
      for (const count of [0, 1, 16])
        expect(random.bytes(count)).to.be.instanceOf(Uint8Array).and.have.length(count);
      expect(new Set(random.bytes(4_096)).size).to.equal(256);
    });
});
