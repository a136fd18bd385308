import { expect } from "chai";
import { texts, World } from "../../../support/world.ts";
import { ERROR } from "../../../support/world-worker.ts";
import type { WorldWorker } from "../../../support/world-worker.ts";

describe("what was stolen", () => {
  let ledger: World;
  let victim: WorldWorker;

  /** The victim was there first, executes two, has two in its backlog, and room for two more. */
  beforeEach(async () => {
    ledger = await World.start();
    victim = await ledger.worker(1, { slots: 2, credit: 6 });
    await ledger.submit(["a", "b", "c", "d"]);
  });

  it("goes to who can start it, not back to the backlog that it was taken from", async () => {
    const thief = await ledger.worker(2, { slots: 2, credit: 4 });
    await ledger.watch(500, [victim, thief]);
    const [asked] = victim.framesOf("recall");
    expect(asked).to.have.property("attempts").with.length(1);
    await victim.handBack(victim.held.slice(-1));
    expect(thief.texts).to.deep.equal(["d"]);
    expect(victim.texts).to.deep.equal(["a", "b", "c"]);
  });

  it("waits for who can start it rather than go back, for a moment", async () => {
    await ledger.submit(["e", "f"], { batchNumber: 2 });
    const thief = await ledger.worker(2, { slots: 1, credit: 1 });
    await ledger.watch(500, [victim, thief]);
    await victim.handBack(victim.held.slice(-2));
    await victim.ask(2);
    expect([victim.texts, thief.texts]).to.deep.equal([["a", "b", "c", "d"], ["e"]]);
    await thief.report([...thief.held]);
    await thief.ask(1);
    expect([victim.texts, thief.texts]).to.deep.equal([["a", "b", "c", "d"], ["f"]]);
  });

  it("does not go behind what one does that may be gone soon", async () => {
    await ledger.submit(["e", "f"], { batchNumber: 2 });
    const thief = await ledger.worker(2, { slots: 1, credit: 1 });
    const risky = await ledger.worker(3, { slots: 1 });
    risky.isAtRisk = true;
    await ledger.watch(500, [victim, thief, risky]);
    await risky.ask(3);
    await victim.handBack(victim.held.slice(-2));
    expect([thief.texts, risky.texts]).to.deep.equal([["e"], ["f"]]);
    await victim.handBack(victim.held.slice(-1));
    expect(risky.texts, "it has a slot for one").to.deep.equal(["f"]);
  });

  it("goes back all the same when nobody else has come for it", async () => {
    await ledger.submit(["e", "f"], { batchNumber: 2 });
    const thief = await ledger.worker(2, { slots: 1, credit: 1 });
    await ledger.watch(500, [victim, thief]);
    await victim.handBack(victim.held.slice(-2));
    await victim.ask(2);
    expect(victim.texts).to.have.length(4);
    await ledger.watch(1_000, [victim, thief]);
    expect(victim.texts).to.deep.equal(["a", "b", "c", "d", "f"]);
  });

  it("fills free slots first, and backlogs with what is left over", async () => {
    const thief = await ledger.worker(2, { slots: 1, credit: 2 });
    await ledger.watch(500, [victim, thief]);
    await victim.handBack(victim.held.slice(-1));
    await ledger.submit(["e", "f"], { submission: "01SVBM1SS20N00000000000000" });
    await ledger.watch(600, [victim, thief]);
    expect([...victim.texts, ...thief.texts].sort()).to.deep.equal(["a", "b", "c", "d", "e", "f"]);
    expect(thief.texts).to.include("d");
  });
});

