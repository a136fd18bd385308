// The ledger when the machine of the coordinator loses its power: what was acknowledged is there, what was only flushed may be
// gone, and the workers' own statements put the rest in order.
import { expect } from "chai";
import { seededRandom } from "../../../../src/base/random.ts";
import { itemIdText } from "../../../../src/coordinator/ledger/place.ts";
import { doneRecord } from "../../../../src/coordinator/ledger/records.ts";
import { decodeRecord, okOrFailure } from "../../../../src/storage/codec.ts";
import { DONE_PREFIX, ITEM_INDEX_PREFIX } from "../../../../src/storage/keys.ts";
import { PowerLossStore } from "../../../support/power-loss-store.ts";
import { World } from "../../../support/world.ts";
import { ERROR, reportOf } from "../../../support/world-worker.ts";
import type { HeldItem, WorldWorker } from "../../../support/world-worker.ts";
import fc from "fast-check";

/** The results that the store has: id → output. */
async function resultsIn(ledger: World): Promise<Map<string, string>> {
  const rows = await ledger.rowsUnder(DONE_PREFIX);
  const results = rows.map(({ key, value }) => okOrFailure("", decodeRecord(doneRecord, key, value)));
  return new Map(results.map(({ id, output }) => [itemIdText(id), Buffer.from(output).toString()]));
}

describe("the ledger after a loss of power", () => {
  let ledger: World;
  let workers: WorldWorker[];

  beforeEach(async () => {
    await begin();
  });

  async function begin(): Promise<void> {
    ledger = await World.start({ store: new PowerLossStore() });
    workers = [await ledger.worker(1, { slots: 2 }), await ledger.worker(2, { slots: 2 })];
  }

  const first = ({ held: [item] }: WorldWorker): HeldItem => {
    if (item === undefined) throw new Error("nothing is held");
    return item;
  };

  it("has forgotten an assignment that was not synced: it is the worker's that is heard of it first", async () => {
    const [one, two] = workers;
    if (one === undefined || two === undefined) return expect.fail("there are two workers");
    await ledger.submit(["a"]);
    await one.ask(1);
    const lost = first(one);
    expect((ledger.store as PowerLossStore).atRisk).to.be.above(0);
    await ledger.losePower();
    await two.reconnect();
    await two.ask(1);
    expect(first(two), "the same attempt of a later leadership").to.include({ attempt: 1, epoch: 1 });
    await one.reconnect();
    expect(one.held).to.deep.equal([]);
    await one.send([reportOf(lost, ERROR)]);
    await one.send([reportOf(lost)]);
    expect(await ledger.view()).to.include({ running: 1, done: 0, failed: 0 });
    await two.report([...two.held]);
    expect(await ledger.view()).to.include({ done: 1 });
  });

  it("keeps what a synced commit came after", async () => {
    const [one, two] = workers;
    if (one === undefined || two === undefined) return expect.fail("there are two workers");
    await ledger.submit(["a", "b"]);
    await one.ask(1);
    await two.ask(1);
    await one.report([first(one)]);
    await ledger.losePower();
    await two.reconnect();
    expect(two.texts).to.deep.equal(["b"]);
    expect(await ledger.view()).to.include({ running: 1, done: 1 });
  });

  it("has every submission and every result that was acknowledged, and finishes", async () => {
    const step = fc.record({
      what: fc.constantFrom("submit", "ask", "ask", "report", "report", "fail", "handBack", "power"),
      worker: fc.nat(1),
      count: fc.integer({ min: 1, max: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), fc.nat(), async (steps, seed) => {
        await begin();
        const random = seededRandom(seed);
        const acknowledged = new Map<string, string>();
        let [submitted, batchNumber] = [0, 0];
        for (const { what, worker: number, count } of [...steps, { what: "power", worker: 0, count: 1 }]) {
          const worker = workers[number];
          if (worker === undefined) continue;
          const items = worker.held.slice(0, count);
          switch (what) {
            case "submit":
              await ledger.submit(
                Array.from({ length: count }, () => `item ${submitted++}`),
                { batchNumber: ++batchNumber },
              );
              break;
            case "ask":
              await worker.ask(count);
              break;
            case "report":
              await worker.report(items);
              for (const { id, text } of items) acknowledged.set(itemIdText(id), text.toUpperCase());
              break;
            case "fail":
              await worker.report(items, { kind: "preempted" });
              break;
            case "handBack":
              await worker.handBack(items);
              break;
            default:
              await ledger.losePower(random);
              expect(await ledger.countUnder(ITEM_INDEX_PREFIX)).to.equal(submitted);
              expect([...(await resultsIn(ledger))]).to.have.deep.members([...acknowledged]);
              for (const each of workers) await each.reconnect();
          }
        }
        for (const worker of workers) {
          await worker.ask(1_000);
          await worker.report([...worker.held]);
        }
        expect(await ledger.view()).to.include({ pending: 0, running: 0, done: submitted });
      }),
      { numRuns: 60, seed: 20_261_118 },
    );
  });
});
