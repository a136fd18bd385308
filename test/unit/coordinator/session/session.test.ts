import { expect } from "chai";
import { itemIdOf } from "../../../../src/coordinator/ledger/place.ts";
import type { ReportedOutcome } from "../../../../src/coordinator/turn/session-frame.ts";
import {
  COMPLETIONS_PREFIX,
  CONFLICTS_PREFIX,
  DELAYED_PREFIX,
  DONE_PREFIX,
  DUE_PREFIX,
  FAILED_PREFIX,
  RETURNED_PREFIX,
  RUNNING_PREFIX,
} from "../../../../src/storage/keys.ts";
import { TASK_DIGEST, World } from "../../../support/world.ts";
import {
  claimOf,
  ERROR,
  incarnationId,
  reportOf,
  successOf,
  workerId,
} from "../../../support/world-worker.ts";
import type { HeldItem, WorldWorker } from "../../../support/world-worker.ts";

/** From the beat that was due to the failure, and a scan more. */
const FAILURE_MS = 6_250;
/** Until it is known that a worker which has restarted was the only one, and a scan more. */
const RESTART_MS = 5_500;
/** Longer than any backoff. */
const BACKOFF_MS = 61_000;

describe("a worker's session", () => {
  let ledger: World;
  let worker: WorldWorker;
  let other: WorldWorker;

  beforeEach(async () => {
    ledger = await World.start();
    worker = await ledger.worker(1, { slots: 2 });
    other = await ledger.worker(2, { slots: 2 });
  });

  const numbers = (): Record<string, number> => {
    const { tally } = ledger.state.ledger;
    const [done, failed] = [tally.count("done"), tally.count("failed")];
    return { pending: tally.pending, running: tally.count("running"), done, failed };
  };

  /** Submits one item, and has the worker hold it. */
  async function held(text = "a"): Promise<HeldItem> {
    await ledger.submit([text]);
    await worker.ask(1);
    return only(worker);
  }

  function only({ held: items }: WorldWorker): HeldItem {
    const [item] = items;
    expect(items).to.have.length(1);
    if (item === undefined) throw new Error("nothing is held");
    return item;
  }

  describe("reports results, which", () => {
    it("are recorded once, on stable storage before they are acknowledged", async () => {
      const item = await held();
      await worker.send([reportOf(item)]);
      expect(ledger.written.durability).to.equal("sync");
      expect(worker.acknowledged).to.equal(1);
      expect(numbers()).to.deep.equal({ pending: 0, running: 0, done: 1, failed: 0 });
      expect([await ledger.countUnder(DONE_PREFIX), await ledger.countUnder(RUNNING_PREFIX)]).to.deep.equal([
        1, 0,
      ]);
    });

    it("are acknowledged again and written once when they come again", async () => {
      const item = await held();
      await worker.send([reportOf(item)]);
      const [before] = await ledger.rowsUnder(DONE_PREFIX);
      ledger.pass(5);
      await worker.send([reportOf(item)]);
      await worker.send([reportOf(item), reportOf(item)]);
      await ledger.settle();
      expect(worker.acknowledged).to.equal(3);
      // A store that has lost them does not take even that, so the worker keeps what it has.
      expect(ledger.written).to.deep.include({ puts: [], deletes: [], durability: "sync" });
      expect(await ledger.rowsUnder(DONE_PREFIX)).to.deep.equal([before]);
      expect(await ledger.countUnder(COMPLETIONS_PREFIX)).to.equal(1);
    });

    it("that are charged are on stable storage too before they are acknowledged", async () => {
      await worker.send([reportOf(await held(), ERROR)]);
      expect(ledger.written.durability).to.equal("sync");
    });

    it("change nothing when another attempt, process, leadership or worker is named", async () => {
      const item = await held();
      await worker.send([
        reportOf({ ...item, attempt: item.attempt + 1 }),
        reportOf({ ...item, attempt: item.attempt - 1 }),
        reportOf({ ...item, epoch: item.epoch + 1 }),
        reportOf({ ...item, incarnation: incarnationId(9) }),
        reportOf({ ...item, attempt: 0 }, ERROR),
      ]);
      await other.send([reportOf(item)]);
      expect(numbers()).to.deep.equal({ pending: 0, running: 1, done: 0, failed: 0 });
      expect((await ledger.view()).staleReports).to.equal(6);
      expect([worker.acknowledged, other.acknowledged]).to.deep.equal([1, 1]);
    });

    it("are of nothing when the item does not exist", async () => {
      const item = await held();
      await worker.send([reportOf({ ...item, id: Buffer.alloc(32, 9) })]);
      expect(numbers()).to.include({ running: 1, done: 0 });
    });
  });

  describe("reports outcomes that are charged:", () => {
    for (const kind of ["error", "timeout", "crash"] as const) {
      it(`${kind} waits, longer than nothing and no longer than the backoff`, async () => {
        const item = await held();
        await worker.report([item], { kind, message: "why" });
        expect(await ledger.countUnder(DELAYED_PREFIX)).to.equal(1);
        await other.ask(1);
        expect(other.held).to.have.length(0);
        await ledger.watch(1_250, [worker, other]);
        expect(only(other).attempt).to.equal(2);
        expect([await ledger.countUnder(DELAYED_PREFIX), await ledger.countUnder(DUE_PREFIX)]).to.deep.equal([
          0, 0,
        ]);
      });
    }

    it("fails at the last attempt, with its class and message", async () => {
      await held();
      for (let attempt = 1; attempt <= 3; attempt++) {
        const [holder, next] = attempt % 2 === 1 ? [worker, other] : [other, worker];
        expect(only(holder).attempt).to.equal(attempt);
        await holder.report(holder.held.slice(0, 1), ERROR);
        await next.ask(1);
        await ledger.watch(BACKOFF_MS / 8, [worker, other]);
      }
      expect(numbers()).to.deep.equal({ pending: 0, running: 0, done: 0, failed: 1 });
      expect(ledger.written.durability).to.equal("flush");
      expect(await ledger.countUnder(FAILED_PREFIX)).to.equal(1);
    });

    it("the wait is durable, and by the wall clock", async () => {
      const item = await held();
      await worker.report([item], ERROR);
      await ledger.lead();
      await other.rejoin();
      await other.ask(1);
      await ledger.settle();
      expect(other.held, "a restart does not cut it short").to.have.length(0);
      ledger.pass(BACKOFF_MS);
      await ledger.step({ kind: "scan" });
      await ledger.settle();
      expect(only(other).attempt).to.equal(2);
    });

    it("waits one after the other, each for its own time", async () => {
      await ledger.submit(["a", "b", "c", "d"]);
      await worker.ask(4);
      await worker.report([...worker.held], ERROR);
      await other.ask(4);
      const counts: number[] = [];
      for (let step = 0; step < 5; step++) {
        await ledger.watch(250, [worker, other]);
        counts.push(other.held.length);
      }
      expect(counts.at(-1)).to.equal(4);
      expect(new Set(counts).size).to.be.above(2);
    });

    it("error fails at once when another attempt cannot help", async () => {
      await worker.report([await held()], { kind: "error", message: "400 Bad Request", isPermanent: true });
      expect(numbers()).to.include({ failed: 1, pending: 0 });
      expect(ledger.state.ledger.tally.failedByClass).to.include({ error: 1, too_large: 0 });
    });

    it("too_large fails at once", async () => {
      await worker.report([await held()], { kind: "too_large", message: "2 MiB" });
      expect(numbers()).to.include({ failed: 1, pending: 0 });
    });
  });

  describe("reports outcomes that are not charged:", () => {
    for (const kind of ["preempted", "stolen", "fenced", "cancelled"] as const) {
      it(`${kind} is pending at once, however often`, async () => {
        await held();
        const outcome: ReportedOutcome = { kind };
        for (let attempt = 1; attempt <= 7; attempt++) {
          const item = only(worker);
          expect(item.attempt).to.equal(attempt);
          await worker.report([item], outcome);
          await worker.ask(1);
        }
        expect(ledger.contextOf(only(worker))).to.include({ attempt: 8, charged: 0, lost: 0 });
      });
    }

    it("an item that is handed back is somebody else's at once", async () => {
      const item = await held();
      await other.ask(1);
      await worker.handBack([item]);
      expect(only(other)).to.deep.include({ text: "a", attempt: 2 });
      await worker.send([reportOf(item, ERROR)]);
      expect(numbers(), "a stale failure is never charged").to.include({ running: 1 });
    });

    it("an item that is not held cannot be handed back, nor another attempt of it", async () => {
      const item = await held();
      await other.handBack([item]);
      await worker.handBack([{ ...item, attempt: 2 }]);
      expect(numbers()).to.include({ running: 1, pending: 0 });
    });
  });

  describe("reports a success too late, which", () => {
    it("is taken while the item is pending again and with nobody", async () => {
      const item = await held();
      await worker.handBack([item]);
      await worker.report([item]);
      expect(numbers()).to.deep.equal({ pending: 0, running: 0, done: 1, failed: 0 });
      expect(await ledger.countUnder(RETURNED_PREFIX)).to.equal(0);
      await ledger.submit(["b"], { batchNumber: 2 });
      await other.ask(2);
      expect(other.texts).to.deep.equal(["b"]);
      expect((await ledger.view()).staleReports).to.equal(0);
    });

    it("is taken of any attempt that there was, whoever had it", async () => {
      const item = await held();
      await worker.handBack([item]);
      await other.ask(1);
      await other.handBack([...other.held]);
      await worker.report([item]);
      expect(numbers()).to.include({ done: 1 });
    });

    it("is taken while the item waits after a failure, and then it does not wait any more", async () => {
      const item = await held();
      await worker.handBack([item]);
      await other.ask(1);
      await other.report([...other.held], ERROR);
      expect([await ledger.countUnder(DELAYED_PREFIX), await ledger.countUnder(DUE_PREFIX)]).to.deep.equal([
        1, 1,
      ]);
      await worker.report([item]);
      expect(numbers()).to.deep.equal({ pending: 0, running: 0, done: 1, failed: 0 });
      expect([await ledger.countUnder(DELAYED_PREFIX), await ledger.countUnder(DUE_PREFIX)]).to.deep.equal([
        0, 0,
      ]);
      await other.ask(1);
      await ledger.watch(BACKOFF_MS, [worker, other]);
      expect(other.held, "nobody is woken").to.have.length(0);
      expect((await ledger.view()).staleReports).to.equal(0);
    });

    it("is taken of an item that has waited long enough while its rows were looked up", async () => {
      const item = await held();
      await worker.handBack([item]);
      await other.ask(1);
      await other.report([...other.held], ERROR);
      await worker.send([reportOf(item)]);
      await ledger.read();
      const answers = ledger.fed.splice(0);
      ledger.pass(BACKOFF_MS);
      await ledger.step({ kind: "scan" });
      expect(await ledger.countUnder(RETURNED_PREFIX), "woken before the answer is there").to.equal(1);
      await ledger.step(...answers);
      await ledger.settle();
      expect(numbers()).to.deep.equal({ pending: 0, running: 0, done: 1, failed: 0 });
      expect(await ledger.countUnder(RETURNED_PREFIX)).to.equal(0);
    });

    it("is dropped when no attempt of that number was ever given out", async () => {
      const item = await held();
      await worker.handBack([item]);
      await worker.report([{ ...item, attempt: 2 }]);
      await worker.report([{ ...item, attempt: 0 }]);
      expect(numbers()).to.include({ pending: 1, done: 0 });
      expect((await ledger.view()).staleReports).to.equal(2);
    });

    it("is dropped when the item was never given out, or does not exist", async () => {
      const item = await held();
      await ledger.submit(["b"], { batchNumber: 2 });
      const content = { taskDigest: TASK_DIGEST, payload: Buffer.from("b"), key: "", sampleIndex: 0 };
      const waiting = itemIdOf(content);
      await worker.report([
        { ...item, id: waiting },
        { ...item, id: Buffer.alloc(32, 8) },
      ]);
      expect(numbers()).to.include({ pending: 1, running: 1 });
      expect((await ledger.view()).staleReports).to.equal(2);
    });

    it("is dropped when the item is given out before its rows are looked up", async () => {
      const item = await held();
      await worker.handBack([item]);
      await worker.send([reportOf(item)]);
      await ledger.read();
      await ledger.step(other.askInput(1));
      await ledger.settle();
      expect(only(other).attempt).to.equal(2);
      expect(numbers()).to.include({ running: 1, done: 0 });
      await other.handBack([...other.held]);
      expect(numbers(), "what was looked up before is not used after").to.include({ pending: 1, done: 0 });
    });

    it("is taken once when it comes twice", async () => {
      const item = await held();
      await worker.handBack([item]);
      await worker.send([reportOf(item), reportOf(item)]);
      await ledger.settle();
      expect(numbers()).to.include({ done: 1, pending: 0 });
      expect(await ledger.countUnder(COMPLETIONS_PREFIX)).to.equal(1);
    });

    it("is kept as evidence when it contradicts the result, which stays", async () => {
      const item = await held();
      await worker.send([reportOf(item)]);
      const [before] = await ledger.rowsUnder(DONE_PREFIX);
      await worker.report([item], successOf({ ...item, text: "something else" }));
      const [evidence] = await ledger.rowsUnder(CONFLICTS_PREFIX);
      expect(evidence?.key).to.equal(`${CONFLICTS_PREFIX}${before?.key.slice(DONE_PREFIX.length) ?? ""}`);
      expect(await ledger.rowsUnder(DONE_PREFIX)).to.deep.equal([before]);
      expect(ledger.state.counters).to.include({ staleReports: 0, conflicts: 1 });
      expect(ledger.log.lines.filter(({ level }) => level === "warn")).to.have.length(1);
    });

    it("is no evidence when it is the same result again", async () => {
      const item = await held();
      await worker.report([item]);
      await worker.report([item]);
      expect(await ledger.countUnder(CONFLICTS_PREFIX)).to.equal(0);
    });
  });

  describe("says what it holds, and", () => {
    it("keeps what is its own", async () => {
      await ledger.submit(["a", "b"]);
      await worker.ask(2);
      expect(await worker.hello()).to.deep.equal([true, true]);
      expect(numbers()).to.include({ running: 2 });
      await worker.report([...worker.held]);
      expect(numbers()).to.include({ done: 2 });
    });

    it("keeps it through a restart of the coordinator, which requeues nothing", async () => {
      await ledger.submit(["a", "b"]);
      await worker.ask(2);
      await other.ask(2);
      await ledger.lead();
      await other.rejoin();
      await other.ask(2);
      expect(other.held, "it belongs to somebody who has not been heard yet").to.have.length(0);
      expect(await worker.rejoin()).to.deep.equal([true, true]);
      await worker.report([...worker.held]);
      expect(numbers()).to.include({ done: 2, pending: 0 });
    });

    it("drops what is not: another attempt, another leadership, somebody else's, unknown", async () => {
      const item = await held();
      const claims = [
        claimOf({ ...item, attempt: 9 }),
        claimOf({ ...item, epoch: 9 }),
        claimOf({ ...item, id: Buffer.alloc(32, 9) }),
        claimOf(item),
      ];
      expect(await worker.hello(claims)).to.deep.equal([false, false, false, true]);
      expect(await other.hello([claimOf(item)])).to.deep.equal([false]);
      expect(numbers()).to.include({ running: 1 });
    });

    it("gives back, uncharged and at once, what never arrived", async () => {
      await ledger.submit(["a", "b"]);
      await worker.ask(2);
      const [first] = worker.held;
      worker.held.splice(1);
      expect(await worker.hello()).to.deep.equal([true]);
      await other.ask(2);
      expect(only(other)).to.include({ text: "b", attempt: 2 });
      expect(only(worker)).to.equal(first);
      expect(ledger.contextOf(only(other))).to.include({ charged: 0, lost: 0 });
    });

    it("loses what its earlier process had not finished, and that is counted", async () => {
      await held();
      await worker.startAnew(2);
      await ledger.watch(RESTART_MS, [worker, other]);
      await worker.ask(1);
      expect(only(worker).attempt).to.equal(2);
      expect(ledger.contextOf(only(worker))).to.include({ charged: 0, lost: 1 });
    });

    it("loses of its earlier process only what can have begun: the rest is given back", async () => {
      await ledger.submit(["a", "b", "c"]);
      await worker.ask(3);
      await worker.startAnew(2);
      await worker.ask(3);
      expect(worker.texts).to.deep.equal(["c"]);
      await ledger.watch(RESTART_MS, [worker, other]);
      const lost = worker.held.map((item) => ledger.contextOf(item)?.lost);
      expect(lost).to.deep.equal([0, 1, 1]);
    });

    it("is not heard when it said so before a later session, however late that comes", async () => {
      const early = worker.helloInput([]);
      await worker.hello();
      const { port } = worker;
      const item = await held();
      await ledger.step(early);
      expect(numbers()).to.include({ running: 1, pending: 0 });
      worker.port = port;
      await worker.report([item]);
      expect(numbers()).to.include({ done: 1 });
    });

    it("delivers what its earlier process had finished", async () => {
      const item = await held();
      worker.restart(2);
      expect(await worker.rejoin([claimOf(item, true)])).to.deep.equal([true]);
      expect(numbers()).to.include({ running: 1, pending: 0 });
      await worker.report([item]);
      expect(numbers()).to.include({ done: 1 });
    });

    it("loses the attempts of its earlier process, although it claims them", async () => {
      const item = await held();
      worker.restart(2);
      expect(await worker.rejoin([claimOf(item)])).to.deep.equal([false]);
      await ledger.watch(RESTART_MS, [worker, other]);
      expect(numbers()).to.include({ running: 0, pending: 1 });
    });

    it("delivers a result that is of no use any more, and is rid of it", async () => {
      const item = await held();
      await worker.handBack([item]);
      await other.ask(1);
      await other.report([...other.held]);
      expect(await worker.hello([claimOf(item, true)])).to.deep.equal([true]);
      await worker.send([reportOf(item, ERROR)]);
      expect(worker.acknowledged).to.equal(1);
      expect(numbers()).to.include({ done: 1 });
    });

    it("has no credit from the session before", async () => {
      await worker.ask(5);
      await worker.hello();
      await ledger.submit(["a"]);
      expect(worker.held).to.have.length(0);
    });
  });

  it("gives no more than up to the number that its worker says, which may be lower than before", async () => {
    const upTo = (number: number): Promise<unknown> =>
      ledger.step({ kind: "credit", workerId: worker.id, port: worker.port, more: 0, upTo: number });
    await worker.ask(5);
    await ledger.submit(["1", "2"]);
    await upTo(3);
    await ledger.submit(["3", "4", "5"], { batchNumber: 2 });
    expect(worker.held, "one more").to.have.length(3);
    await upTo(1);
    expect(worker.held, "what it has stays").to.have.length(3);
    await upTo(4);
    expect(worker.held).to.have.length(4);
  });

  describe("is the only one of its worker:", () => {
    it("frames of the one before change nothing, and it ends", async () => {
      const item = await held();
      const { port } = worker;
      const ended: string[] = [];
      port.end = () => void ended.push("old");
      await worker.hello();
      expect(ended).to.deep.equal(["old"]);
      let settled = 0;
      const from = { workerId: worker.id, port };
      const counted = { ...from, settled: () => settled++ };
      await ledger.step(
        { kind: "results", number: 7, reports: [reportOf(item)], ...counted },
        { kind: "handedBack", attempts: [item], ...counted },
        { kind: "credit", more: 5, ...from },
        { kind: "sessionEnded", ...from },
      );
      expect(numbers()).to.include({ running: 1, pending: 0 });
      expect(worker.acknowledged).to.equal(undefined);
      expect(settled, "and nothing of it is in memory any more").to.equal(2);
      expect(ended.length).to.be.above(1);
      await worker.report([item]);
      expect(numbers()).to.include({ done: 1 });
    });

    it("it ends when nobody knows the worker, which opens another after its first beat", async () => {
      const stranger = await ledger.worker(3);
      stranger.restart(2);
      expect(await stranger.hello(), "the newer process has not beaten yet").to.equal(undefined);
      expect(stranger.isEnded).to.equal(true);
      expect(await stranger.rejoin()).to.deep.equal([]);
      await ledger.step({ kind: "credit", workerId: workerId(9), port: other.port, more: 1 });
      expect(other.isEnded).to.equal(true);
    });

    it("it ends when a newer process of the worker beats, which is given what comes after", async () => {
      await worker.ask(5);
      const { port } = worker;
      worker.restart(2);
      await worker.beat();
      expect(worker.isEnded).to.equal(true);
      await ledger.submit(["a"]);
      expect(worker.held).to.have.length(0);
      await worker.hello();
      expect(worker.port).to.not.equal(port);
      await worker.ask(1);
      expect(only(worker)).to.include({ incarnation: incarnationId(2) });
    });

    it("when it ends, its worker goes on with what it has and is given nothing", async () => {
      await held();
      await worker.ask(5);
      await ledger.step({ kind: "sessionEnded", workerId: worker.id, port: worker.port });
      await ledger.submit(["b"], { batchNumber: 2 });
      expect(numbers()).to.include({ running: 1, pending: 1 });
      expect(await worker.hello()).to.deep.equal([true]);
    });
  });

  describe("is over when its worker", () => {
    it("fails: what had begun is lost, and what waited is given back", async () => {
      await ledger.submit(["a", "b", "c", "d", "e"]);
      await worker.ask(5);
      const third = await ledger.worker(3, { slots: 5 });
      await ledger.watch(FAILURE_MS, [other, third]);
      expect(worker.isEnded).to.equal(true);
      await third.ask(5);
      expect(third.texts).to.deep.equal(["a", "b", "c", "d", "e"]);
      const losses = third.held.map((item) => ledger.contextOf(item)?.lost);
      expect(losses, "it has two slots").to.deep.equal([1, 1, 0, 0, 0]);
    });

    it("fails together with many: nothing is counted", async () => {
      await ledger.submit(["a", "b"]);
      await worker.ask(1);
      await other.ask(1);
      await ledger.watch(FAILURE_MS);
      expect(numbers()).to.include({ pending: 2, running: 0 });
      await ledger.worker(3, { credit: 2 });
      expect(ledger.losses).to.deep.equal([0, 0]);
    });

    it("is heard again: it is told what it lost on its next stream", async () => {
      const item = await held();
      const third = await ledger.worker(3);
      await ledger.watch(FAILURE_MS, [other, third]);
      await other.ask(1);
      await worker.beat();
      expect(worker.isEnded, "or it would wait for ever").to.equal(true);
      expect(await worker.hello()).to.deep.equal([false]);
      worker.forget([item]);
      await worker.ask(1);
      expect(numbers()).to.include({ running: 1 });
    });

    it("leaves: everything is given back, uncharged", async () => {
      await ledger.submit(["a", "b", "c"]);
      await worker.ask(3);
      worker.state = "Gone";
      await worker.beat();
      await other.ask(3);
      expect(other.texts).to.deep.equal(["a", "b", "c"]);
      for (const item of other.held)
        expect(ledger.contextOf(item)).to.include({
          lost: 0,
          charged: 0,
        });
    });
  });

  it("counts in one turn what many workers report, in order of arrival", async () => {
    await ledger.submit(["a", "b"]);
    await worker.ask(1);
    await other.ask(1);
    const [one, two] = [only(worker), only(other)];
    await ledger.step(
      worker.resultsInput([reportOf(one)]),
      other.resultsInput([reportOf(two), reportOf(one, successOf(two))]),
    );
    expect(numbers()).to.include({ done: 2 });
    expect(await ledger.countUnder(COMPLETIONS_PREFIX)).to.equal(1);
    expect(await ledger.countUnder(RETURNED_PREFIX)).to.equal(0);
  });
});
