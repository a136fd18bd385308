import { expect } from "chai";
import { cordonReasonOf, failuresInRowOf } from "../../../../src/coordinator/workers/trust.ts";
import { World } from "../../../support/world.ts";
import { ERROR } from "../../../support/world-worker.ts";
import type { HeldItem, WorldWorker } from "../../../support/world-worker.ts";

/** Longer than the longest wait after a first failure, shorter than anybody's patience. */
const BACKOFF_MS = 1_250;

describe("the trust in a worker", () => {
  let ledger: World;
  let bad: WorldWorker;
  let good: WorldWorker;

  beforeEach(async () => {
    ledger = await World.start();
    bad = await ledger.worker(1, { slots: 8 });
    good = await ledger.worker(2, { slots: 8 });
  });

  const topics = (): string[] =>
    ledger.events.events.map(({ topic }) => topic).filter((topic) => /cordon/.test(topic));

  function rowOf({ id }: WorldWorker) {
    const row = ledger.state.workers.get(id);
    if (row === undefined) throw new Error("the worker is registered");
    return row;
  }

  function isCordoned(worker: WorldWorker): boolean {
    return cordonReasonOf(rowOf(worker)) !== "";
  }

  let batches = 0;
  beforeEach(() => (batches = 0));

  /** Has the worker hold so many new items and nothing else. */
  async function give(worker: WorldWorker, count: number): Promise<HeldItem[]> {
    await worker.ask(count);
    const names = Array.from({ length: count }, (_, at) => `item ${batches} ${at}`);
    await ledger.submit(names, { batchNumber: ++batches });
    return [...worker.held];
  }

  /** It fails so many items, each of which nobody had failed before. */
  async function fail(worker: WorldWorker, count: number): Promise<void> {
    await worker.report(await give(worker, count), ERROR);
  }

  async function succeed(worker: WorldWorker): Promise<void> {
    await worker.report(await give(worker, 1));
  }

  /** It fails five in a row, and the other one succeeds in that time. */
  async function cordon(): Promise<void> {
    await fail(bad, 4);
    await succeed(good);
    await fail(bad, 1);
    expect(isCordoned(bad)).to.equal(true);
  }

  it("ends with five failures in a row while others succeed: it is said aloud, and it gets nothing more", async () => {
    await cordon();
    expect(topics()).to.deep.equal(["worker_cordoned"]);
    expect(cordonReasonOf(rowOf(bad))).to.equal(
      "it failed 5 items in a row while others succeeded; every 3 minutes it is given one item, and a success makes it good",
    );
    const warnings = ledger.log.lines.filter(({ level }) => level === "warn");
    expect(warnings).to.have.length(1);
    expect(JSON.stringify(warnings)).to.include(bad.id);
    await bad.ask(5);
    await ledger.submit(["more"], { batchNumber: ++batches });
    await ledger.watch(BACKOFF_MS, ledger.workers);
    expect(bad.held).to.have.length(0);
    await good.ask(20);
    expect(good.held, "and the others do its work").to.have.length(6);
  });

  it("does not end while no other worker succeeds, for the items may be bad", async () => {
    await succeed(good);
    ledger.nowMs += 1;
    await fail(bad, 8);
    expect([isCordoned(bad), failuresInRowOf(rowOf(bad))]).to.deep.equal([false, 8]);
    await succeed(good);
    expect(isCordoned(bad), "the next failure decides").to.equal(false);
    await fail(bad, 1);
    expect(isCordoned(bad)).to.equal(true);
  });

  it("does not end when a success stands between the failures", async () => {
    await succeed(good);
    for (let time = 0; time < 3; time++) {
      await fail(bad, 4);
      await succeed(bad);
      await succeed(good);
    }
    await succeed(good);
    await bad.report(await give(bad, 6), { kind: "error", message: "", isPermanent: true });
    expect([isCordoned(bad), failuresInRowOf(rowOf(bad))]).to.deep.equal([false, 0]);
  });

  it("does not end with outcomes that are not charged, or that are the item's own", async () => {
    for (const kind of ["preempted", "too_large", "crash_shared", "fenced"] as const) {
      await succeed(good);
      const items = await give(bad, 6);
      await bad.report(items, kind === "preempted" || kind === "fenced" ? { kind } : { kind, message: "" });
      await good.ask(20);
      await good.report([...good.held]);
    }
    expect([isCordoned(bad), failuresInRowOf(rowOf(bad))]).to.deep.equal([false, 0]);
  });

  it("does not end with items that others have failed before", async () => {
    await fail(bad, 4);
    await good.ask(4);
    await ledger.watch(BACKOFF_MS, ledger.workers);
    expect(good.held).to.have.length(4);
    await good.report([...good.held], ERROR);
    expect([failuresInRowOf(rowOf(bad)), failuresInRowOf(rowOf(good))], "nobody is to blame").to.deep.equal([
      0, 0,
    ]);
  });

  it("comes back when others fail the same items", async () => {
    await cordon();
    await good.ask(5);
    await ledger.watch(BACKOFF_MS, ledger.workers);
    await good.report(good.held.slice(0, 1), ERROR);
    expect([isCordoned(bad), failuresInRowOf(rowOf(bad))]).to.deep.equal([false, 4]);
    expect(topics()).to.deep.equal(["worker_cordoned", "worker_uncordoned"]);
  });

  it("comes back with a new process of the worker", async () => {
    await cordon();
    bad.restart(2);
    await bad.beat();
    expect(isCordoned(bad)).to.equal(false);
    await bad.hello();
    await give(bad, 1);
    expect(bad.held).to.have.length(1);
  });

  it("does not come back with a new leader", async () => {
    await cordon();
    await ledger.lead();
    for (const worker of [bad, good]) {
      await worker.rejoin();
      await worker.ask(1);
    }
    expect([isCordoned(bad), failuresInRowOf(rowOf(bad))]).to.deep.equal([true, 5]);
    await ledger.submit(["more", "and more"], { batchNumber: ++batches });
    expect([bad.held.length, good.held.length]).to.deep.equal([0, 1]);
  });

  it("hands on what a cordoned worker has not started", async () => {
    bad = await ledger.worker(3, { slots: 1 });
    await fail(bad, 4);
    await succeed(good);
    const items = await give(bad, 4);
    await ledger.watch(500, ledger.workers);
    await good.ask(1);
    await bad.report(items.slice(0, 1), ERROR);
    expect(isCordoned(bad)).to.equal(true);
    await ledger.watch(500, ledger.workers);
    const asked = bad.framesOf("recall").at(-1);
    expect(asked).to.have.property("attempts").with.length(2);
  });

  it("is looked at every three minutes while others work: one item, that nobody has failed", async () => {
    await cordon();
    await bad.ask(8);
    await ledger.watch(BACKOFF_MS, ledger.workers);
    await ledger.submit(["new 1", "new 2"], { batchNumber: ++batches });
    await ledger.watch(175_000, ledger.workers);
    expect(bad.held).to.have.length(0);
    await ledger.watch(10_000, ledger.workers);
    expect(bad.texts).to.deep.equal(["new 1"]);
    await ledger.watch(200_000, ledger.workers);
    expect(bad.texts, "one at a time").to.deep.equal(["new 1"]);
    await bad.report([...bad.held], ERROR);
    expect([isCordoned(bad), failuresInRowOf(rowOf(bad))]).to.deep.equal([true, 6]);
    await ledger.watch(1_000, ledger.workers);
    expect(bad.texts).to.deep.equal(["new 2"]);
    await bad.report([...bad.held], ERROR);
    await ledger.submit(["new 3"], { batchNumber: ++batches });
    await ledger.watch(170_000, ledger.workers);
    expect(bad.held).to.have.length(0);
    await ledger.watch(15_000, ledger.workers);
    expect(bad.texts).to.deep.equal(["new 3"]);
    await bad.report([...bad.held]);
    expect(isCordoned(bad)).to.equal(false);
    expect(topics()).to.deep.equal(["worker_cordoned", "worker_uncordoned"]);
  });

  it("is tested in each of several workers with items that nobody has failed, also behind one of a higher priority", async () => {
    const worse = await ledger.worker(3, { slots: 8 });
    await cordon();
    await fail(worse, 4);
    await succeed(good);
    await fail(worse, 1);
    expect(isCordoned(worse)).to.equal(true);
    const handedBack = await give(good, 1);
    await ledger.submit(["urgent"], { batchNumber: ++batches, priority: 1 });
    await good.handBack(handedBack);
    await ledger.submit(["new"], { batchNumber: ++batches });
    await bad.ask(8);
    await worse.ask(8);
    await ledger.watch(BACKOFF_MS, ledger.workers);
    await ledger.watch(185_000, ledger.workers);
    // The failed items come before the one that was handed back, and are put out of its way.
    expect([bad.texts, worse.texts]).to.deep.equal([["urgent"], [handedBack[0]?.text]]);
  });

  it("is not tested with an item that has only one attempt left", async () => {
    ledger = await World.start({ budgets: { maxAttempts: 1 } });
    bad = await ledger.worker(1, { slots: 8 });
    good = await ledger.worker(2, { slots: 8 });
    await cordon();
    await bad.ask(8);
    await ledger.submit(["new"], { batchNumber: ++batches });
    await ledger.watch(400_000, ledger.workers);
    expect(bad.held).to.have.length(0);
  });

  it("excuses whoever was blamed for an item, however often that worker has failed it", async () => {
    await fail(bad, 1);
    await bad.ask(1);
    await ledger.watch(63_000, ledger.workers);
    await bad.report([...bad.held], ERROR);
    expect(failuresInRowOf(rowOf(bad))).to.equal(1);
    await good.ask(1);
    await ledger.watch(3_000, ledger.workers);
    await good.report([...good.held], ERROR);
    expect([bad, good].map((worker) => failuresInRowOf(rowOf(worker)))).to.deep.equal([0, 0]);
  });

  it("is not given back for an item that somebody else was blamed for", async () => {
    const third = await ledger.worker(3, { slots: 8 });
    await fail(bad, 1);
    await good.ask(1);
    await ledger.watch(BACKOFF_MS, ledger.workers);
    await good.report([...good.held], ERROR);
    expect([bad, good].map((worker) => failuresInRowOf(rowOf(worker)))).to.deep.equal([0, 0]);
    ledger.nowMs += 1;
    await fail(good, 1);
    await third.ask(1);
    await ledger.watch(61_000, ledger.workers);
    expect(
      third.held.map(({ attempt }) => attempt),
      "what came first",
    ).to.deep.equal([3]);
    await third.report([...third.held], ERROR);
    expect([bad, good, third].map((worker) => failuresInRowOf(rowOf(worker)))).to.deep.equal([0, 1, 0]);
  });

  describe("when nobody else is left", () => {
    beforeEach(async () => {
      await cordon();
      good.state = "Gone";
      await good.beat();
      await bad.ask(8);
    });

    it("lets it try, one item at a time, and rarely", async () => {
      await ledger.watch(11_000, [bad]);
      expect(bad.held).to.have.length(1);
      await bad.report([...bad.held], ERROR);
      await ledger.watch(8_000, [bad]);
      expect(bad.held).to.have.length(0);
      await ledger.watch(3_000, [bad]);
      expect(bad.held).to.have.length(1);
    });

    it("comes back with a success", async () => {
      await ledger.watch(11_000, [bad]);
      await bad.report([...bad.held]);
      expect(isCordoned(bad)).to.equal(false);
      await ledger.watch(BACKOFF_MS, [bad]);
      expect(bad.held).to.have.length(4);
    });
  });
});
