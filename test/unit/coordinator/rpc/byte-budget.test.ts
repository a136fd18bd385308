import { expect } from "chai";
import { ByteBudget } from "../../../../src/coordinator/rpc/work-service.ts";

describe("byte budget", () => {
  it("takes what there is room for, until that is given back", () => {
    const budget = new ByteBudget(10);
    expect([budget.take(6), budget.take(5), budget.take(4)]).to.deep.equal([true, false, true]);
    budget.free(6);
    expect([budget.take(7), budget.take(6)]).to.deep.equal([false, true]);
  });

  it("grants a claim over its total when nothing else is claimed", () => {
    const budget = new ByteBudget(10);
    expect([budget.take(50), budget.take(1)]).to.deep.equal([true, false]);
  });
});
