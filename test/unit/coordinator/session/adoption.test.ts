// Items that workers still have when the coordinator's machine has lost its power and, with it, the last assignments.
import { expect } from "chai";
import type { Random } from "../../../../src/base/random.ts";
import { itemKeyOf } from "../../../../src/coordinator/ledger/item-id.ts";
import type { Input } from "../../../../src/coordinator/turn/input.ts";
import type { ReportedOutcome, SessionPort } from "../../../../src/coordinator/turn/session-frame.ts";
import { itemRecord } from "../../../../src/coordinator/ledger/records.ts";
import { decodeRecord, okOrFailure } from "../../../../src/storage/codec.ts";
import { ITEMS_PREFIX } from "../../../../src/storage/keys.ts";
import { PowerLossStore } from "../../../support/power-loss-store.ts";
import { prefixRange } from "../../../../src/storage/store.ts";
import type { Entry, ScanRange } from "../../../../src/storage/store.ts";
import { DelegatingStore } from "../../../support/delegating-store.ts";
import { LedgerHarness } from "../../../support/ledger-harness.ts";
import type { HeldItem, LedgerWorker } from "../../../support/ledger-worker.ts";
import { claimOf, ERROR, reportOf } from "../../../support/ledger-worker.ts";

const nothingSurvives: Random = { unit: () => 0, bytes: (count) => new Uint8Array(count) };

/** How many pages of items are being read at the same time, at most. */
class CountingStore extends DelegatingStore {
  scansAtOnce = 0;
  #scanning = 0;

