import { expect } from "chai";
import { scanIntervalMs } from "../../../../src/coordinator/workers/scan-failures.ts";
import { heartbeatKey, workerKey } from "../../../../src/storage/keys.ts";
import { World } from "../../../support/world.ts";
import { incarnationId, workerId } from "../../../support/world-worker.ts";

const INTERVAL_MS = 500;
const SKEW_MS = 250;
const FAILURE_MS = 5_000;

describe("the scan for silent workers", () => {
  let reactor: World;
  /** Wall time at which the next beat is due. */
  let dueAtMs: number;

  beforeEach(async () => {
    reactor = await World.start();
    await reactor.beat();
    reactor.takeTopics();
    dueAtMs = reactor.wallMs + INTERVAL_MS;
  });

  describe("suspects", () => {
    it("a worker whose beat is late by more than the skew budget, not by as much", async () => {
      await reactor.watch(INTERVAL_MS + SKEW_MS);
      expect(reactor.stateOf()).to.equal("Ready+Alive");
      await reactor.watch(1);
      expect(reactor.stateOf()).to.equal("Ready+Suspected");
      expect(reactor.events.of("worker_suspected")).to.deep.equal([
        { worker_id: workerId(1), due_at_ms: dueAtMs, late_ms: SKEW_MS + 1 },
      ]);
    });

    it("once, however long it stays silent", async () => {
      await reactor.watch(FAILURE_MS);
      expect(reactor.takeTopics()).to.deep.equal(["worker_suspected"]);
    });

    for (const phaseMs of [1, 100, 249, 250])
      it(`within two intervals of the last beat, with scans ${phaseMs} ms after it`, async () => {
        reactor.pass(phaseMs);
        await reactor.scan();
        let noticedAfterMs = phaseMs;
        const paceMs = scanIntervalMs(reactor.state);
        for (; reactor.stateOf() === "Ready+Alive"; noticedAfterMs += paceMs) await reactor.watch(paceMs);
        expect(noticedAfterMs).to.be.at.most(2 * INTERVAL_MS);
      });

    it("nobody who beats in time, for as long as it may take", async () => {
      for (let sequence = 2; sequence < 40; sequence++) {
        await reactor.watch(INTERVAL_MS + SKEW_MS);
        await reactor.beat({ sequence });
      }
      expect(reactor.takeTopics()).to.deep.equal([]);
    });
  });

  describe("finds a worker failed", () => {
    it("when it is late by more than the failure timeout, not by as much", async () => {
      await reactor.watch(INTERVAL_MS + FAILURE_MS);
      expect(reactor.stateOf()).to.equal("Ready+Suspected");
      await reactor.watch(1);
      expect(reactor.stateOf()).to.equal("Ready+Failed");
    });

    it("and says so with an event and a warning that name the worker and the wall time at which its beat was due", async () => {
      await reactor.watch(INTERVAL_MS + FAILURE_MS + 1);
      const said = { worker_id: workerId(1), due_at_ms: dueAtMs, late_ms: FAILURE_MS + 1 };
      expect(reactor.events.of("worker_failed")).to.deep.equal([said]);
      const warnings = reactor.log.lines.filter(({ level }) => level === "warn");
      expect(warnings.map(({ fields }) => fields)).to.deep.equal([said]);
    });

    it("only when it is suspected as well, where the skew budget is the longer of the two", async () => {
      reactor = await World.start({ liveness: { clockSkewBudgetMs: 900, coordinatorFailureTimeoutMs: 600 } });
      await reactor.beat();
      reactor.takeTopics();
      await reactor.watch(INTERVAL_MS + 900);
      expect(reactor.stateOf()).to.equal("Ready+Alive");
      await reactor.watch(1);
      expect(reactor.stateOf()).to.equal("Ready+Failed");
      expect(reactor.takeTopics()).to.deep.equal(["worker_suspected", "worker_failed"]);
    });

    it("at one boundary, where the two are equal", async () => {
      reactor = await World.start({ liveness: { clockSkewBudgetMs: 700, coordinatorFailureTimeoutMs: 700 } });
      await reactor.beat();
      await reactor.watch(INTERVAL_MS + 700);
      expect(reactor.stateOf()).to.equal("Ready+Alive");
      await reactor.watch(1);
      expect(reactor.stateOf()).to.equal("Ready+Failed");
    });

    it("in whatever state of its life it is, but gone", async () => {
      await reactor.beat({ workerId: workerId(2), state: "Init" });
      await reactor.beat({ workerId: workerId(3), state: "Draining" });
      await reactor.beat({ workerId: workerId(4), state: "Gone" });
      await reactor.watch(10_000);
      expect([2, 3, 4].map((number) => reactor.stateOf(workerId(number)))).to.deep.equal([
        "Init+Failed",
        "Draining+Failed",
        "Gone+Removed",
      ]);
    });

    it("a whole fleet, each by name", async () => {
      for (let number = 2; number <= 10; number++) await reactor.beat({ workerId: workerId(number) });
      await reactor.watch(INTERVAL_MS + FAILURE_MS + 1);
      const failed = reactor.events.of("worker_failed").map(({ worker_id }) => worker_id);
      expect(failed).to.have.members([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(workerId));
    });
  });

  describe("and a beat", () => {
    it("brings a suspected worker back", async () => {
      await reactor.watch(1_000);
      await reactor.beat({ sequence: 2 });
      expect(reactor.stateOf()).to.equal("Ready+Alive");
      expect(reactor.takeTopics()).to.deep.equal(["worker_suspected", "worker_recovered"]);
    });

    it("brings a failed worker back", async () => {
      await reactor.watch(6_000);
      await reactor.beat({ sequence: 2 });
      expect(reactor.stateOf()).to.equal("Ready+Alive");
      expect(reactor.takeTopics()).to.deep.equal(["worker_suspected", "worker_failed", "worker_recovered"]);
    });

    it("that says goodbye ends the watch over a suspected or failed worker", async () => {
      await reactor.beat({ workerId: workerId(2) });
      await reactor.watch(1_000);
      await reactor.beat({ state: "Gone", sequence: 2 });
      await reactor.watch(6_000);
      await reactor.beat({ workerId: workerId(2), state: "Gone", sequence: 2 });
      expect([reactor.stateOf(workerId(1)), reactor.stateOf(workerId(2))]).to.deep.equal([
        "Gone+Removed",
        "Gone+Removed",
      ]);
      expect(reactor.events.of("worker_failed").map(({ worker_id }) => worker_id)).to.deep.equal([
        workerId(2),
      ]);
    });

    it("is due an interval after it arrived, whatever its sender's clock says", async () => {
      reactor.pass(100);
      await reactor.beat({ sequence: 2, sentAtMs: 10 ** 15 });
      expect(reactor.state.workers.get(workerId(1))?.dueAtMs).to.equal(7_100 + INTERVAL_MS);
    });
  });

  describe("says worker_failed once for each worker", () => {
    const failures = (): number => reactor.events.of("worker_failed").length;
    const warnings = (): number => reactor.log.lines.filter(({ level }) => level === "warn").length;

    it("in a coordinator's lifetime, and warns each time", async () => {
      for (let time = 1; time <= 3; time++) {
        await reactor.watch(6_000);
        expect([failures(), warnings()]).to.deep.equal([1, time]);
        await reactor.beat({ sequence: time + 1 });
      }
    });

    it("also when it comes back as a newer incarnation", async () => {
      await reactor.watch(6_000);
      await reactor.beat({ incarnation: incarnationId(2) });
      await reactor.watch(6_000);
      expect([failures(), warnings()]).to.deep.equal([1, 2]);
    });

    it("also when it was forgotten in between", async () => {
      await reactor.watch(70_000);
      expect(reactor.stateOf()).to.equal(undefined);
      await reactor.beat({ sequence: 2 });
      await reactor.watch(6_000);
      expect([failures(), warnings()]).to.deep.equal([1, 2]);
    });

    it("and a restarted coordinator says it once more, of a worker that it heard", async () => {
      await reactor.watch(6_000);
      await reactor.lead();
      await reactor.watch(20_000);
      expect(failures()).to.equal(1);
      await reactor.beat({ sequence: 2 });
      await reactor.watch(6_000);
      expect(failures()).to.equal(2);
    });

    it("and does not remember an endless fleet, but those who are there", async () => {
      reactor = await World.start({ workersMax: 2, liveness: { removeAfterMs: 1 } });
      await reactor.beat();
      await reactor.watch(5_501);
      for (let number = 2; number <= 12; number++) {
        await reactor.beats({ sequence: 20 * number }, { workerId: workerId(number) });
        for (let beat = 1; reactor.state.workers.size > 1; beat++) {
          await reactor.watch(INTERVAL_MS);
          await reactor.beat({ sequence: 20 * number + beat });
        }
      }
      expect(failures()).to.equal(12);
      expect([...reactor.state.failedOnce]).to.deep.equal([1, 6, 7, 8, 9, 10, 11, 12].map(workerId));
      await reactor.watch(5_501);
      expect([failures(), reactor.stateOf()]).to.deep.equal([12, "Ready+Failed"]);
    });
  });

  describe("forgets", () => {
    it("a failed worker after remove_after, with its row and its heartbeat", async () => {
      await reactor.watch(6_000);
      await reactor.watch(60_000 - 500);
      expect(reactor.stateOf()).to.equal("Ready+Failed");
      await reactor.watch(500);
      expect(reactor.stateOf()).to.equal(undefined);
      expect(await reactor.store.get(workerKey(workerId(1)))).to.equal(undefined);
      expect(await reactor.store.get(heartbeatKey(workerId(1)))).to.equal(undefined);
      expect(reactor.takeTopics()).to.deep.equal(["worker_suspected", "worker_failed", "worker_removed"]);
    });

    it("a worker that left, likewise", async () => {
      await reactor.beat({ sequence: 2, state: "Gone" });
      await reactor.watch(60_000);
      expect(reactor.stateOf()).to.equal("Gone+Removed");
      await reactor.watch(1);
      expect(reactor.stateOf()).to.equal(undefined);
      expect(reactor.takeTopics()).to.deep.equal(["worker_deregistered", "worker_removed"]);
    });

    it("nobody earlier because the coordinator was restarted", async () => {
      await reactor.watch(6_000);
      await reactor.watch(50_000);
      await reactor.lead();
      await reactor.watch(59_000);
      expect(reactor.stateOf()).to.equal("Ready+Failed");
      await reactor.watch(2_000);
      expect(reactor.stateOf()).to.equal(undefined);
    });

    it("nobody who is heard", async () => {
      for (let sequence = 2; sequence < 200; sequence++) {
        await reactor.watch(INTERVAL_MS);
        await reactor.beat({ sequence });
      }
      expect(reactor.stateOf()).to.equal("Ready+Alive");
    });
  });

  describe("forgives the time in which this process did not run", () => {
    const fleet = [1, 2, 3, 4].map(workerId);

    it("to workers whose beats wait in the sockets when it runs again", async () => {
      for (const [at, id] of fleet.entries()) await reactor.beat({ workerId: id, sequence: at + 2 });
      reactor.takeTopics();
      reactor.pass(6_000);
      await reactor.beats(...fleet.map((id) => ({ workerId: id, sequence: 50 })));
      await reactor.scan();
      expect(reactor.takeTopics()).to.deep.equal([]);
    });

    for (const [what, lastBeatBeforeScan] of [
      ["before", true],
      ["after", false],
    ] as const)
      it(`to workers that have to connect again, last heard ${what} the last scan`, async () => {
        reactor.pass(100);
        if (lastBeatBeforeScan) await reactor.beat({ sequence: 2 });
        await reactor.scan();
        reactor.pass(20);
        if (!lastBeatBeforeScan) await reactor.beat({ sequence: 2 });
        reactor.pass(6_000);
        await reactor.scan();
        await reactor.watch(INTERVAL_MS - 100);
        expect(reactor.takeTopics()).to.deep.equal([]);
        await reactor.beat({ sequence: 3 });
        await reactor.watch(INTERVAL_MS);
        expect(reactor.takeTopics()).to.deep.equal([]);
      });

    it("and finds a worker that is really dead later all the same", async () => {
      reactor.pass(6_000);
      await reactor.scan();
      expect(reactor.stateOf()).to.equal("Ready+Alive");
      await reactor.watch(INTERVAL_MS + FAILURE_MS + 1);
      expect(reactor.stateOf()).to.equal("Ready+Failed");
    });

    it("and gives nobody more than that: who was heard after it is due as always", async () => {
      reactor.pass(6_000);
      await reactor.beat({ sequence: 2 });
      await reactor.scan();
      await reactor.watch(INTERVAL_MS + FAILURE_MS);
      expect(reactor.stateOf()).to.equal("Ready+Suspected");
      await reactor.watch(1);
      expect(reactor.stateOf()).to.equal("Ready+Failed");
    });

    it("each time, and a scan that comes a little late is no such time", async () => {
      for (let time = 0; time < 2; time++) {
        reactor.pass(6_000);
        await reactor.scan();
      }
      expect(reactor.stateOf()).to.equal("Ready+Alive");
      for (let time = 0; time < 15; time++) {
        reactor.pass(INTERVAL_MS);
        await reactor.scan();
      }
      expect(reactor.stateOf()).to.equal("Ready+Failed");
    });

    it("to workers that a restarted coordinator has not heard yet", async () => {
      await reactor.lead();
      reactor.pass(6_000);
      await reactor.scan();
      expect(reactor.stateOf()).to.equal("Ready+Alive");
    });
  });

  it("blames no item when a fleet falls silent together, whoever of it is the first to fail", async () => {
    const ledger = await World.start();
    const fleet = [await ledger.worker(1), await ledger.worker(2), await ledger.worker(3)];
    await ledger.submit(["a", "b", "c"]);
    for (const worker of fleet) {
      await worker.ask(1);
      // Each is due at another time.
      await ledger.watch(300, fleet.slice(fleet.indexOf(worker)));
    }
    await ledger.watch(FAILURE_MS + 2 * INTERVAL_MS);
    const survivor = await ledger.worker(4, { credit: 3 });
    expect(survivor.texts).to.deep.equal(["a", "b", "c"]);
    expect(ledger.losses).to.deep.equal([0, 0, 0]);
  });
});
