// Items over which workers fall silent: how often before they fail, and whether by their own doing.
import { expect } from "chai";
import { World } from "../../../support/world.ts";

/** From the beat that was due to the failure, and a scan more. */
const FAILURE_MS = 6_250;

describe("poison: the ledger", () => {
  it("makes an item poison when workers fall silent over it, one after the other", async () => {
    const harness = await World.start({ budgets: { maxLost: 3 } });
    const witnesses = [await harness.worker(8), await harness.worker(9)];
    await harness.submit(["bad"]);
    for (const number of [1, 2, 3]) {
      const victim = await harness.worker(number, { slots: 1, credit: 1 });
      expect(victim.held.map(({ attempt }) => attempt)).to.deep.equal([number]);
      await harness.watch(FAILURE_MS, witnesses);
    }
    const { tally } = harness.state.ledger;
    expect([tally.count("failed"), tally.pending]).to.deep.equal([1, 0]);
  });

  for (const maxLost of [1, 2])
    it(`makes items poison at loss ${maxLost} when no more are allowed, also what only ran beside it`, async () => {
      const harness = await World.start({ budgets: { maxLost } });
      const witnesses = [await harness.worker(8), await harness.worker(9)];
      await harness.submit(["bad", "beside it"]);
      const { tally } = harness.state.ledger;
      for (let number = 1; number <= maxLost; number++) {
        expect(tally.failedByClass.poison).to.equal(0);
        const victim = await harness.worker(number, { slots: 2, credit: 2 });
        expect(victim.texts, "nothing runs alone before it was lost twice").to.deep.equal([
          "bad",
          "beside it",
        ]);
        await harness.watch(FAILURE_MS, witnesses);
      }
      expect([tally.failedByClass.poison, tally.pending]).to.deep.equal([2, 0]);
    });

  it("makes an item poison by what it does alone where three losses are allowed, and not what ran beside it", async () => {
    const harness = await World.start({ budgets: { maxLost: 3 } });
    const witnesses = [await harness.worker(8), await harness.worker(9)];
    await harness.submit(["bad", "beside it"]);
    for (const number of [1, 2, 3]) {
      const victim = await harness.worker(number, { slots: 2, credit: 2 });
      expect(victim.texts).to.deep.equal(number < 3 ? ["bad", "beside it"] : ["bad"]);
      await harness.watch(FAILURE_MS, witnesses);
    }
    const { tally } = harness.state.ledger;
    expect([tally.failedByClass.poison, tally.pending]).to.deep.equal([1, 1]);
  });
});
