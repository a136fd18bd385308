import { expect } from "chai";
import { nearestName } from "../../../src/config/nearest.ts";

describe("the nearest name", () => {
  const known = ["storage", "transport", "liveness", "worker"];

  it("is the one with the fewest edits", () => {
    expect(nearestName("transprot", known)).to.equal("transport");
    expect(nearestName("storag", known)).to.equal("storage");
    expect(nearestName("wroker", known)).to.equal("worker");
  });

  it("is undefined when every name needs too many edits", () => {
    expect(nearestName("banana", known)).to.equal(undefined);
    expect(nearestName("", known)).to.equal(undefined);
    expect(nearestName("x", [])).to.equal(undefined);
  });
});
