// Results of items that nobody has any more: looked up first, and acknowledged when what they are worth is on the disk.
import { expect } from "chai";
import type { Report, SessionFrame, SessionPort } from "../../../../src/coordinator/turn/session-frame.ts";
import { CONFLICTS_PREFIX, DONE_PREFIX } from "../../../../src/storage/keys.ts";
import { World } from "../../../support/world.ts";
import { ERROR, reportOf } from "../../../support/world-worker.ts";
import type { HeldItem, WorldWorker } from "../../../support/world-worker.ts";

/** From the beat that was due to the failure, and a scan more. */
const FAILURE_MS = 6_250;

describe("a batch of results with a late one", () => {
  let ledger: World;
  let late: WorldWorker;
  let others: WorldWorker[];

  beforeEach(async () => {
    ledger = await World.start();
    late = await ledger.worker(1, { slots: 4 });
    others = [await ledger.worker(2), await ledger.worker(3)];
  });

  /** The items are taken from the worker, and pending; it is back and has what it made of them. */
  async function tooLate(texts: readonly string[]): Promise<HeldItem[]> {
    await ledger.submit(texts);
    await late.ask(texts.length);
    const items = [...late.held];
    late.held.length = 0;
    await ledger.watch(FAILURE_MS, others);
    await late.rejoin();
    return items;
  }

  const done = (): number => ledger.state.ledger.tally.count("done");

  it("is not acknowledged before that is recorded: nothing is promised to a coordinator that dies (C10)", async () => {
    const items = await tooLate(["a"]);
    await late.send(items.map((item) => reportOf(item)));
    expect(late.acknowledged).to.equal(undefined);
    await ledger.lead();
    await ledger.settle();
    expect([done(), late.acknowledged]).to.deep.equal([0, undefined]);
    await late.rejoin();
    await late.send(items.map((item) => reportOf(item)));
    await ledger.settle();
    expect([done(), late.acknowledged]).to.deep.equal([1, 2]);
    expect(ledger.written.durability).to.equal("sync");
  });

  it("is acknowledged once, when the last of its results is decided", async () => {
    const items = await tooLate(["a", "b"]);
    await late.send(items.map((item) => reportOf(item)));
    await ledger.read();
    const [first, second] = ledger.fed.splice(0) as [(typeof ledger.fed)[0], (typeof ledger.fed)[0]];
    await ledger.step(second);
    expect([done(), late.acknowledged]).to.deep.equal([1, undefined]);
    await ledger.step(first);
    expect([done(), late.acknowledged]).to.deep.equal([2, 1]);
  });

  it("has the batches behind it wait: an acknowledgement is of all up to it", async () => {
    const [item] = await tooLate(["a"]);
    await ledger.submit(["b"], { batchNumber: 2, priority: 1 });
    await late.ask(1);
    await late.send(item === undefined ? [] : [reportOf(item)]);
    await late.send(late.held.map((one) => reportOf(one)));
    expect([done(), late.acknowledged]).to.deep.equal([1, undefined]);
    await ledger.settle();
    const frames = late.framesOf("resultsAcknowledged");
    expect(frames).to.deep.equal([{ kind: "resultsAcknowledged", number: 2 }]);
  });

  it("is acknowledged when it comes twice, and counted as stale the second time", async () => {
    const [item] = await tooLate(["a"]);
    for (let time = 1; time <= 2; time++) await late.send(item === undefined ? [] : [reportOf(item)]);
    await ledger.settle();
    expect([done(), late.acknowledged]).to.deep.equal([1, 2]);
    expect(await ledger.view()).to.include({ staleReports: 1, conflicts: 0 });
  });

  it("is recorded and not acknowledged when its stream ends meanwhile", async () => {
    const items = await tooLate(["a"]);
    await late.send(items.map((item) => reportOf(item)));
    await ledger.step({ kind: "sessionEnded", workerId: late.id, port: late.port });
    await ledger.settle();
    expect([done(), late.acknowledged]).to.deep.equal([1, undefined]);
  });

  it("is not acknowledged on a later stream, where the numbers are others", async () => {
    const items = await tooLate(["a"]);
    await late.send(items.map((item) => reportOf(item)));
    await late.hello();
    expect([done(), late.acknowledged]).to.deep.equal([1, undefined]);
  });

  it("is counted until it is decided, also when its stream ends meanwhile (C8)", async () => {
    const [item] = await tooLate(["a"]);
    const from = { workerId: late.id, port: late.port };
    const reports = item === undefined ? [] : [reportOf(item)];
    let settled = 0;
    await ledger.step({ kind: "results", number: 1, reports, settled: () => settled++, ...from });
    await ledger.step({ kind: "sessionEnded", ...from });
    expect([done(), settled]).to.deep.equal([0, 0]);
    await ledger.settle();
    expect([done(), settled]).to.deep.equal([1, 1]);
  });

  it("of another version than the recorded one is stale, and contradicts nothing", async () => {
    const [item] = await tooLate(["a"]);
    const [other] = others as [WorldWorker];
    const says = (text: string, pluginVersion: string): Partial<Report> => ({
      outcome: { kind: "success", output: Buffer.from(text), digest: Buffer.alloc(32, text) },
      execution: { pluginVersion, startedAtWallMs: 0, durationMs: 0 },
    });
    await other.ask(1);
    await other.send(other.held.map((held) => ({ ...reportOf(held), ...says("new", "2") })));
    if (item === undefined) throw new Error("it was held");
    await late.send([{ ...reportOf(item), ...says("old", "1") }]);
    await ledger.settle();
    expect(await ledger.view()).to.include({ done: 1, staleReports: 1, conflicts: 0 });
    expect(await ledger.countUnder(CONFLICTS_PREFIX)).to.equal(0);
    await late.send([{ ...reportOf(item), ...says("other", "2") }]);
    await ledger.settle();
    expect(await ledger.view(), "the same version contradicts itself").to.include({ conflicts: 1 });
  });

  it("is answered like that by a call, too", async () => {
    const items = await tooLate(["a"]);
    const frames: SessionFrame[] = [];
    const port: SessionPort = { send: (frame) => void frames.push(frame), end: () => undefined };
    const reports = items.map((item) => reportOf(item));
    await ledger.step({ kind: "report", workerId: late.id, port, reports });
    expect(frames).to.deep.equal([]);
    await ledger.settle();
    expect([done(), frames]).to.deep.equal([1, [{ kind: "resultsAcknowledged", number: 0 }]]);
  });

  it("has no item looked up for a late failure", async () => {
    const items = await tooLate(["a"]);
    await late.send(items.map((item) => reportOf(item, ERROR)));
    expect(late.acknowledged).to.equal(1);
    expect(ledger.state.ledger.lookups.size).to.equal(0);
  });

  it("is decided while others wake from their waits", async () => {
    const [item] = await tooLate(["a"]);
    const [other] = others as [WorldWorker];
    const texts = Array.from({ length: 20 }, (_, at) => `x${at}`);
    await ledger.submit(texts, { batchNumber: 2, priority: 1 });
    await other.ask(20);
    await other.report([...other.held], ERROR);
    await late.send(item === undefined ? [] : [reportOf(item)]);
    await ledger.read();
    // One of them is woken between the question and its answer.
    await ledger.step(ledger.untilNextWakes(), ...ledger.fed.splice(0));
    expect([done(), late.acknowledged]).to.deep.equal([1, 1]);
    expect(ledger.state.ledger.tally.count("delayed")).to.be.within(1, 19);
  });

  describe("that contradicts what is recorded", () => {
    const FALSE = { kind: "success", output: Buffer.from("no"), digest: new Uint8Array(32).fill(9) } as const;
    const evidence = () => ledger.rowsUnder(CONFLICTS_PREFIX);

    /** Somebody else has done by now what the worker lost. */
    async function done(): Promise<HeldItem> {
      const [item] = await tooLate(["a"]);
      const [other] = others as [WorldWorker];
      await other.ask(1);
      await other.report([...other.held]);
      if (item === undefined) throw new Error("it has one");
      return item;
    }

    it("is evidence of an attempt that ended long ago, and of none that the worker did not have", async () => {
      const item = await done();
      const [, stranger] = others as [WorldWorker, WorldWorker];
      await stranger.send([{ ...reportOf(item, FALSE), incarnation: stranger.incarnation }]);
      await late.send([reportOf({ ...item, attempt: 7 }, FALSE)]);
      await ledger.settle();
      expect(await evidence()).to.have.length(0);
      await late.send([reportOf(item, FALSE)]);
      await ledger.settle();
      expect(await evidence()).to.have.length(1);
      expect(await ledger.view()).to.include({ done: 1, conflicts: 3 });
    });

    it("is no second piece of evidence where an earlier version has left one", async () => {
      const item = await done();
      const [row] = await ledger.rowsUnder(DONE_PREFIX);
      const key = `${CONFLICTS_PREFIX}${row?.key.slice(DONE_PREFIX.length) ?? ""}/1`;
      const puts = [{ key, value: new Uint8Array(8) }];
      await ledger.store.commit({ puts, deletes: [], expect: [], durability: "flush" });
      await late.send([reportOf(item, FALSE)]);
      await ledger.settle();
      expect((await evidence()).map((found) => found.key)).to.deep.equal([key]);
      expect(await ledger.view()).to.include({ conflicts: 1 });
    });
  });
});
