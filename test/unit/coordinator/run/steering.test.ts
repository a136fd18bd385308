// The run as operators steer it: paused, resumed, cancelled.
import { expect } from "chai";
import type { LedgerExtent } from "../../../../src/coordinator/turn/run-terms.ts";
import { OutcomeClass } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { RunState } from "../../../../src/gen/rollout/v1/run_pb.ts";
import type { Run } from "../../../../src/gen/rollout/v1/run_pb.ts";
import { World } from "../../../support/world.ts";
import { hexOf, WorldOperator } from "../../../support/world-operator.ts";
import { claimOf, ERROR, reportOf } from "../../../support/world-worker.ts";
import type { WorldWorker } from "../../../support/world-worker.ts";
import { failureOf } from "../../../support/rejection.ts";
import { seenRun } from "../../../support/worker-client.ts";

describe("a run that is steered", () => {
  let ledger: World;
  let operator: WorldOperator;
  let worker: WorldWorker;

  beforeEach(async () => {
    ledger = await World.start();
    operator = new WorldOperator(ledger);
    worker = await ledger.worker(1, { slots: 1, credit: 3 });
  });

  const pause = (reason = ""): Promise<unknown> => operator.ask((run) => run.pause({ reason }));
  const resume = (): Promise<unknown> => operator.ask((run) => run.resume({}));
  const cancel = (): Promise<unknown> => operator.ask((run) => run.cancel({}));
  const shown = (): Promise<Run> => operator.ask(seenRun);

  /** Items that the worker was asked for by frames of this kind. */
  const asked = (kind: "recall" | "drop"): string[] =>
    worker
      .framesOf(kind)
      .flatMap(({ attempts }) => attempts.map(({ id }) => Buffer.from(id).toString("hex")));

  describe("by a pause", () => {
    it("gives nothing out until it is resumed, and says why", async () => {
      await pause("the electricity is expensive");
      await operator.submit(["a"]);
      await ledger.watch(1_000, [worker]);
      expect(worker.held).to.have.length(0);
      const { state, pauseReason } = await shown();
      expect([state, pauseReason]).to.deep.equal([RunState.PAUSED, "the electricity is expensive"]);
      await resume();
      expect(worker.texts).to.deep.equal(["a"]);
      expect(await shown()).to.deep.include({ state: RunState.OPEN });
    });

    it("asks for what workers have, and keeps what they hand back until it is resumed", async () => {
      await operator.submit(["a", "b", "c"]);
      await pause();
      expect(asked("recall")).to.deep.equal(["a", "b", "c"].map(hexOf));
      await worker.handBack(worker.held.slice(1));
      expect(worker.texts).to.deep.equal(["a"]);
      await worker.ask(2);
      expect(worker.texts).to.deep.equal(["a"]);
      await resume();
      expect(worker.texts).to.deep.equal(["a", "b", "c"]);
    });

    it("takes the results of what executes", async () => {
      await operator.submit(["a"]);
      await pause();
      await worker.report(worker.held);
      expect(await shown()).to.deep.include({ state: RunState.PAUSED, done: 1, running: 0 });
    });

    it("asks a worker that connects again, and one that comes after a restart", async () => {
      await operator.submit(["a", "b"]);
      await pause();
      await worker.hello();
      expect(asked("recall")).to.deep.equal(["a", "b"].map(hexOf));
      await ledger.lead();
      await worker.rejoin();
      expect(asked("recall")).to.deep.equal(["a", "b"].map(hexOf));
      expect(await shown()).to.deep.include({ state: RunState.PAUSED });
    });

    it("completes when what executed was the last", async () => {
      await operator.submit(["a"]);
      await ledger.seal();
      await pause();
      await worker.report(worker.held);
      expect(await shown()).to.deep.include({ state: RunState.COMPLETE });
    });

    it("keeps the first reason, and is said once", async () => {
      await pause("first");
      await pause("second");
      expect(await shown()).to.deep.include({ pauseReason: "first" });
      expect(ledger.events.of("run_paused")).to.deep.equal([{ reason: "first" }]);
      await resume();
      await resume();
      expect(ledger.events.of("run_resumed")).to.have.length(1);
    });
  });

  describe("by a cancellation", () => {
    it("fails what executes as cancelled, tells its workers, and starts nothing more", async () => {
      await operator.submit(["a", "b", "c", "d", "e"]);
      await cancel();
      expect(asked("drop")).to.deep.equal(["a", "b", "c"].map(hexOf));
      await worker.ask(5);
      await ledger.watch(1_000, [worker]);
      const run = await operator.ask((rpc) => seenRun(rpc));
      expect(run).to.deep.include({ state: RunState.CANCELLED, pending: 2, running: 0, failed: 3 });
      expect(run.failedByClass).to.deep.equal({ cancelled: 3 });
      expect(ledger.events.of("run_cancelled")).to.deep.equal([{ done: 0, failed: 0, pending: 2 }]);
    });

    it("keeps what is done, and changes nothing of it by results that come later", async () => {
      await operator.submit(["a", "b"]);
      const [first, second] = worker.held;
      if (first === undefined || second === undefined) throw new Error("two are held");
      await worker.report([first]);
      await cancel();
      await worker.send([reportOf(second)]);
      await ledger.settle();
      expect(await operator.ask((run) => seenRun(run))).to.deep.include({
        ...{ done: 1, failed: 1, running: 0, staleReports: 1 },
      });
    });

    it("wants nothing of a worker that connects, also what is finished, also after a restart", async () => {
      await operator.submit(["a", "b"]);
      const claims = worker.held.map((item, at) => claimOf(item, at === 0));
      await cancel();
      expect(await worker.hello(claims)).to.deep.equal([false, false]);
      await ledger.lead();
      expect(await worker.rejoin(claims)).to.deep.equal([false, false]);
      expect(await shown()).to.deep.include({ state: RunState.CANCELLED });
    });

    it("is over in the turn that does it, with what became final in it", async () => {
      await operator.submit(["a"]);
      const extents: LedgerExtent[] = [];
      await ledger.step(
        { kind: "cancel", answer: () => undefined },
        { kind: "getExtent", answer: (extent) => void extents.push(extent) },
      );
      expect(extents[0]).to.deep.include({ phase: "cancelled", isOver: true, nextCompletion: 1 });
    });

    it("is for good", async () => {
      await operator.submit(["a"]);
      await cancel();
      await cancel();
      const calls = [
        operator.ask((run) => run.pause({})),
        operator.ask((run) => run.resume({})),
        operator.ask((run) => run.seal({})),
        operator.ask((run) => run.retry({})),
        operator.submit(["b"]),
      ];
      for (const call of calls) expect((await failureOf(call)).code).to.equal("run_cancelled");
      expect(ledger.events.of("run_cancelled")).to.have.length(1);
    });

    it("ends a paused run too, and does nothing to a complete one", async () => {
      await pause();
      await cancel();
      expect(await shown()).to.deep.include({ state: RunState.CANCELLED });
      const other = await World.start();
      const others = new WorldOperator(other);
      await other.seal();
      await others.ask((run) => run.cancel({}));
      expect(await others.ask((run) => seenRun(run))).to.deep.include({ state: RunState.COMPLETE });
    });

    it("remembers how each attempt ended", async () => {
      await operator.submit(["a"]);
      await cancel();
      const { item, result } = await operator.ask((run) => run.getItem({ name: hexOf("a") }));
      expect(item?.attempts.map(({ attempt, outcome }) => [attempt, outcome])).to.deep.equal([
        [1, OutcomeClass.CANCELLED],
      ]);
      expect(result?.failureClass).to.equal("cancelled");
    });
  });

  it("shows its task, its workers and how many became final each second", async () => {
    await operator.submit(["a", "b"]);
    expect(await shown()).to.include({ running: 2, executing: 0, waitingAtWorkers: 2 });
    await ledger.watch(1_000, [worker]);
    await worker.report(worker.held.slice(0, 1));
    await ledger.watch(1_000, [worker]);
    await worker.report(worker.held, ERROR);
    const { run, finishedPerSecond } = await operator.ask((rpc) => rpc.getRun({}));
    expect(run).to.deep.include({ state: RunState.OPEN, pending: 1, delayed: 1, done: 1, sealed: false });
    expect(finishedPerSecond).to.deep.equal([0, 1]);
    expect(run).to.include({ finishedPerSecond: 0.5, executing: 0, waitingAtWorkers: 0 });
    expect(run?.workers).to.deep.include({ ready: 1, draining: 0, suspected: 0, failed: 0, cordoned: 0 });
    await ledger.watch(61_000, [worker]);
    await worker.ask(1);
    const reassigned = async (): Promise<number> => (await operator.ask((rpc) => seenRun(rpc))).reassigned;
    expect(await reassigned(), "a retry is none").to.equal(0);
    await ledger.watch(7_000, []);
    expect(await reassigned(), "its worker is lost").to.equal(1);
  });
});
