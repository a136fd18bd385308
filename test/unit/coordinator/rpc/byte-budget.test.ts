import { expect } from "chai";
import { ByteBudget } from "../../../../src/coordinator/rpc/byte-budget.ts";
import { settle } from "../../../support/settle.ts";

describe("byte budget", () => {
  let budget: ByteBudget;
  let admitted: string[];

  beforeEach(() => {
    budget = new ByteBudget(10);
    admitted = [];
  });

  const take = (name: string, bytes: number): void => void budget.take(bytes).then(() => admitted.push(name));

  it("admits in order of asking, and no more than there is room for", async () => {
    take("a", 6);
    take("b", 5);
    take("c", 1);
    await settle();
    expect([admitted, budget.taken]).to.deep.equal([["a"], 6]);
    budget.giveBack(6);
    await settle();
    expect([admitted, budget.taken]).to.deep.equal([["a", "b", "c"], 6]);
  });

  it("lets what is larger than all of it go, alone", async () => {
    take("a", 1);
    take("large", 50);
    take("b", 1);
    await settle();
    expect(admitted).to.deep.equal(["a"]);
    budget.giveBack(1);
    await settle();
    expect(admitted).to.deep.equal(["a", "large"]);
    budget.giveBack(50);
    await settle();
    expect([admitted, budget.taken]).to.deep.equal([["a", "large", "b"], 1]);
  });

  it("takes at once what there is room for, and nothing that would push in", async () => {
    expect([budget.takeNow(6), budget.takeNow(5), budget.takeNow(4)]).to.deep.equal([true, false, true]);
    take("waits", 1);
    await settle();
    budget.giveBack(4);
    await settle();
    expect([admitted, budget.taken]).to.deep.equal([["waits"], 7]);
    take("waits for more", 4);
    await settle();
    expect(budget.takeNow(1)).to.equal(false);
  });
});
