import { expect } from "chai";
import { LedgerHarness } from "../../support/ledger-harness.ts";
import type { LedgerWorker } from "../../support/ledger-worker.ts";

const B = "01SVBM1SS10N0000000000000B";

function texts(count: number, prefix = "item"): string[] {
  return Array.from({ length: count }, (_, at) => `${prefix} ${at}`);
}

describe("dispatch", () => {
  let ledger: LedgerHarness;

  beforeEach(async () => {
    ledger = await LedgerHarness.start();
  });

  it("gives out by priority, then by submission", async () => {
    await ledger.submit(["low 1", "low 2"], { priority: -1 });
    await ledger.submit(["high 1", "high 2"], { submission: B, priority: 7 });
    await ledger.submit(["mid"], { submission: B, batchNumber: 2 });
    await ledger.submit(["high 3"], { submission: B, batchNumber: 3, priority: 7 });
    const worker = await ledger.worker(1, { credit: 10 });
    expect(worker.texts).to.deep.equal(["high 1", "high 2", "high 3", "mid", "low 1", "low 2"]);
  });

  it("gives a returned item out again before all that came after it", async () => {
    await ledger.submit(texts(6));
    const worker = await ledger.worker(1, { credit: 3 });
    await worker.release(worker.held.slice(0, 2));
    await worker.ask(3);
    expect(worker.texts).to.deep.equal(["item 2", "item 0", "item 1", "item 3"].slice(0, 4));
  });

  it("never gives more than was asked for, and what was not given is not lost", async () => {
    await ledger.submit(texts(20));
    const worker = await ledger.worker(1);
    expect(worker.held).to.have.length(0);
    for (const [more, total] of [
      [3, 3],
      [1, 4],
      [0, 4],
      [6, 10],
    ] as const) {
      await worker.ask(more);
      expect(worker.held).to.have.length(total);
    }
  });

  it("remembers what was asked for while there was nothing, and fills it when there is", async () => {
    const worker = await ledger.worker(1, { credit: 3 });
    await ledger.submit(texts(5));
    expect(worker.texts).to.deep.equal(texts(3));
  });

  it("shares out what there is between those that ask", async () => {
    const workers: LedgerWorker[] = [];
    for (const number of [1, 2, 3]) workers.push(await ledger.worker(number, { credit: 100 }));
    await ledger.submit(texts(10));
    expect(workers.map(({ held }) => held.length)).to.deep.equal([4, 4, 2]);
  });

  it("gives a worker with little room no more than that, and the rest to the others", async () => {
    const workers: LedgerWorker[] = [];
    for (const [number, credit] of [
      [1, 1],
      [2, 100],
    ] as const)
      workers.push(await ledger.worker(number, { credit }));
    await ledger.submit(texts(10));
    expect(workers.map(({ held }) => held.length)).to.deep.equal([1, 9]);
  });

  it("gives nothing to a worker that drains (C6), that has left, or that is suspected", async () => {
    const [draining, left, silent] = [
      await ledger.worker(1, { credit: 5 }),
      await ledger.worker(2, { credit: 5 }),
      await ledger.worker(3, { credit: 5 }),
    ];
    draining.state = "Draining";
    await draining.beat();
    left.state = "Gone";
    await left.beat();
    await ledger.watch(1_000, [draining]);
    await ledger.submit(texts(3));
    expect([draining, left, silent].map(({ held }) => held.length)).to.deep.equal([0, 0, 0]);
    await silent.beat();
    expect(silent.texts, "it is heard again").to.deep.equal(texts(3));
  });

  it("believes no more credit than a worker can have", async () => {
    const worker = await ledger.worker(1);
    for (let time = 0; time < 3; time++) await worker.ask(2 ** 32 - 1);
    expect(ledger.state.workers.get(worker.id)?.session?.credit).to.equal(16_384);
  });

  it("numbers assignments without gaps within a process, over several sessions", async () => {
    await ledger.submit(texts(9));
    const worker = await ledger.worker(1, { credit: 2 });
    await worker.hello();
    await worker.ask(3);
    // The harness checks each frame's first number against what the worker has received.
    expect(worker.received).to.equal(5);
  });

  it("puts no more into a frame than fits, and at least one item", async () => {
    const large = "x".repeat(700_000);
    await ledger.submit([`1${large}`, `2${large}`, `3${large}`]);
    const worker = await ledger.worker(1);
    const sizes: number[] = [];
    const { port } = worker;
    const send = port.send.bind(port);
    port.send = (frame) => {
      if (frame.kind === "assignments") sizes.push(frame.items.length);
      send(frame);
    };
    await worker.ask(3);
    expect(sizes).to.deep.equal([2, 1]);
  });

  it("gives out more than a turn's worth in the turns that follow", async () => {
    const many = await LedgerHarness.start({ isChecked: false });
    await many.submit(texts(10_000));
    const worker = await many.worker(1);
    await worker.ask(16_384);
    await many.watch(2_000, [worker]);
    expect(worker.texts).to.deep.equal(texts(10_000));
  });

  it("gives each item once while submissions and loads overtake each other", async () => {
    const worker = await ledger.worker(1, { credit: 1_000 });
    for (let batchNumber = 1; batchNumber <= 20; batchNumber++) {
      await ledger.offer([`item ${batchNumber}`], { batchNumber });
      if (batchNumber % 3 === 0) await ledger.read();
      if (batchNumber % 2 === 0) await ledger.step(...ledger.fed.splice(0));
    }
    await ledger.settle();
    expect(worker.texts).to.deep.equal(Array.from({ length: 20 }, (_, at) => `item ${at + 1}`));
  });
});
