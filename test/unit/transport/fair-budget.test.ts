import { expect } from "chai";
import { FairBudget } from "../../../src/transport/intake.ts";
import type { Claim } from "../../../src/transport/intake.ts";

describe("a budget that bearers share", () => {
  let budget: FairBudget;
  let claims: Map<string, Claim>;

  beforeEach(() => {
    budget = new FairBudget({ total: 10, bearer: 6 });
    claims = new Map();
  });

  /** Claims for the bearer whose letter the name begins with. */
  const claim = (name: string, amount: number): void =>
    void claims.set(name, budget.claim(name.slice(0, 1), amount));
  const release = (...names: string[]): void => {
    for (const name of names) claims.get(name)?.release();
  };
  const granted = (): string[] => [...claims].filter(([, { isGranted }]) => isGranted).map(([name]) => name);

  it("grants in order of asking within a bearer, and no more than its share", () => {
    claim("a1", 4);
    claim("a2", 3);
    claim("a3", 1);
    expect([granted(), budget.taken]).to.deep.equal([["a1"], 4]);
    release("a1");
    expect([granted(), budget.taken]).to.deep.equal([["a2", "a3"], 4]);
  });

  it("lets no bearer hold up another by asking for all of it", () => {
    for (let at = 1; at <= 50; at++) claim(`a${at}`, 3);
    claim("b1", 4);
    expect(granted()).to.deep.equal(["a1", "a2", "b1"]);
  });

  it("serves those who wait for the total in turn, one claim each, and lets nobody push past", () => {
    claim("a1", 6);
    claim("b1", 4);
    claim("b2", 2);
    claim("c1", 5);
    claim("d1", 1);
    claim("b3", 1);
    expect(granted()).to.deep.equal(["a1", "b1"]);
    release("a1");
    expect(granted()).to.deep.equal(["b1", "b2"]);
    release("b1");
    expect(granted()).to.deep.equal(["b2", "c1", "d1", "b3"]);
  });

  it("lets what is larger than a share, and than all of it, go alone", () => {
    claim("a1", 1);
    claim("a2", 50);
    claim("b1", 1);
    expect(granted()).to.deep.equal(["a1", "b1"]);
    release("a1");
    expect(granted()).to.deep.equal(["b1"]);
    claim("c1", 1);
    release("b1");
    expect(granted()).to.deep.equal(["a2"]);
    release("a2");
    expect([granted(), budget.taken]).to.deep.equal([["c1"], 1]);
  });

  it("takes what is there already without waiting, and gives back what was too much", () => {
    claim("a1", 2);
    claims.get("a1")?.resize(9);
    claim("b1", 2);
    expect([granted(), budget.taken]).to.deep.equal([["a1"], 9]);
    claims.get("a1")?.resize(5);
    expect([granted(), budget.taken]).to.deep.equal([["a1", "b1"], 7]);
    release("a1", "b1", "a1");
    expect(budget.taken).to.equal(0);
  });

  it("forgets who is released while it waits, and those behind it go on", async () => {
    claim("a1", 6);
    claim("b1", 6);
    claim("c1", 4);
    release("b1");
    expect(granted()).to.deep.equal(["a1", "c1"]);
    expect(await claims.get("b1")?.granted).to.equal(false);
    release("a1", "c1");
    expect(budget.taken).to.equal(0);
  });
});
