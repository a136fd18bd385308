// Calls that wait for news of a run, by a clock that stands still unless it is moved.
import { expect } from "chai";
import { RunState } from "../../../../src/gen/rollout/v1/run_pb.ts";
import type { GetRunResponse } from "../../../../src/gen/rollout/v1/run_pb.ts";
import { eventually } from "../../../support/eventually.ts";
import { failureOf } from "../../../support/rejection.ts";
import { World } from "../../../support/world.ts";
import { WorldOperator } from "../../../support/world-operator.ts";
import type { WorldWorker } from "../../../support/world-worker.ts";

const WAIT = { waitMs: 4_000, collectMs: 500 };

describe("news of a run", () => {
  let ledger: World;
  let operator: WorldOperator;
  let worker: WorldWorker;
  let waiting: Promise<GetRunResponse>;

  beforeEach(async () => {
    ledger = await World.start();
    operator = new WorldOperator(ledger);
    worker = await ledger.worker(1, { credit: 10 });
    await operator.submit(["a", "b"]);
    // Without a mark it is answered at once, whatever it says of waiting.
    waiting = waitAfter((await operator.ask((run) => run.getRun(WAIT))).after);
    await eventually("it waits", () => operator.clock.armed > 0);
  });

  const waitAfter = (after: string): Promise<GetRunResponse> =>
    operator.ask((run) => run.getRun({ ...WAIT, after }));
  const isWaiting = async (): Promise<boolean> => {
    await ledger.settle();
    return operator.clock.armed > 0;
  };

  it("come at once when the run moves", async () => {
    await operator.ask((run) => run.pause({ reason: "enough" }));
    expect((await waiting).run).to.include({ state: RunState.PAUSED, pauseReason: "enough" });
    expect(operator.clock.armed).to.equal(0);
  });

  it("come at once when a worker is new, drains or leaves", async () => {
    await ledger.worker(2);
    const { run, after } = await waiting;
    expect(run?.workers?.ready).to.equal(2);
    const next = waitAfter(after);
    await eventually("it waits", () => operator.clock.armed > 0);
    worker.state = "Draining";
    await worker.beat();
    expect((await next).run?.workers).to.include({ ready: 1, draining: 1 });
  });

  it("of numbers are collected for a while, and told at once when that is over", async () => {
    await worker.report(worker.held.slice(0, 1));
    expect(await isWaiting()).to.equal(true);
    await operator.clock.advance(499);
    expect(await isWaiting()).to.equal(true);
    await operator.clock.advance(1);
    const { run, after } = await waiting;
    expect(run).to.include({ done: 1 });
    const next = waitAfter(after);
    await eventually("it waits", () => operator.clock.armed > 0);
    await operator.clock.advance(500);
    expect(await isWaiting()).to.equal(true);
    await worker.report(worker.held);
    expect((await next).run).to.include({ done: 2 });
    expect(operator.clock.armed).to.equal(0);
  });

  it("are what a worker says of its load and its trouble, but not that it beats", async () => {
    await operator.clock.advance(500);
    await worker.beat();
    expect(await isWaiting()).to.equal(true);
    await ledger.beat({ sequence: worker.sequence + 1, trouble: "the model loads" });
    await waiting;
    expect(operator.clock.armed).to.equal(0);
  });

  it("are not waited for beyond the time", async () => {
    const { after } = await operator.ask((run) => run.getRun({}));
    await operator.clock.advance(3_999);
    expect(await isWaiting()).to.equal(true);
    await operator.clock.advance(1);
    expect((await waiting).after).to.equal(after);
  });

  it("are there at once behind an answer of another leader", async () => {
    await ledger.lead();
    const next = await new WorldOperator(ledger).ask((run) => run.getRun({ ...WAIT, after: "n0.99.99" }));
    expect(next.after).to.equal("n1.0.0");
    await operator.clock.advance(4_000);
    await waiting;
  });

  it("are refused behind what no answer has said", async () => {
    expect((await failureOf(waitAfter("c1.2"))).code).to.equal("request_invalid");
    await operator.clock.advance(4_000);
    await waiting;
  });
});
