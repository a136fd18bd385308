// Failed items, retried by an operator.
import { expect } from "chai";
import { ResultOrder, RunState } from "../../../../src/gen/rollout/v1/run_pb.ts";
import { verifyLedger } from "../../../../src/coordinator/read/verify-ledger.ts";
import { World } from "../../../support/world.ts";
import { WorldOperator } from "../../../support/world-operator.ts";
import { ERROR } from "../../../support/world-worker.ts";
import type { WorldWorker } from "../../../support/world-worker.ts";
import { failureOf } from "../../../support/rejection.ts";
import { seenRun } from "../../../support/worker-client.ts";

const TOO_LARGE = { kind: "too_large", message: "it is too large" } as const;

describe("failed items that are retried", () => {
  let ledger: World;
  let operator: WorldOperator;
  let worker: WorldWorker;

  beforeEach(async () => {
    ledger = await World.start({ budgets: { maxAttempts: 1 } });
    operator = new WorldOperator(ledger);
    worker = await ledger.worker(1, { credit: 10 });
  });

  const run = (): ReturnType<typeof operator.ask<{ state: RunState; failed: number }>> =>
    operator.ask((rpc) => seenRun(rpc));
  const retry = async (
    request: { failureClass?: string; items?: string[]; after?: string } = {},
  ): Promise<{ retried: number; skipped: number; after: string }> => {
    const { retried, skipped, after } = await operator.ask((rpc) => rpc.retry(request));
    return { retried, skipped, after };
  };
  const idsOf = (): string[] => worker.held.map(({ id }) => Buffer.from(id).toString("hex"));

  it("run again with new budgets, and their attempts go on counting", async () => {
    await operator.submit(["a"]);
    await worker.report(worker.held, ERROR);
    await worker.ask(1);
    expect(await retry()).to.deep.equal({ retried: 1, skipped: 0, after: "" });
    expect(worker.held.map(({ text, attempt }) => [text, attempt])).to.deep.equal([["a", 2]]);
    await worker.report(worker.held);
    expect(await run()).to.deep.include({ done: 1, failed: 0, failedByClass: {} });
  });

  it("are only those of the class, and those that are named", async () => {
    await operator.submit(["a", "b", "c", "d"]);
    const [a, b, c, d] = idsOf();
    if (a === undefined || b === undefined || c === undefined || d === undefined)
      return expect.fail("they were given out");
    await worker.report(worker.held.slice(0, 2), ERROR);
    await worker.report(worker.held.slice(0, 1), TOO_LARGE);
    expect(await run()).to.deep.include({ failedByClass: { error: 2, too_large: 1 } });
    expect(await retry({ failureClass: "timeout" })).to.include({ retried: 0 });
    expect(await retry({ failureClass: "too_large" })).to.include({ retried: 1 });
    expect(await retry({ items: [a, a, c, d, "0".repeat(64)] })).to.include({ retried: 1, skipped: 4 });
    expect(await run()).to.deep.include({ failedByClass: { error: 1 } });
    expect(await retry({ items: [b], failureClass: "crash" })).to.include({ retried: 0, skipped: 1 });
  });

  it("are retried once, however often that is asked", async () => {
    await operator.submit(["a", "b"]);
    const ids = idsOf();
    await worker.report(worker.held, ERROR);
    const both = await Promise.all([retry({ items: ids }), retry({ items: ids }), retry()]);
    expect(both.map(({ retried }) => retried)).to.deep.equal([2, 0, 0]);
    expect(await run()).to.deep.include({ failed: 0, pending: 0, running: 2 });
  });

  it("come in pages", async () => {
    const many = await World.start({ budgets: { maxAttempts: 1 }, isChecked: false });
    const rig = new WorldOperator(many);
    const texts = Array.from({ length: 1_500 }, (_, at) => `${at}`);
    const other = await many.worker(1, { slots: 1_024, credit: 1_500 });
    await rig.submit(texts);
    await other.report(other.held, ERROR);
    const first = await rig.ask((rpc) => rpc.retry({}));
    expect([first.retried, first.after === ""]).to.deep.equal([1_000, false]);
    const last = await rig.ask((rpc) => rpc.retry({ after: first.after }));
    expect([last.retried, last.after]).to.deep.equal([500, ""]);
    expect(await rig.ask((rpc) => seenRun(rpc))).to.deep.include({ failed: 0, pending: 1_500 });
  });

  it("open a run that was complete, which completes again", async () => {
    await operator.submit(["a", "b"]);
    await ledger.seal();
    await worker.report(worker.held, ERROR);
    expect(await run()).to.deep.include({ state: RunState.COMPLETE });
    await retry();
    expect(await run()).to.deep.include({ state: RunState.SEALED, pending: 0, running: 2 });
    await ledger.lead();
    await worker.rejoin();
    expect(await run()).to.deep.include({ state: RunState.SEALED });
    await worker.report(worker.held);
    expect(await run()).to.deep.include({ state: RunState.COMPLETE, done: 2, failed: 0 });
    expect(ledger.events.of("run_completed")).to.deep.equal([
      { done: 0, failed: 2 },
      { done: 2, failed: 0 },
    ]);
    expect(ledger.events.of("run_reopened")).to.deep.equal([{ pending: 2 }]);
  });

  it("do not complete a run over a comparison that was under way, and it is no damage", async () => {
    await operator.submit(["a"]);
    await worker.report(worker.held, ERROR);
    // The comparison is asked for here, and its answer waits.
    await ledger.step({ kind: "seal", answer: () => undefined });
    await ledger.read();
    const answers = ledger.fed.splice(0);
    expect(answers.map(({ kind }) => kind)).to.include("verified");
    await retry();
    const damage = {
      kind: "corrupt",
      key: "meta/ledger",
      reason: "it was counted while it changed",
    } as const;
    await ledger.step({ kind: "verified", damage }, ...answers.filter(({ kind }) => kind !== "verified"));
    await ledger.settle();
    expect(ledger.fatal).to.deep.equal([]);
    expect(await run()).to.deep.include({ state: RunState.SEALED, running: 1 });
    await worker.report(worker.held);
    expect(await run()).to.deep.include({ state: RunState.COMPLETE });
  });

  it("leave rows that agree with the numbers", async () => {
    await operator.submit(["a", "b", "c"]);
    await worker.report(worker.held, ERROR);
    await retry({ failureClass: "error" });
    await worker.report(worker.held.slice(0, 1));
    expect(await verifyLedger(ledger.store, ledger.state.ledger.tally.numbers)).to.equal(undefined);
  });

  it("stand among the results where they ended last", async () => {
    await operator.submit(["a", "b"]);
    await worker.report(worker.held.slice(0, 1), ERROR);
    const before = await operator.readAll(ResultOrder.COMPLETION);
    expect(before.texts).to.deep.equal(["a"]);
    await retry();
    expect((await operator.readAll(ResultOrder.COMPLETION)).texts).to.deep.equal([]);
    expect((await operator.readAll(ResultOrder.INPUT)).texts).to.deep.equal([]);
    await worker.report(worker.held.filter(({ text }) => text === "b"));
    await worker.report(worker.held);
    expect((await operator.readAll(ResultOrder.COMPLETION)).texts).to.deep.equal(["b", "a"]);
    expect((await operator.readAll(ResultOrder.INPUT)).texts).to.deep.equal(["a", "b"]);
    // A reader that had it as failed reads its new result.
    const { after } = before.last;
    expect((await operator.readAll(ResultOrder.COMPLETION, { after })).texts).to.deep.equal(["b", "a"]);
  });

  it("are refused when what is asked makes no sense", async () => {
    const calls = [
      retry({ failureClass: "sorrow" }),
      retry({ after: "somewhere" }),
      retry({ items: ["abc"] }),
      retry({ items: Array.from({ length: 1_001 }, () => "0".repeat(64)) }),
    ];
    for (const call of calls) expect((await failureOf(call)).code).to.equal("request_invalid");
  });
});
