import { expect } from "chai";
import fc from "fast-check";
import {
  isBelievable,
  laterOf,
  NO_EXTENT,
  rollbackTo,
} from "../../../../src/coordinator/lead/store-memory.ts";
import type { Remembered } from "../../../../src/coordinator/lead/store-memory.ts";

const seen = { epoch: 4, completion: 30, submitted: 100, done: 60 };

describe("what a host remembers of a store", () => {
  for (const [what, found] of [
    ["nothing new", seen],
    ["another leadership", { ...seen, epoch: 5 }],
    ["more results", { ...seen, epoch: 4, completion: 31, done: 62 }],
    // An item that failed was done before it was set aside, or is retried: the order of completion only grows.
    ["fewer done items under a later completion", { ...seen, completion: 31, done: 59 }],
  ] as const)
    it(`finds no rollback in a store that has ${what}`, () => {
      expect(rollbackTo(found, seen)).to.equal(undefined);
    });

  for (const [what, found, missing] of [
    ["epoch", { ...seen, epoch: 3 }, { done: 0, submitted: 0 }],
    ["completions", { ...seen, epoch: 9, completion: 29, done: 52 }, { done: 8, submitted: 0 }],
    ["items", { ...seen, submitted: 40 }, { done: 0, submitted: 60 }],
    ["everything", NO_EXTENT, { done: 60, submitted: 100 }],
  ] as const)
    it(`finds a store that has less in its ${what}, and counts what is missing`, () => {
      expect(rollbackTo(found, seen)).to.deep.equal({ found, seen, missing });
    });

  it("keeps the epoch of a leader that is not known to the host that has accepted a rollback", () => {
    const own = { ...seen, accepted: 0 };
    const accepted = { epoch: 2, completion: 10, submitted: 100, done: 20, accepted: 1 };
    for (const later of [laterOf(own, accepted), laterOf(accepted, own)])
      expect(later).to.deep.equal({ ...accepted, epoch: 4 });
  });

  const remembered: fc.Arbitrary<Remembered> = fc.record({
    epoch: fc.integer({ min: -1, max: 5 }),
    completion: fc.nat(5),
    submitted: fc.nat(5),
    done: fc.nat(5),
    accepted: fc.nat(2),
  });

  it("comes to the same in whatever order processes merge what they have seen", () => {
    fc.assert(
      fc.property(remembered, remembered, remembered, (one, two, three) => {
        expect(laterOf(one, two)).to.deep.equal(laterOf(two, one));
        expect(laterOf(laterOf(one, two), three)).to.deep.equal(laterOf(one, laterOf(two, three)));
        expect(laterOf(one, one)).to.deep.equal(one);
      }),
    );
  });

  it("rejects epochs so high that no later one would fit", () => {
    expect([0, 7, 2 ** 51].map(isBelievable)).to.deep.equal([true, true, true]);
    expect([-1, 0.5, 2 ** 51 + 1, Infinity].map(isBelievable)).to.deep.equal([false, false, false, false]);
  });
});