  override async scan(range: ScanRange): Promise<Entry[]> {
    // The harness reads windows for its own check meanwhile; those do not end behind one item.
    const isOfItems = range.from.startsWith(ITEMS_PREFIX) && range.to.endsWith("\u0000");
    if (isOfItems) this.scansAtOnce = Math.max(this.scansAtOnce, ++this.#scanning);
    try {
      return await super.scan(range);
    } finally {
      if (isOfItems) this.#scanning--;
    }
  }
}

describe("what a worker has and the ledger has forgotten", () => {
  let power: PowerLossStore;
  let ledger: LedgerHarness;
  let one: LedgerWorker;
  let two: LedgerWorker;

  beforeEach(async () => {
    power = new PowerLossStore();
    ledger = await LedgerHarness.start({ store: power });
    one = await ledger.worker(1, { slots: 2 });
    two = await ledger.worker(2, { slots: 2 });
  });

  async function losePower(): Promise<void> {
    power = power.losePower(nothingSurvives);
    await ledger.lead(power);
  }

  /** Says what it has, and drops what it is told to drop. */
  async function reconnect(worker: LedgerWorker): Promise<readonly boolean[]> {
    await worker.beat();
    const held = [...worker.held];
    const verdict = (await worker.hello()) ?? [];
    worker.forget(held.filter((_, at) => verdict[at] !== true));
    return verdict;
  }

  const contextOf = (item: HeldItem | undefined) =>
    ledger.state.ledger.running.get(itemKeyOf(item?.id ?? new Uint8Array()))?.row.context;

  it("runs on under the very attempt, and is done once", async () => {
    await ledger.submit(["a", "b"]);
    await one.ask(2);
    await losePower();
    expect(ledger.state.ledger.running.size, "it is forgotten").to.equal(0);
    expect(await reconnect(one)).to.deep.equal([true, true]);
    expect(contextOf(one.held[0])).to.include({ worker: one.id, attempt: 1, epoch: 0, charged: 0, lost: 0 });
    await reconnect(two);
    await two.ask(5);
    expect(two.held, "nobody else gets it").to.have.length(0);
    await one.report([...one.held]);
    expect(await ledger.view()).to.include({ done: 2, pending: 0, running: 0, staleReports: 0 });
  });

  it("is looked for at one worker after the other, however many come back at once", async () => {
    await ledger.submit(Array.from({ length: 60 }, (_, at) => `item ${at}`));
    for (const worker of [one, two, one, two]) await worker.ask(10);
    power = power.losePower(nothingSurvives);
    const store = new CountingStore(power);
    await ledger.lead(store);
    await one.beat();
    await two.beat();
    await ledger.step(one.helloInput(), two.helloInput());
    await ledger.settle();
    for (const worker of [one, two])
      expect(worker.frames.find(({ kind }) => kind === "verdict")).to.deep.include({
        keep: Array<boolean>(20).fill(true),
      });
    expect(store.scansAtOnce).to.equal(1);
  });

  it("leaves what it passes over to others, in order", async () => {
    await ledger.submit(["a", "b", "c", "d", "e"]);
    await one.ask(1);
    await two.ask(2);
    await one.ask(1);
    expect([one.texts, two.texts]).to.deep.equal([
      ["a", "d"],
      ["b", "c"],
    ]);
    await losePower();
    await reconnect(one);
    await one.ask(1);
    expect(one.texts, "what came first goes first").to.deep.equal(["a", "d", "b"]);
    expect(await reconnect(two), "one of them is somebody else's by now").to.deep.equal([false, true]);
    await two.ask(5);
    expect(two.texts).to.deep.equal(["c", "e"]);
    await one.report([...one.held]);
    await two.report([...two.held]);
    expect(await ledger.view()).to.include({ done: 5, pending: 0, running: 0 });
  });

  it("is believed for no more than a worker may have at once", async () => {
    const many = await LedgerHarness.start({ isChecked: false });
    const worker = await many.worker(1, { slots: 1 });
    await many.submit(Array.from({ length: 1_100 }, (_, at) => `item ${at}`));
    const rows = await many.store.scan({ ...prefixRange(ITEMS_PREFIX), limit: 1_100 });
    await many.lead();
    await worker.beat();
    const verdict = await worker.hello(
      rows.map(({ key, value }) => {
        const { id } = okOrFailure("memory", decodeRecord(itemRecord, key, value));
        return { id, attempt: 1, epoch: 0, isFinished: false };
      }),
    );
    expect(verdict?.filter((keep) => keep)).to.have.length(1_025);
  });

  it("is dropped when it was given to somebody else before the worker was back", async () => {
    await ledger.submit(["a"]);
    await one.ask(1);
    await losePower();
    await reconnect(two);
    await two.ask(1);
    expect(two.texts).to.deep.equal(["a"]);
    expect(await reconnect(one)).to.deep.equal([false]);
  });

  it("is dropped when it is given to somebody else while its rows are looked up", async () => {
    await ledger.submit(["a"]);
    await one.ask(1);
    await losePower();
    await reconnect(two);
    await one.beat();
    await ledger.step(one.helloInput());
    await ledger.read();
    await ledger.step(two.askInput(1));
    await ledger.settle();
    const verdict = one.frames.findLast(({ kind }) => kind === "verdict");
    expect(verdict).to.deep.equal({ kind: "verdict", keep: [false] });
    expect(two.texts).to.deep.equal(["a"]);
  });

  it("has its verdict wait for the rows, and nothing is given to the worker before", async () => {
    await ledger.submit(["a", "b"]);
    await one.ask(1);
    await losePower();
    // Each newcomer makes the coordinator read pending items.
    await reconnect(two);
    await one.beat();
    await ledger.step(one.helloInput(), one.askInput(1));
    expect(one.frames).to.deep.equal([]);
    expect(one.texts).to.deep.equal(["a"]);
    await ledger.settle();
    expect(one.frames).to.deep.equal([{ kind: "verdict", keep: [true] }]);
    expect(one.texts).to.deep.equal(["a", "b"]);
  });

  it("is counted until its rows are looked up, also when its stream ends meanwhile (C8)", async () => {
    await ledger.submit(["a"]);
    await one.ask(1);
    await losePower();
    await one.beat();
    let settled = 0;
    const hello = { ...one.helloInput(), settled: () => settled++ } as Input;
    await ledger.step(hello, { kind: "sessionEnded", workerId: one.id, port: one.port });
    expect(settled).to.equal(0);
    await ledger.settle();
    expect(settled).to.equal(1);
  });

  it("is not asked about again by a worker that opens another session meanwhile", async () => {
    await ledger.submit(["a"]);
    await one.ask(1);
    await losePower();
    await one.beat();
    await ledger.step(one.helloInput());
    expect(await reconnect(one)).to.deep.equal([true]);
    expect(ledger.state.ledger.lookups.size).to.equal(0);
  });

  it("is adopted where it waits to be given out again, with what it was charged", async () => {
    await ledger.submit(["a"]);
    await one.ask(1);
    await one.report([...one.held], ERROR);
    await two.ask(1);
    await ledger.watch(1_250, ledger.workers);
    expect(two.held.map(({ attempt }) => attempt)).to.deep.equal([2]);
    await losePower();
    expect(ledger.state.ledger.tally.count("delayed"), "even that it was woken is forgotten").to.equal(1);
    expect(await reconnect(two)).to.deep.equal([true]);
    expect(contextOf(two.held[0])).to.include({ attempt: 2, charged: 1, failedBy: one.id });
    await ledger.watch(61_000, ledger.workers);
    await two.report([...two.held]);
    expect(await ledger.view()).to.include({ done: 1, pending: 0, delayed: 0 });
  });

  it("stays given up when the ledger has it on record", async () => {
    await ledger.submit(["a", "b"]);
    await one.ask(1);
    const [given] = one.held;
    await one.release([...one.held]);
    await two.ask(1);
    await two.release([...two.held]);
    // A synced turn: all of it is on disk.
    await ledger.seal();
    await losePower();
    if (given !== undefined) one.held.push(given);
    expect(await reconnect(one)).to.deep.equal([false]);
    expect(await ledger.view()).to.include({ running: 0, pending: 2 });
  });

  it("is not adopted from a leadership that has not ended, nor from one that has not begun", async () => {
    await ledger.submit(["a", "b"]);
    await one.ask(1);
    const [given] = one.held;
    if (given === undefined) return;
    await losePower();
    await one.beat();
    for (const epoch of [1, 7])
      expect(await one.hello([{ ...claimOf(given), epoch }])).to.deep.equal([false]);
    expect(await one.hello([{ ...claimOf(given), attempt: 2 ** 32 - 1 }])).to.deep.equal([false]);
    expect(await one.hello([{ ...claimOf(given), id: Buffer.alloc(32, 9) }])).to.deep.equal([false]);
    expect(await ledger.view()).to.include({ running: 0, pending: 2 });
  });

  it("is not adopted once it is done or has failed", async () => {
    await ledger.submit(["a", "b"]);
    await one.ask(2);
    const held = [...one.held];
    await one.report(held.slice(0, 1));
    await one.report(held.slice(1), { kind: "too_large", message: "" });
    await losePower();
    one.held.push(...held);
    expect(await reconnect(one)).to.deep.equal([false, false]);
    expect(await ledger.view()).to.include({ done: 1, failed: 1, running: 0, pending: 0 });
  });

  it("is lost with the worker like anything else that it has", async () => {
    await ledger.submit(["a"]);
    await one.ask(1);
    await losePower();
    await reconnect(two);
    await reconnect(one);
    await two.ask(1);
    await ledger.watch(6_250, [two]);
    expect(two.held.map(({ attempt }) => attempt)).to.deep.equal([2]);
    expect(contextOf(two.held[0])).to.include({ lost: 1 });
  });

  it("is done by the result of it, which nobody makes a second time", async () => {
    await ledger.submit(["a", "b"]);
    await one.ask(2);
    await losePower();
    await one.beat();
    const [a, b] = one.held as [HeldItem, HeldItem];
    expect(await one.hello([claimOf(a, true), claimOf(b)])).to.deep.equal([true, true]);
    await reconnect(two);
    await two.ask(2);
    expect(two.held).to.have.length(0);
    await one.report([a]);
    expect(await ledger.view()).to.include({ done: 1, running: 1, staleReports: 0 });
  });

  it("is done by the result of an earlier process of the worker, when both have lost their power", async () => {
    await ledger.submit(["a"]);
    await one.ask(1);
    await losePower();
    const [a] = one.held as [HeldItem];
    one.restart(2);
    await one.beat();
    expect(await one.hello([{ ...claimOf(a, true), incarnation: a.incarnation }])).to.deep.equal([true]);
    expect(contextOf(a)).to.include({ attempt: 1, incarnation: a.incarnation });
    await one.report([a]);
    expect(await ledger.view()).to.include({ done: 1, pending: 0, staleReports: 0 });
  });

  it("is not adopted by one that was given up, before it is heard: nobody would watch over it", async () => {
    const three = await ledger.worker(3);
    await ledger.submit(["a"]);
    await one.ask(1);
    await losePower();
    await ledger.watch(7_000, [two, three]);
    expect(await one.hello()).to.equal(undefined);
    expect(one.isEnded, "it beats, and tries again").to.equal(true);
    expect(ledger.state.ledger.running.size).to.equal(0);
    expect(await reconnect(one)).to.deep.equal([true]);
    expect(ledger.state.ledger.running.size).to.equal(1);
  });

  it("has its verdict while other items wake from their waits", async () => {
    const texts = Array.from({ length: 20 }, (_, at) => `x${at}`);
    await ledger.submit(texts);
    await two.ask(20);
    await two.report([...two.held], ERROR);
    await ledger.submit(["a"], { batchNumber: 2 });
    await one.ask(1);
    await losePower();
    await reconnect(two);
    await one.beat();
    await ledger.step(one.helloInput());
    await ledger.read();
    await ledger.step(ledger.untilNextWakes(), ...ledger.fed.splice(0));
    expect(one.frames).to.deep.equal([{ kind: "verdict", keep: [true] }]);
    expect(ledger.state.ledger.tally.count("delayed"), "not all wait any more").to.be.within(1, 19);
  });

  describe("is reported by a call before its worker has stated anything, and", () => {
    /** Resolves with how often the call was answered. */
    async function reportByCall(
      worker: LedgerWorker,
      items: readonly HeldItem[],
      outcome?: ReportedOutcome,
    ): Promise<number> {
      let answers = 0;
      const port: SessionPort = {
        send: () => void answers++,
        end: () => expect.fail("the worker is known"),
      };
      const reports = items.map((item) => reportOf(item, outcome));
      await ledger.step({ kind: "report", workerId: worker.id, port, reports });
      await ledger.settle();
      return answers;
    }

    /** The power is lost, and the worker has said no more than that it is there. */
    async function back(...workers: LedgerWorker[]): Promise<void> {
      await losePower();
      for (const worker of workers) await worker.beat();
    }

    it("is done by it, whoever comes first", async () => {
      await ledger.submit(["a", "b", "c"]);
      await one.ask(1);
      await two.ask(1);
      await back(one, two);
      expect(await reportByCall(two, two.held)).to.equal(1);
      expect(await ledger.view()).to.include({ done: 1, pending: 2, staleReports: 0 });
      expect(await reportByCall(one, one.held), "it was passed over").to.equal(1);
      expect(await ledger.view()).to.include({ done: 2, pending: 1, running: 0, staleReports: 0 });
      await losePower();
      expect(await ledger.view(), "what was answered is on the disk").to.include({ done: 2, pending: 1 });
    });

    it("is looked for one after the other, however many come at once", async () => {
      // The checks of the harness read the items too, beside what is looked up.
      ledger = await LedgerHarness.start({ store: power, isChecked: false });
      one = await ledger.worker(1, { slots: 2 });
      await ledger.submit(Array.from({ length: 60 }, (_, at) => `item ${at}`));
      await one.ask(40);
      power = power.losePower(nothingSurvives);
      const store = new CountingStore(power);
      await ledger.lead(store);
      await one.beat();
      await reportByCall(one, one.held);
      expect(await ledger.view()).to.include({ done: 40, pending: 20, staleReports: 0 });
      expect(store.scansAtOnce, "each may read the payloads of many").to.equal(1);
    });

    it("is done, all of it, when several are reported together", async () => {
      await ledger.submit(["a", "b", "c", "d"]);
      await one.ask(1);
      await two.ask(1);
      await one.ask(2);
      await back(one);
      await reportByCall(one, [...one.held].reverse());
      expect(await ledger.view()).to.include({ done: 3, pending: 1, staleReports: 0 });
      one.forget([...one.held]);
      await one.hello();
      await one.ask(1);
      expect(one.texts, "what was passed over waits for whoever comes").to.deep.equal(["b"]);
    });

    it("is done under a second attempt, of which nothing is on record", async () => {
      await ledger.submit(["a"]);
      await one.ask(1);
      await one.release([...one.held]);
      await ledger.submit(["b"], { batchNumber: 2 });
      await one.ask(1);
      expect(one.held.map(({ text, attempt }) => [text, attempt])).to.deep.equal([["a", 2]]);
      await back(one);
      await reportByCall(one, one.held);
      expect(await ledger.view()).to.include({ done: 1, pending: 1, staleReports: 0 });
    });

    it("is not, when somebody else has it by now", async () => {
      await ledger.submit(["a"]);
      await one.ask(1);
      await back(one, two);
      await two.hello();
      await two.ask(1);
      expect(await reportByCall(one, one.held)).to.equal(1);
      expect(await ledger.view()).to.include({ done: 0, running: 1, staleReports: 1 });
    });

    it("is not charged: a failure that nobody waits for is none", async () => {
      await ledger.submit(["a"]);
      await one.ask(1);
      await back(one, two);
      await reportByCall(one, one.held, ERROR);
      expect(await ledger.view()).to.include({ pending: 1, failed: 0, staleReports: 1 });
      await two.hello();
      await two.ask(1);
      expect(contextOf(two.held[0])).to.include({ attempt: 1, charged: 0 });
    });

    it("is not believed of what this leader would know of", async () => {
      await ledger.submit(["a"]);
      await one.ask(1);
      await back(one);
      await reportByCall(
        one,
        one.held.map((item) => ({ ...item, epoch: ledger.state.epoch })),
      );
      expect(await ledger.view()).to.include({ done: 0, pending: 1, staleReports: 1 });
    });

    it("is nothing to a run that was cancelled", async () => {
      await ledger.submit(["a"]);
      await one.ask(1);
      await back(one);
      await ledger.step({ kind: "cancel", answer: () => undefined });
      await reportByCall(one, one.held);
      expect(await ledger.view()).to.include({ done: 0, pending: 1, staleReports: 1 });
    });
  });
});
