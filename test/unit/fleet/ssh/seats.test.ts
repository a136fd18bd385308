import { expect } from "chai";
import { Seats } from "../../../../src/fleet/ssh/seats.ts";

const NONE: ReadonlySet<string> = new Set();

describe("seats of hosts", () => {
  it("go to one allocation each, and to the same one again, those that refuse last", () => {
    const seats = new Seats(["a", "b", "c"]);
    expect([seats.take("1", NONE), seats.take("2", NONE)]).to.deep.equal(["a", "b"]);
    seats.settle("1", "a", { kind: "refused" });
    seats.settle("2", "b", { kind: "unknown" });
    expect(seats.take("1", new Set(["a"]))).to.equal("c");
    seats.settle("1", "c", { kind: "busy", owner: "9" });
    expect(seats.take("1", new Set(["a", "c"]))).to.equal(undefined);
    expect([seats.take("2", NONE), seats.of("9")]).to.deep.equal(["b", "c"]);
    expect(seats.take("3", NONE)).to.equal("a");
    expect(seats.isAnyTaken).to.equal(true);
  });

  it("are free again when a host says so that was asked behind the launch, and not before", () => {
    const seats = new Seats(["a"]);
    const before = seats.moment();
    seats.take("1", NONE);
    expect(seats.seen("a", undefined, seats.moment()), "while it is on its way").to.equal(false);
    seats.settle("1", "a", { kind: "launched" });
    expect(seats.seen("a", undefined, before), "asked before it").to.equal(false);
    expect(seats.take("2", NONE)).to.equal(undefined);
    expect(seats.seen("a", undefined, seats.moment())).to.equal(true);
    expect(seats.take("2", NONE)).to.equal("a");
  });
});
