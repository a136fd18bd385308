// Checkpoints that workers send while attempts run: who dies without a word has left them behind.
import { expect } from "chai";
import type { SentCheckpoint, SessionPort } from "../../../../src/coordinator/turn/session-frame.ts";
import { CHECKPOINTS_PREFIX } from "../../../../src/storage/keys.ts";
import { PowerLossStore } from "../../../support/power-loss-store.ts";
import { World } from "../../../support/world.ts";
import { ERROR, incarnationId } from "../../../support/world-worker.ts";
import type { HeldItem, WorldWorker } from "../../../support/world-worker.ts";

const FAILURE_MS = 6_250;
const BACKOFF_MS = 61_000;

describe("checkpoints of attempts that run", () => {
  let ledger: World;
  let worker: WorldWorker;
  let other: WorldWorker;
  let answers: number;

  beforeEach(async () => {
    ledger = await World.start({ store: new PowerLossStore() });
    worker = await ledger.worker(1, { slots: 2 });
    other = await ledger.worker(2, { slots: 2 });
    answers = 0;
  });

  const kept = (): Promise<number> => ledger.countUnder(CHECKPOINTS_PREFIX);
  const given = ({ held }: WorldWorker): string[] =>
    held.map(({ checkpoint }) => Buffer.from(checkpoint ?? []).toString());

  async function hold(): Promise<HeldItem> {
    await ledger.submit(["a"]);
    await worker.ask(1);
    const [item] = worker.held;
    if (item === undefined) throw new Error("nothing is held");
    return item;
  }

  function sentOf({ id, attempt, epoch }: HeldItem, text: string): SentCheckpoint {
    return { id, attempt, epoch, checkpoint: Buffer.from(text) };
  }

  async function send(
    by: WorldWorker,
    checkpoints: SentCheckpoint[],
    port: SessionPort = by.port,
  ): Promise<void> {
    const settled = (): void => void answers++;
    await ledger.step({ kind: "checkpoints", workerId: by.id, port, checkpoints, settled });
  }

  it("are given with the next attempt when the worker is lost, the newest of them", async () => {
    const item = await hold();
    await send(worker, [sentOf(item, "early")]);
    await send(worker, [sentOf(item, "late")]);
    await ledger.watch(FAILURE_MS, [other]);
    await other.ask(1);
    expect([other.held[0]?.attempt, given(other)]).to.deep.equal([2, ["late"]]);
  });

  it("are not synced, and change nothing else of the item", async () => {
    const item = await hold();
    await send(worker, [sentOf(item, "one")]);
    expect(ledger.written.durability).to.equal("flush");
    expect(ledger.written.puts.map(({ key }) => key.slice(0, CHECKPOINTS_PREFIX.length))).to.deep.equal([
      CHECKPOINTS_PREFIX,
    ]);
    expect(answers).to.equal(1);
    expect(await ledger.view()).to.include({ running: 1, pending: 0, staleReports: 0 });
  });

  it("are given when the worker comes back without the attempt, as a new process", async () => {
    await send(worker, [sentOf(await hold(), "one")]);
    await worker.startAnew(2);
    await other.ask(1);
    await worker.ask(1);
    await ledger.watch(BACKOFF_MS, [worker, other]);
    expect([...given(worker), ...given(other)]).to.deep.equal(["one"]);
  });

  it("are taken and given after a change of the leader, too", async () => {
    const item = await hold();
    await send(worker, [sentOf(item, "one")]);
    await ledger.lead();
    expect(await worker.rejoin()).to.deep.equal([true]);
    await send(worker, [sentOf(item, "two")]);
    await ledger.lead();
    await other.rejoin();
    await ledger.watch(FAILURE_MS, [other]);
    await other.ask(1);
    expect(given(other)).to.deep.equal(["two"]);
  });

  it("are taken of an attempt that was adopted", async () => {
    const item = await hold();
    await ledger.losePower();
    expect(await worker.rejoin()).to.deep.equal([true]);
    await send(worker, [sentOf(item, "one")]);
    expect(await kept()).to.equal(1);
    await worker.report([item]);
    expect(await kept()).to.equal(0);
  });

  it("give way to the one that comes with the end of the attempt", async () => {
    const item = await hold();
    await send(worker, [sentOf(item, "one")]);
    const { id, attempt, epoch, incarnation } = item;
    await worker.send([{ id, attempt, epoch, incarnation, outcome: ERROR, checkpoint: Buffer.from("two") }]);
    worker.forget([item]);
    await ledger.watch(BACKOFF_MS, [worker, other]);
    await other.ask(1);
    expect(given(other)).to.deep.equal(["two"]);
  });

  it("are gone when the first attempt succeeds, also under another leader", async () => {
    await ledger.submit(["a", "b"]);
    await worker.ask(2);
    const [a, b] = worker.held;
    if (a === undefined || b === undefined) throw new Error("both are held");
    await send(worker, [sentOf(a, "one"), sentOf(b, "two")]);
    await worker.report([a]);
    expect(await kept()).to.equal(1);
    await ledger.lead();
    await worker.rejoin();
    await worker.report([b]);
    expect(await kept()).to.equal(0);
  });

  it("are dropped, and answered, when they are of another attempt, leadership, process or worker", async () => {
    const item = await hold();
    await send(worker, [
      sentOf({ ...item, attempt: item.attempt + 1 }, "later"),
      sentOf({ ...item, epoch: item.epoch + 1 }, "of the next leader"),
      sentOf({ ...item, id: Buffer.alloc(32, 9) }, "of nothing"),
    ]);
    await send(other, [sentOf(item, "of another worker")]);
    expect([await kept(), answers]).to.deep.equal([0, 2]);
    await worker.report([item]);
    await send(worker, [sentOf(item, "too late")]);
    expect([await kept(), answers]).to.deep.equal([0, 3]);
  });

  it("are dropped that an older process has sent before it was superseded", async () => {
    const item = await hold();
    const { port } = worker;
    worker.incarnation = incarnationId(2);
    worker.sequence = 0;
    await worker.beat();
    await send(worker, [sentOf(item, "of the old one")], port);
    expect([await kept(), answers]).to.deep.equal([0, 1]);
  });

  it("are dropped that come on a stream that is not the worker's current one", async () => {
    const item = await hold();
    const { port } = worker;
    await worker.hello();
    await send(worker, [sentOf(item, "on the old stream")], port);
    expect([await kept(), answers]).to.deep.equal([0, 1]);
  });

  it("that are empty leave what is there", async () => {
    const item = await hold();
    await send(worker, [sentOf(item, "one")]);
    await send(worker, [sentOf(item, "")]);
    await ledger.watch(FAILURE_MS, [other]);
    await other.ask(1);
    expect(given(other)).to.deep.equal(["one"]);
  });
});
