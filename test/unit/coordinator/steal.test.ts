import { expect } from "chai";
import { LedgerHarness } from "../../support/ledger-harness.ts";
import type { LedgerWorker } from "../../support/ledger-worker.ts";

describe("what was stolen", () => {
  let ledger: LedgerHarness;
  let victim: LedgerWorker;

  /** The victim was there first, executes two, has two in its backlog, and room for two more. */
  beforeEach(async () => {
    ledger = await LedgerHarness.start();
    victim = await ledger.worker(1, { slots: 2, credit: 6 });
    await ledger.submit(["a", "b", "c", "d"]);
  });

  it("goes to who can start it, not back to the backlog that it was taken from", async () => {
    const thief = await ledger.worker(2, { slots: 2, credit: 4 });
    await ledger.watch(500, [victim, thief]);
    const [asked] = victim.frames.filter(({ kind }) => kind === "release");
    expect(asked).to.have.property("attempts").with.length(1);
    await victim.release(victim.held.slice(-1));
    expect(thief.texts).to.deep.equal(["d"]);
    expect(victim.texts).to.deep.equal(["a", "b", "c"]);
  });

  it("fills free slots first, and backlogs with what is left over", async () => {
    const thief = await ledger.worker(2, { slots: 1, credit: 2 });
    await ledger.watch(500, [victim, thief]);
    await victim.release(victim.held.slice(-1));
    await ledger.submit(["e", "f"], { submission: "01SVBM1SS20N00000000000000" });
    expect([...victim.texts, ...thief.texts].sort()).to.deep.equal(["a", "b", "c", "d", "e", "f"]);
    expect(thief.texts).to.include("d");
  });
});
