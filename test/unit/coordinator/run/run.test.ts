import { expect } from "chai";
import { DONE_PREFIX, ITEMS_PREFIX, LEDGER_KEY } from "../../../../src/storage/keys.ts";
import { World } from "../../../support/world.ts";
import { ERROR, reportOf } from "../../../support/world-worker.ts";
import type { WorldWorker } from "../../../support/world-worker.ts";

describe("the run", () => {
  let ledger: World;
  let worker: WorldWorker;

  beforeEach(async () => {
    ledger = await World.start({ budgets: { maxAttempts: 1 } });
    worker = await ledger.worker(1, { credit: 10 });
  });

  const completions = (): unknown[] =>
    ledger.events.events.filter(({ topic }) => topic === "run_completed").map(({ payload }) => payload);

  async function finishAll(): Promise<void> {
    const [first, ...rest] = worker.held;
    if (first !== undefined) await worker.report([first], ERROR);
    await worker.report(rest);
  }

  it("is open until it is sealed, and says what becomes of its items", async () => {
    await ledger.submit(["a", "b", "c"]);
    await worker.report(worker.held.slice(0, 1));
    expect(await ledger.view()).to.deep.include({ state: "Open.Active", pending: 0, running: 2, done: 1 });
  });

  it("does not complete before it is sealed", async () => {
    await ledger.submit(["a"]);
    await finishAll();
    expect(await ledger.view()).to.deep.include({ state: "Open.Active", failed: 1 });
  });

  it("completes once when it is sealed, every item is final and the rows agree", async () => {
    await ledger.submit(["a", "b", "c"]);
    await ledger.seal();
    expect(await ledger.view()).to.include({ state: "Sealed.Active" });
    await finishAll();
    await ledger.watch(1_000, [worker]);
    expect(await ledger.view()).to.include({ state: "Complete", pending: 0, running: 0 });
    expect(completions()).to.deep.equal([{ done: 2, failed: 1 }]);
  });

  it("completes at once when it is sealed with nothing left to do", async () => {
    await ledger.submit(["a"]);
    await finishAll();
    await ledger.seal();
    expect(await ledger.view()).to.include({ state: "Complete" });
  });

  it("does not complete while an item waits for its next try", async () => {
    const patient = await World.start();
    const other = await patient.worker(1, { credit: 1 });
    await patient.submit(["a"]);
    await patient.seal();
    await other.report(other.held, ERROR);
    expect(await patient.view()).to.include({ state: "Sealed.Active", pending: 1 });
  });

  it("is sealed for the next leader too, and completes under it", async () => {
    await ledger.submit(["a"]);
    await ledger.seal();
    await ledger.lead();
    await worker.rejoin();
    await finishAll();
    expect(await ledger.view()).to.include({ state: "Complete" });
    await ledger.lead();
    expect(await ledger.view()).to.include({ state: "Complete" });
  });

  it("completes under a new leader when the old one ended between the last result and the comparison", async () => {
    await ledger.submit(["a"]);
    await ledger.step({ kind: "seal", answer: () => undefined });
    const { held } = worker;
    await worker.send(held.map((item) => reportOf(item, ERROR)));
    await ledger.lead();
    await ledger.watch(250);
    expect(await ledger.view()).to.include({ state: "Complete" });
  });

  describe("does not complete over damage, and names it", () => {
    for (const [name, prefix, how] of [
      ["a flipped byte in a result", DONE_PREFIX, "flipped"],
      ["a result that is gone", DONE_PREFIX, "gone"],
      ["an item that is gone", ITEMS_PREFIX, "gone"],
    ] as const) {
      it(name, async () => {
        const checked = await World.start({ isChecked: false });
        const other = await checked.worker(1, { credit: 5 });
        await checked.submit(["a", "b"]);
        await other.report(other.held);
        const key = await checked.damage(prefix, 0, how);
        await checked.seal();
        expect(checked.fatal).to.have.length(1);
        expect(checked.fatal[0]).to.deep.include({ code: "store_corrupt" });
        const named = { key: how === "gone" ? LEDGER_KEY : key };
        expect((checked.fatal[0] as { params: unknown }).params).to.deep.include(named);
        expect(await checked.view()).to.include({ state: "Sealed.Active" });
      });
    }
  });
});
