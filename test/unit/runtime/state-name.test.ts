import { expect } from "chai";
import { stateName } from "../../../src/runtime/chart-structure.ts";

describe("the name of a state", () => {
  it("is the word for where a chart is", () => {
    expect(stateName("Ready")).to.equal("Ready");
    expect(stateName({ Draining: "Flushing" })).to.equal("Draining.Flushing");
    expect(stateName({ a: { b: { c: "d" } } })).to.equal("a.b.c.d");
  });

  it("says where each region is, in the order of the chart", () => {
    expect(stateName({ lifecycle: "Ready", liveness: "Alive" })).to.equal("Ready+Alive");
    expect(stateName({ Draining: { left: "x", right: { y: "one" } } })).to.equal("Draining.x+y.one");
    expect(stateName({})).to.equal("");
  });
});
