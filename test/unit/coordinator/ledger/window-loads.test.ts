import { expect } from "chai";
import type { ReportedOutcome } from "../../../../src/coordinator/turn/session-frame.ts";
import { ITEMS_PREFIX } from "../../../../src/storage/keys.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import { WatchedStore } from "../../../support/watched-store.ts";
import { World } from "../../../support/world.ts";

const MIB = 2 ** 20;
const LARGE = "x".repeat(MIB);
/** An item of no concern, and final. */
const ENDED: ReportedOutcome = { kind: "too_large", message: "" };

describe("an item that is submitted", () => {
  it("waits in memory where all before it do, and is not read back", async () => {
    const store = new WatchedStore(new MemoryStore());
    const ledger = await World.start({ store, isChecked: false });
    await ledger.submit(["a", "b"], { priority: 1, batchNumber: 1 });
    await ledger.submit(["c"], { priority: 0, batchNumber: 2 });
    const read = store.scans.length;
    const worker = await ledger.worker(1, { credit: 10 });
    await ledger.submit(["d"], { priority: 1, batchNumber: 3 });
    expect(worker.held.map(({ text }) => text)).to.deep.equal(["a", "b", "c", "d"]);
    expect(store.scans.slice(read).filter(({ range }) => range.from.startsWith(ITEMS_PREFIX))).to.deep.equal(
      [],
    );
  });

  it("keeps nothing of the message that it came in", async () => {
    const ledger = await World.start();
    await ledger.submit(["a", "b"]);
    const [window] = ledger.state.ledger.fresh.values();
    expect(window?.peek()?.payload.buffer.byteLength).to.equal(1);
  });

  it("is not let in before items of a higher priority that are still to be read", async () => {
    const ledger = await World.start({ isChecked: false });
    const heavy = Array.from({ length: 30 }, (_, at) => `${at} ${LARGE}`);
    await ledger.offer(heavy, { priority: 1, batchNumber: 1 });
    await ledger.offer(["a"], { priority: 0, batchNumber: 2 });
    expect([...ledger.state.ledger.fresh].map(([, { size, isWhole }]) => [size, isWhole])).to.deep.equal([
      [23, false],
      [0, false],
    ]);
  });
});

describe("windows of items that were never given out", () => {
  let ledger: World;
  let batches: number;

  beforeEach(async () => {
    ledger = await World.start({
      isChecked: false,
      limits: { maxFails: { kind: "unlimited" } },
    });
    batches = 0;
  });

  async function submit(priority: number, count: number): Promise<void> {
    const lines = Array.from({ length: count }, (_, at) => `${priority} ${at} ${LARGE}`);
    await ledger.submit(lines, { priority, batchNumber: ++batches });
  }

  const held = (): [number, number][] =>
    [...ledger.state.ledger.fresh].map(([priority, { size }]) => [priority, size]);

  const weight = (): number =>
    [...ledger.state.ledger.fresh.values()].reduce((sum, window) => sum + window.weight, 0);

  it("share the room of one, whatever the number of priorities (C8)", async () => {
    for (const priority of [1, 2, 3]) await submit(priority, 50);
    expect(weight()).to.be.within(33 * MIB, 65 * MIB);
    await ledger.lead();
    const worker = await ledger.worker(1);
    await ledger.settle();
    expect(weight()).to.be.within(33 * MIB, 65 * MIB);
    expect(held()[0], "what goes out first is there first").to.deep.equal([3, 50]);
    const given: string[] = [];
    while (given.length < 150) {
      await worker.ask(10);
      expect(worker.held).to.have.length(10);
      given.push(...worker.held.map(({ text }) => text.slice(0, 1)));
      expect(weight()).to.be.at.most(65 * MIB);
      await worker.report([...worker.held], ENDED);
    }
    expect(given.join("")).to.equal("3".repeat(50) + "2".repeat(50) + "1".repeat(50));
  });

  it("of a low priority are not loaded while those of a higher one have much", async () => {
    await submit(1, 5);
    await submit(9, 60);
    await ledger.lead();
    const worker = await ledger.worker(1);
    await ledger.settle();
    expect(held()).to.deep.equal([
      [9, 60],
      [1, 0],
    ]);
    await worker.ask(40);
    await ledger.watch(250, [worker]);
    expect(held()).to.deep.equal([
      [9, 20],
      [1, 5],
    ]);
  });

  it("give their room to what is submitted with a higher priority, and get it back", async () => {
    await submit(1, 60);
    expect(held()).to.deep.equal([[1, 60]]);
    await submit(9, 50);
    expect(held()[0]).to.deep.equal([9, 50]);
    expect(weight()).to.be.at.most(65 * MIB);
    const worker = await ledger.worker(1);
    for (let time = 0; time < 11; time++) {
      await worker.ask(10);
      await worker.report([...worker.held], ENDED);
    }
    expect(await ledger.view()).to.include({ pending: 0, failed: 110 });
  });
});
