// The run as operators steer it: paused, resumed, cancelled.
import { expect } from "chai";
import type { LedgerExtent } from "../../../../src/coordinator/turn/run-view.ts";
import { OutcomeClass } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { RunState } from "../../../../src/gen/rollout/v1/run_pb.ts";
import { LedgerHarness, TASK_DIGEST } from "../../../support/ledger-harness.ts";
import type { LedgerWorker } from "../../../support/ledger-worker.ts";
import { claimOf, ERROR, reportOf } from "../../../support/ledger-worker.ts";
import { hexOf, OperatorRig } from "../../../support/operator-rig.ts";
import { failureOf } from "../../../support/rejection.ts";

describe("a run that is steered", () => {
  let ledger: LedgerHarness;
  let operator: OperatorRig;
  let worker: LedgerWorker;

  beforeEach(async () => {
    ledger = await LedgerHarness.start();
    operator = new OperatorRig(ledger);
    worker = await ledger.worker(1, { slots: 1, credit: 3 });
  });

  const pause = (reason = ""): Promise<unknown> => operator.ask((run) => run.pause({ reason }));
  const resume = (): Promise<unknown> => operator.ask((run) => run.resume({}));
  const cancel = (): Promise<unknown> => operator.ask((run) => run.cancel({}));
  const shown = (): ReturnType<typeof operator.ask<{ state: RunState; pauseReason: string }>> =>
    operator.ask((run) => run.getRun({}));

  /** Items that the worker was asked for by frames of this kind. */
  const asked = (kind: "release" | "drop"): string[] =>
    worker.frames.flatMap((frame) =>
      frame.kind === kind ? frame.attempts.map(({ id }) => Buffer.from(id).toString("hex")) : [],
    );

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
      expect(await shown()).to.deep.include({ state: RunState.OPEN, pauseReason: "" });
    });

    it("asks for what workers have, and keeps what they hand back until it is resumed", async () => {
      await operator.submit(["a", "b", "c"]);
      await pause();
      expect(asked("release")).to.deep.equal(["a", "b", "c"].map(hexOf));
      await worker.release(worker.held.slice(1));
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
      expect(await shown()).to.deep.include({ state: RunState.PAUSED, done: 1n, running: 0n });
    });

    it("asks a worker that connects again, and one that comes after a restart", async () => {
      await operator.submit(["a", "b"]);
      await pause();
      await worker.hello();
      expect(asked("release")).to.deep.equal(["a", "b"].map(hexOf));
      await ledger.lead();
      await worker.beat();
      await worker.hello();
      expect(asked("release")).to.deep.equal(["a", "b"].map(hexOf));
      expect(await shown()).to.deep.include({ state: RunState.PAUSED });
    });

    it("completes when what executed was the last", async () => {
      await operator.submit(["a"]);
      await ledger.seal();
      await pause();
      await worker.report(worker.held);
      expect(await shown()).to.deep.include({ state: RunState.COMPLETE, pauseReason: "" });
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
      const run = await operator.ask((rpc) => rpc.getRun({}));
      expect(run).to.deep.include({ state: RunState.CANCELLED, pending: 2n, running: 0n, failed: 3n });
      expect(run.failedByClass).to.deep.equal({ cancelled: 3n });
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
      expect(await operator.ask((run) => run.getRun({}))).to.deep.include({
        ...{ done: 1n, failed: 1n, running: 0n, staleReports: 1n },
      });
    });

    it("wants nothing of a worker that connects, also what is finished, also after a restart", async () => {
      await operator.submit(["a", "b"]);
      const claims = worker.held.map((item, at) => claimOf(item, at === 0));
      await cancel();
      expect(await worker.hello(claims)).to.deep.equal([false, false]);
      await ledger.lead();
      await worker.beat();
      expect(await worker.hello(claims)).to.deep.equal([false, false]);
      expect(await shown()).to.deep.include({ state: RunState.CANCELLED });
    });

    it("is over in the turn that does it, with what became final in it", async () => {
      await operator.submit(["a"]);
      const extents: LedgerExtent[] = [];
      const answer = (): void => undefined;
      const take = (extent: LedgerExtent): void => void extents.push(extent);
      await ledger.step({ kind: "cancel", answer }, { kind: "getExtent", answer: take });
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
      expect(await shown()).to.deep.include({ state: RunState.CANCELLED, pauseReason: "" });
      const other = await LedgerHarness.start();
      const others = new OperatorRig(other);
      await other.seal();
      await others.ask((run) => run.cancel({}));
      expect(await others.ask((run) => run.getRun({}))).to.deep.include({ state: RunState.COMPLETE });
    });

    it("remembers how each attempt ended", async () => {
      await operator.submit(["a"]);
      await cancel();
      const { attempts, result } = await operator.ask((run) => run.getItem({ name: hexOf("a") }));
      expect(attempts.map(({ attempt, outcome }) => [attempt, outcome])).to.deep.equal([
        [1, OutcomeClass.CANCELLED],
      ]);
      expect(result?.failureClass).to.equal("cancelled");
    });
  });

  it("shows its task, its workers and how many became final each second", async () => {
    await operator.submit(["a", "b"]);
    await ledger.watch(1_000, [worker]);
    await worker.report(worker.held.slice(0, 1));
    await ledger.watch(1_000, [worker]);
    await worker.report(worker.held, ERROR);
    const run = await operator.ask((rpc) => rpc.getRun({}));
    expect(run).to.deep.include({ state: RunState.OPEN, pending: 1n, delayed: 1n, done: 1n, sealed: false });
    expect(Buffer.from(run.taskDigest)).to.deep.equal(Buffer.from(TASK_DIGEST));
    expect(run.finishedPerSecond).to.deep.equal([0, 1]);
    expect(run.workers).to.deep.include({ ready: 1, draining: 0, suspected: 0, failed: 0, cordoned: 0 });
    await ledger.watch(61_000, [worker]);
    await worker.ask(1);
    const reassigned = async (): Promise<bigint> => (await operator.ask((rpc) => rpc.getRun({}))).reassigned;
    expect(await reassigned(), "a retry is none").to.equal(0n);
    await ledger.watch(7_000, []);
    expect(await reassigned(), "its worker is lost").to.equal(1n);
  });
});
