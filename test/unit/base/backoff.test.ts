import { expect } from "chai";
import fc from "fast-check";
import { backoffMs } from "../../../src/base/random.ts";
import type { Random } from "../../../src/base/random.ts";

const always = (unit: number): Random => ({ unit: () => unit, bytes: (count) => new Uint8Array(count) });
const ALMOST_ONE = 1 - 2 ** -53;

describe("backoff", () => {
  it("doubles its bound with each try, up to the ceiling", () => {
    const range = { baseMs: 100, ceilingMs: 1_500 };
    const bounds = [1, 2, 3, 4, 5, 6, 100].map((attempt) =>
      Math.ceil(backoffMs(range, attempt, always(ALMOST_ONE))),
    );
    expect(bounds).to.deep.equal([100, 200, 400, 800, 1_500, 1_500, 1_500]);
  });

  it("has full jitter: anything from nothing to the bound", () => {
    const range = { baseMs: 100, ceilingMs: 1_500 };
    expect(backoffMs(range, 4, always(0))).to.equal(0);
    expect(backoffMs(range, 4, always(0.5))).to.equal(400);
  });

  it("is never negative, never over the ceiling and never endless, whatever the numbers", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10_000 }),
        fc.integer({ min: 1, max: 10_000_000 }),
        fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
        fc.double({ min: 0, max: ALMOST_ONE, noNaN: true }),
        (baseMs, ceilingMs, attempt, unit) => {
          expect(backoffMs({ baseMs, ceilingMs }, attempt, always(unit))).to.be.within(0, ceilingMs);
        },
      ),
    );
  });
});
