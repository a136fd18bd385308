import { expect } from "chai";
import { LostWorkers } from "../../../../src/compose/local-run/progress-watch.ts";

describe("workers that are lost", () => {
  let lost: LostWorkers;

  /** The sentence when it is so at this moment. */
  function at(seconds: number, ready: number, suspected = 0, failed = 0): string | undefined {
    return lost.take(seconds * 1_000, { ready, suspected, failed, draining: 0, cordoned: 0, revoked: 0 });
  }

  beforeEach(() => (lost = new LostWorkers()));

  it("are reported once, when the loss lasts, and once more when they are back", () => {
    const said = [
      at(0, 4),
      at(1, 3, 1),
      at(3, 3, 1),
      at(5, 3, 0, 1),
      at(60, 3, 0, 1),
      at(61, 4),
      at(65, 4),
      at(99, 4),
    ];
    expect(said.filter((sentence) => sentence !== undefined)).to.deep.equal([
      "1 of 4 workers does not answer: what it has runs elsewhere when it stays away",
      "every worker answers again",
    ]);
    expect(said[3]).to.match(/does not answer/);
    expect(said[6]).to.match(/again/);
  });

  it("are not reported when they are back in a moment", () => {
    expect([at(0, 2), at(1, 1, 1), at(3, 2), at(4, 1, 1), at(6, 1, 1), at(6.5, 2), at(20, 2)]).to.deep.equal(
      Array.from({ length: 7 }, () => undefined),
    );
  });

  it("do not include workers of an earlier run that were not started again", () => {
    expect([at(0, 0, 4), at(5, 0, 4), at(6, 2, 2), at(20, 2, 0, 2)]).to.deep.equal(
      Array.from({ length: 4 }, () => undefined),
    );
  });

  it("come back one by one", () => {
    at(0, 3);
    at(1, 1, 2);
    expect(at(4, 1, 2)).to.match(/^2 of 3 workers do not answer: /);
    at(5, 2, 1);
    expect(at(8, 2, 1)).to.equal("1 of 3 workers does not answer");
  });
});