describe("stealing", () => {
  let ledger: World;

  const askedOf = (worker: WorldWorker): string[] =>
    worker
      .framesOf("recall")
      .flatMap(({ attempts }) =>
        attempts.map(({ id }) => worker.held.find((item) => Buffer.compare(item.id, id) === 0)?.text ?? ""),
      );

  beforeEach(async () => {
    ledger = await World.start();
  });

  for (const { backlog, taken } of [
    { backlog: 63, taken: 32 },
    { backlog: 61, taken: 31 },
    { backlog: 200, taken: 32 },
  ]) {
    it(`takes half of a backlog of ${backlog} at most, and never more than 32 at once: ${taken}`, async () => {
      const victim = await ledger.worker(1, { slots: 1, credit: backlog + 1 });
      await ledger.submit(texts(backlog + 1));
      expect(victim.texts).to.have.length(backlog + 1);
      const thief = await ledger.worker(2, { slots: 100, credit: 100 });
      await ledger.watch(500, [victim, thief]);
      expect(askedOf(victim)).to.have.length(taken);
    });
  }

  it("asks a victim once while it has not answered, however many thieves there are", async () => {
    const victim = await ledger.worker(1, { slots: 1, credit: 20 });
    await ledger.submit(texts(20));
    const thieves = [await ledger.worker(2, { slots: 1 }), await ledger.worker(3, { slots: 1 })];
    for (const thief of thieves) await thief.ask(1);
    await ledger.watch(1_500, [victim, ...thieves]);
    expect(victim.framesOf("recall")).to.have.length(1);
  });

  /** The thief has failed all of these, and they are pending again. */
  async function afterFailuresOf(
    items: readonly string[],
  ): Promise<{ readonly thief: WorldWorker; readonly victim: WorldWorker }> {
    const [thief, victim] = [await ledger.worker(1, { slots: 4 }), await ledger.worker(2, { slots: 1 })];
    await ledger.submit(items);
    await thief.ask(items.length);
    await thief.report([...thief.held], ERROR);
    await ledger.watch(1_500, ledger.workers);
    return { thief, victim };
  }

  it("leaves where it is what the thief has failed, as long as there is another worker", async () => {
    const { thief, victim } = await afterFailuresOf(["a", "b", "c", "d"]);
    await victim.ask(4);
    await thief.ask(4);
    expect(victim.held).to.have.length(4);
    await ledger.watch(20_000, ledger.workers);
    expect(askedOf(victim)).to.deep.equal([]);
  });

  it("takes it where the other worker is suspected, as it is the only one to count on then", async () => {
    const { thief, victim } = await afterFailuresOf(["a", "b", "c", "d"]);
    await victim.ask(4);
    await thief.ask(4);
    await ledger.watch(1_500, [thief]);
    expect(askedOf(victim)).to.have.length(2);
  });

  it("takes the rest of such a backlog", async () => {
    const { thief, victim } = await afterFailuresOf(["a", "b"]);
    await victim.ask(5);
    await ledger.submit(["c", "d", "e"], { batchNumber: 2 });
    expect(victim.texts).to.deep.equal(["a", "b", "c", "d", "e"]);
    await thief.ask(4);
    await ledger.watch(500, ledger.workers);
    expect(askedOf(victim).toSorted()).to.deep.equal(["d", "e"]);
  });

  it("goes to another backlog when the largest one was given out just now", async () => {
    const [small, large] = [await ledger.worker(1, { slots: 1 }), await ledger.worker(2, { slots: 1 })];
    const thief = await ledger.worker(3, { slots: 1 });
    await ledger.submit(["a", "b", "c"]);
    await small.ask(3);
    ledger.nowMs += 1_000;
    await ledger.submit(["d", "e", "f", "g", "h", "i"], { batchNumber: 2 });
    await large.ask(6);
    await thief.ask(1);
    expect([askedOf(small), askedOf(large)]).to.deep.equal([["c"], []]);
  });

  it("recalls an item only when it has waited in the backlog for 200 ms", async () => {
    const [victim, thief] = [await ledger.worker(1, { slots: 2 }), await ledger.worker(2, { slots: 1 })];
    await ledger.submit(["a", "b", "c", "d"]);
    await victim.ask(2);
    ledger.nowMs += 1_000;
    await victim.ask(2);
    await thief.ask(1);
    expect(askedOf(victim), "what waits came just now").to.deep.equal([]);
    ledger.nowMs += 300;
    await ledger.step({ kind: "scan" });
    expect(askedOf(victim)).to.deep.equal(["d"]);
  });
});
