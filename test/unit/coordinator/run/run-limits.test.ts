// Limits at which a run stops spending by itself.
import { expect } from "chai";
import { ItemState, RunState } from "../../../../src/gen/rollout/v1/run_pb.ts";
import type { RunLimits } from "../../../../src/coordinator/turn/run-terms.ts";
import { World } from "../../../support/world.ts";
import { WorldOperator } from "../../../support/world-operator.ts";
import { ERROR, reportOf } from "../../../support/world-worker.ts";
import type { WorldWorker } from "../../../support/world-worker.ts";
import { seenRun } from "../../../support/worker-client.ts";

describe("the limits of a run", () => {
  let ledger: World;
  let operator: WorldOperator;
  let worker: WorldWorker;

  async function begin(limits: RunLimits): Promise<void> {
    ledger = await World.start({ budgets: { maxAttempts: 1 }, limits });
    operator = new WorldOperator(ledger);
    worker = await ledger.worker(1, { slots: 50, credit: 200 });
  }

  const textsOf = (count: number, from = 0): string[] =>
    Array.from({ length: count }, (_, at) => `${from + at}`);
  const fail = (count: number): Promise<void> => worker.report(worker.held.slice(0, count), ERROR);
  const succeed = (count: number): Promise<void> => worker.report(worker.held.slice(0, count));
  const shown = async (): Promise<[boolean, string]> => {
    const { state, pauseReason } = await operator.ask((run) => seenRun(run));
    return [state === RunState.PAUSED, pauseReason ?? ""];
  };
  const resume = (): Promise<unknown> => operator.ask((run) => run.resume({}));

  describe("of failures", () => {
    it("pauses it when as many items have failed, and says so", async () => {
      await begin({ maxFails: { kind: "count", count: 3 } });
      await operator.submit(textsOf(10));
      await fail(2);
      expect(await shown()).to.deep.equal([false, ""]);
      await fail(2);
      const reason = "4 items failed, and run.max_fails is 3";
      expect(await shown()).to.deep.equal([true, reason]);
      expect(ledger.events.of("run_paused")).to.deep.equal([{ reason }]);
      await worker.handBack([...worker.held]);
      await worker.ask(10);
      expect(worker.held).to.have.length(0);
    });

    it("lets what runs by then end, and records it, failures beyond the limit as well", async () => {
      await begin({ maxFails: { kind: "count", count: 2 } });
      await operator.submit(textsOf(10));
      await fail(2);
      const paused = [true, "2 items failed, and run.max_fails is 2"];
      expect(await shown()).to.deep.equal(paused);
      await fail(3);
      await succeed(5);
      const { failed, done, running, pending } = await operator.ask((run) => seenRun(run));
      expect({ failed, done, running, pending }).to.deep.equal({
        failed: 5,
        done: 5,
        running: 0,
        pending: 0,
      });
      expect(await shown()).to.deep.equal(paused);
      expect(ledger.events.of("run_paused"), "it is said once").to.have.length(1);
    });

    it("counts from when it was resumed, also after a restart", async () => {
      await begin({ maxFails: { kind: "count", count: 2 } });
      await operator.submit(textsOf(10));
      await fail(2);
      await resume();
      expect(await shown()).to.deep.equal([false, ""]);
      await fail(1);
      await ledger.lead();
      await worker.rejoin();
      expect(await shown()).to.deep.equal([false, ""]);
      await fail(1);
      expect(await shown()).to.deep.equal([true, "2 items failed, and run.max_fails is 2"]);
    });

    it("counts what fails again after it was retried", async () => {
      await begin({ maxFails: { kind: "count", count: 3 } });
      await operator.submit(textsOf(2));
      await fail(2);
      await operator.ask((run) => run.retry({}));
      await fail(1);
      expect(await shown()).to.deep.equal([true, "3 items failed, and run.max_fails is 3"]);
    });

    it("judges a share when 20 items are final, and not before", async () => {
      await begin({ maxFails: { kind: "share", percent: 10 } });
      await operator.submit(textsOf(40));
      await fail(2);
      await succeed(17);
      expect(await shown()).to.deep.equal([false, ""]);
      await succeed(1);
      expect(await shown()).to.deep.equal([true, "2 of 20 items failed, and run.max_fails is 10%"]);
      await resume();
      await fail(1);
      await succeed(10);
      expect(await shown()).to.deep.equal([false, ""]);
    });

    it("does not pause a run that has nothing left to do: it completes", async () => {
      await begin({ maxFails: { kind: "count", count: 1 } });
      await operator.submit(["a"]);
      await ledger.seal();
      await fail(1);
      expect((await operator.ask((run) => seenRun(run))).state).to.equal(RunState.COMPLETE);
      expect(ledger.events.of("run_paused")).to.deep.equal([]);
    });
  });

  describe("when nothing but failures comes of it", () => {
    const REASON = "the first 50 items to end have all failed, each with error: it broke";

    it("pauses it at the 50th, with what they say and an item that says it", async () => {
      await begin({});
      await operator.submit(textsOf(60));
      await fail(49);
      expect(await shown()).to.deep.equal([false, ""]);
      await fail(1);
      expect(await shown()).to.deep.equal([true, REASON]);
      const { failureMessages } = await operator.ask((run) => seenRun(run));
      const [most, ...others] = failureMessages;
      expect(others).to.deep.equal([]);
      expect(most).to.include({ failureClass: "error", message: "it broke", items: 50 });
      const name = most?.item ?? "";
      const { item } = await operator.ask((run) => run.getItem({ name }));
      expect(item?.state).to.equal(ItemState.FAILED);
    });

    it("asks before it goes on even if one succeeds in the same breath", async () => {
      await begin({});
      await operator.submit(textsOf(60));
      const outcomeAt = (at: number) => (at < 50 ? ERROR : undefined);
      await worker.send(worker.held.slice(0, 51).map((item, at) => reportOf(item, outcomeAt(at))));
      expect(await shown()).to.deep.equal([true, REASON]);
    });

    it("goes on when one was done before", async () => {
      await begin({});
      await operator.submit(textsOf(100));
      await fail(48);
      await succeed(1);
      await fail(40);
      expect(await shown()).to.deep.equal([false, ""]);
      await ledger.lead();
      await worker.rejoin();
      await fail(1);
      expect(await shown(), "a new leader").to.deep.equal([false, ""]);
    });

    it("asks once: it is not asked again when it was let go on, nor by a leader that comes later", async () => {
      await begin({});
      await operator.submit(textsOf(100));
      await fail(50);
      await ledger.lead();
      await worker.rejoin();
      expect(await shown(), "a new leader").to.deep.equal([true, REASON]);
      await resume();
      await fail(10);
      expect(await shown()).to.deep.equal([false, ""]);
      await ledger.lead();
      await worker.rejoin();
      await fail(10);
      const { state, failureMessages } = await operator.ask((run) => seenRun(run));
      expect(state).to.equal(RunState.OPEN);
      expect(failureMessages[0]?.items, "those of the leaders before are read").to.equal(70);
    });

    it("pauses a run that was resumed before its first items failed", async () => {
      await begin({});
      await operator.submit(textsOf(60));
      await fail(49);
      await operator.ask((run) => run.pause({}));
      await resume();
      await fail(1);
      expect((await shown())[0]).to.equal(true);
    });

    it("does not pause a run without items left: it completes", async () => {
      await begin({});
      await operator.submit(textsOf(50));
      await ledger.seal();
      await fail(50);
      expect((await operator.ask((run) => seenRun(run))).state).to.equal(RunState.COMPLETE);
      expect(ledger.events.of("run_paused")).to.deep.equal([]);
    });

    it("does not pause a run with max_fails none", async () => {
      await begin({ maxFails: { kind: "unlimited" } });
      await operator.submit(textsOf(60));
      await fail(50);
      expect(await shown()).to.deep.equal([false, ""]);
    });
  });

  describe("of time", () => {
    it("pauses it when it has gone on for as long, counted from its first submission", async () => {
      await begin({ timeLimitMs: 10_000 });
      await ledger.watch(20_000, [worker]);
      expect(await shown()).to.deep.equal([false, ""]);
      await operator.submit(["a", "b"]);
      await ledger.watch(9_000, [worker]);
      expect(await shown()).to.deep.equal([false, ""]);
      await ledger.watch(1_000, [worker]);
      expect(await shown()).to.deep.equal([
        true,
        "it began or was resumed 10s ago, and run.time_limit is 10s",
      ]);
    });

    it("counts from when it was resumed, and through a restart", async () => {
      await begin({ timeLimitMs: 10_000 });
      await operator.submit(["a", "b"]);
      await ledger.watch(10_000, [worker]);
      await resume();
      await ledger.watch(6_000, [worker]);
      await ledger.lead();
      await worker.beat();
      await ledger.watch(3_500, [worker]);
      expect(await shown()).to.deep.equal([false, ""]);
      await ledger.watch(1_000, [worker]);
      expect((await shown())[0]).to.equal(true);
    });
  });

  it("of one attempt goes to the workers", async () => {
    await begin({ itemTimeoutMs: 1_500 });
    await operator.submit(["a"]);
    expect(worker.given.map(({ itemTimeoutMs }) => itemTimeoutMs)).to.deep.equal([1_500]);
  });
});
