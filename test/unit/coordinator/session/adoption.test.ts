// Items that workers still have when the coordinator's machine has lost its power and, with it, the last assignments.
import { LIMITS } from "../../../../src/config/limits.ts";
import { expect } from "chai";
import type { Input } from "../../../../src/coordinator/turn/input.ts";
import type { ReportedOutcome, SessionPort } from "../../../../src/coordinator/turn/session-frame.ts";
import { itemRecord } from "../../../../src/coordinator/ledger/records.ts";
import { decodeRecord, okOrFailure } from "../../../../src/storage/codec.ts";
import { ITEMS_PREFIX } from "../../../../src/storage/keys.ts";
import { PowerLossStore } from "../../../support/power-loss-store.ts";
import { prefixRange } from "../../../../src/storage/store.ts";
import type { Entry, ScanRange } from "../../../../src/storage/store.ts";
import { DelegatingStore } from "../../../support/delegating-store.ts";
import { texts, World } from "../../../support/world.ts";
import { claimOf, ERROR, reportOf } from "../../../support/world-worker.ts";
import type { HeldItem, WorldWorker } from "../../../support/world-worker.ts";

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
  let ledger: World;
  let one: WorldWorker;
  let two: WorldWorker;

  beforeEach(async () => {
    power = new PowerLossStore();
    ledger = await World.start({ store: power });
    one = await ledger.worker(1, { slots: 2 });
    two = await ledger.worker(2, { slots: 2 });
  });

  it("runs on under the very attempt, and is done once", async () => {
    await ledger.submit(["a", "b"]);
    await one.ask(2);
    await ledger.losePower();
    expect(ledger.state.ledger.running.size, "it is forgotten").to.equal(0);
    expect(await one.reconnect()).to.deep.equal([true, true]);
    expect(ledger.contextOf(one.held[0])).to.include({
      worker: one.id,
      attempt: 1,
      epoch: 0,
      charged: 0,
      lost: 0,
    });
    await two.reconnect();
    await two.ask(5);
    expect(two.held, "nobody else gets it").to.have.length(0);
    await one.report([...one.held]);
    expect(await ledger.view()).to.include({ done: 2, pending: 0, running: 0, staleReports: 0 });
  });

  it("is looked for at one worker after the other, however many come back at once", async () => {
    await ledger.submit(texts(60));
    for (const worker of [one, two, one, two]) await worker.ask(10);
    const store = new CountingStore(power.losePower());
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
    await ledger.losePower();
    await one.reconnect();
    await one.ask(1);
    expect(one.texts, "what came first goes first").to.deep.equal(["a", "d", "b"]);
    expect(await two.reconnect(), "one of them is somebody else's by now").to.deep.equal([false, true]);
    await two.ask(5);
    expect(two.texts).to.deep.equal(["c", "e"]);
    await one.report([...one.held]);
    await two.report([...two.held]);
    expect(await ledger.view()).to.include({ done: 5, pending: 0, running: 0 });
  });

  it("is believed for no more than a worker may have at once", async () => {
    const many = await World.start({ isChecked: false });
    const worker = await many.worker(1, { slots: 1 });
    const count = LIMITS.backlogPerWorker + 100;
    await many.submit(texts(count));
    const rows = await many.store.scan({ ...prefixRange(ITEMS_PREFIX), limit: count });
    await many.lead();
    await worker.beat();
    const verdict = await worker.hello(
      rows.map(({ key, value }) => {
        const { id } = okOrFailure("memory", decodeRecord(itemRecord, key, value));
        return { id, attempt: 1, epoch: 0, isFinished: false };
      }),
    );
    expect(verdict?.filter((keep) => keep)).to.have.length(LIMITS.backlogPerWorker + 1);
  });

  it("is dropped when it was given to somebody else before the worker was back", async () => {
    await ledger.submit(["a"]);
    await one.ask(1);
    await ledger.losePower();
    await two.reconnect();
    await two.ask(1);
    expect(two.texts).to.deep.equal(["a"]);
    expect(await one.reconnect()).to.deep.equal([false]);
  });

  it("is dropped when it is given to somebody else while its rows are looked up", async () => {
    await ledger.submit(["a"]);
    await one.ask(1);
    await ledger.losePower();
    await two.reconnect();
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
    await ledger.losePower();
    // Each newcomer makes the coordinator read pending items.
    await two.reconnect();
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
    await ledger.losePower();
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
    await ledger.losePower();
    await one.beat();
    await ledger.step(one.helloInput());
    expect(await one.reconnect()).to.deep.equal([true]);
    expect(ledger.state.ledger.lookups.size).to.equal(0);
  });

  it("is adopted where it waits to be given out again, with what it was charged", async () => {
    await ledger.submit(["a"]);
    await one.ask(1);
    await one.report([...one.held], ERROR);
    await two.ask(1);
    await ledger.watch(1_250, ledger.workers);
    expect(two.held.map(({ attempt }) => attempt)).to.deep.equal([2]);
    await ledger.losePower();
    expect(ledger.state.ledger.tally.count("delayed"), "even that it was woken is forgotten").to.equal(1);
    expect(await two.reconnect()).to.deep.equal([true]);
    expect(ledger.contextOf(two.held[0])).to.include({ attempt: 2, charged: 1, failedBy: one.id });
    await ledger.watch(61_000, ledger.workers);
    await two.report([...two.held]);
    expect(await ledger.view()).to.include({ done: 1, pending: 0, delayed: 0 });
  });

  it("stays given up when the ledger has it on record", async () => {
    await ledger.submit(["a", "b"]);
    await one.ask(1);
    const [given] = one.held;
    await one.handBack([...one.held]);
    await two.ask(1);
    await two.handBack([...two.held]);
    // A synced turn: all of it is on disk.
    await ledger.seal();
    await ledger.losePower();
    if (given !== undefined) one.held.push(given);
    expect(await one.reconnect()).to.deep.equal([false]);
    expect(await ledger.view()).to.include({ running: 0, pending: 2 });
  });

  it("is not adopted from a leadership that has not ended, nor from one that has not begun", async () => {
    await ledger.submit(["a", "b"]);
    await one.ask(1);
    const [given] = one.held;
    if (given === undefined) return expect.fail("nothing was given out");
    await ledger.losePower();
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
    await ledger.losePower();
    one.held.push(...held);
    expect(await one.reconnect()).to.deep.equal([false, false]);
    expect(await ledger.view()).to.include({ done: 1, failed: 1, running: 0, pending: 0 });
  });

  it("is lost with the worker like anything else that it has", async () => {
    await ledger.submit(["a"]);
    await one.ask(1);
    await ledger.losePower();
    await two.reconnect();
    await one.reconnect();
    await two.ask(1);
    await ledger.watch(6_250, [two]);
    expect(two.held.map(({ attempt }) => attempt)).to.deep.equal([2]);
    expect(ledger.contextOf(two.held[0])).to.include({ lost: 1 });
  });

  it("is done by the result of it, which nobody makes a second time", async () => {
    await ledger.submit(["a", "b"]);
    await one.ask(2);
    await ledger.losePower();
    await one.beat();
    const [a, b] = one.held as [HeldItem, HeldItem];
    expect(await one.hello([claimOf(a, true), claimOf(b)])).to.deep.equal([true, true]);
    await two.reconnect();
    await two.ask(2);
    expect(two.held).to.have.length(0);
    await one.report([a]);
    expect(await ledger.view()).to.include({ done: 1, running: 1, staleReports: 0 });
  });

  it("is done by the result of an earlier process of the worker, when both have lost their power", async () => {
    await ledger.submit(["a"]);
    await one.ask(1);
    await ledger.losePower();
    const [a] = one.held as [HeldItem];
    one.restart(2);
    expect(await one.rejoin([{ ...claimOf(a, true), incarnation: a.incarnation }])).to.deep.equal([true]);
    expect(ledger.contextOf(a)).to.include({ attempt: 1, incarnation: a.incarnation });
    await one.report([a]);
    expect(await ledger.view()).to.include({ done: 1, pending: 0, staleReports: 0 });
  });

  it("is not adopted by one that was given up, before it is heard: nobody would watch over it", async () => {
    const three = await ledger.worker(3);
    await ledger.submit(["a"]);
    await one.ask(1);
    await ledger.losePower();
    await ledger.watch(7_000, [two, three]);
    expect(await one.hello()).to.equal(undefined);
    expect(one.isEnded, "it beats, and tries again").to.equal(true);
    expect(ledger.state.ledger.running.size).to.equal(0);
    expect(await one.reconnect()).to.deep.equal([true]);
    expect(ledger.state.ledger.running.size).to.equal(1);
  });

  it("has its verdict while other items wake from their waits", async () => {
    await ledger.submit(texts(20, "x"));
    await two.ask(20);
    await two.report([...two.held], ERROR);
    await ledger.submit(["a"], { batchNumber: 2 });
    await one.ask(1);
    await ledger.losePower();
    await two.reconnect();
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
      worker: WorldWorker,
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
    async function back(...workers: WorldWorker[]): Promise<void> {
      await ledger.losePower();
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
      await ledger.losePower();
      expect(await ledger.view(), "what was answered is on the disk").to.include({ done: 2, pending: 1 });
    });

    it("is looked for one after the other, however many come at once", async () => {
      // The checks of the harness read the items too, beside what is looked up.
      ledger = await World.start({ store: power, isChecked: false });
      one = await ledger.worker(1, { slots: 2 });
      await ledger.submit(texts(60));
      await one.ask(40);
      const store = new CountingStore(power.losePower());
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
      await one.handBack([...one.held]);
      await ledger.submit(["b"], { batchNumber: 2 });
      await one.ask(1);
      expect(one.held.map(({ text, attempt }) => [text, attempt])).to.deep.equal([["a", 2]]);
      await back(one);
      await reportByCall(one, one.held);
      expect(await ledger.view()).to.include({ done: 1, pending: 1, staleReports: 0 });
    });

    it("is done by it when the worker states the attempt while the result is looked up", async () => {
      await ledger.submit(["a"]);
      await one.ask(1);
      await back(one);
      let answers = 0;
      const port: SessionPort = { send: () => void answers++, end: () => undefined };
      const reports = one.held.map((item) => reportOf(item));
      await ledger.step({ kind: "report", workerId: one.id, port, reports }, one.helloInput());
      await ledger.read();
      const isOfReport = ({ kind }: Input): boolean => kind === "examined";
      const [found, stated] = [ledger.fed.filter(isOfReport), ledger.fed.filter((it) => !isOfReport(it))];
      expect(found, "neither knows of the other").to.have.length(1);
      ledger.fed.length = 0;
      await ledger.step(...stated);
      expect(ledger.state.ledger.running.size, "it is taken up again").to.equal(1);
      await ledger.step(...found);
      expect(answers).to.equal(1);
      expect(await ledger.view()).to.include({ done: 1, pending: 0, running: 0, staleReports: 0 });
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
      expect(ledger.contextOf(two.held[0])).to.include({ attempt: 1, charged: 0 });
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
