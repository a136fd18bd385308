// The ledger when the machine of the coordinator loses its power: what was acknowledged is there, what was only flushed may be
// gone, and the workers' own statements put the rest in order.
import { expect } from "chai";
import fc from "fast-check";
import { seededRandom } from "../../../../src/base/random.ts";
import type { Random } from "../../../../src/base/random.ts";
import { itemIdText } from "../../../../src/coordinator/ledger/item-id.ts";
import { doneRecord } from "../../../../src/coordinator/ledger/records.ts";
import { decodeRecord, okOrFailure } from "../../../../src/storage/codec.ts";
import { DONE_PREFIX, ITEM_INDEX_PREFIX } from "../../../../src/storage/keys.ts";
import { PowerLossStore } from "../../../support/power-loss-store.ts";
import type { Store } from "../../../../src/storage/store.ts";
import { prefixRange } from "../../../../src/storage/store.ts";
import { LedgerHarness } from "../../../support/ledger-harness.ts";
import type { HeldItem, LedgerWorker } from "../../../support/ledger-worker.ts";
import { ERROR, reportOf } from "../../../support/ledger-worker.ts";

const nothingSurvives: Random = { unit: () => 0, bytes: (count) => new Uint8Array(count) };

/** The results that the store has: id → output. */
async function resultsIn(store: Store): Promise<Map<string, string>> {
  const rows = await store.scan({ ...prefixRange(DONE_PREFIX), limit: 10_000 });
  const results = rows.map(({ key, value }) => okOrFailure("", decodeRecord(doneRecord, key, value)));
  return new Map(results.map(({ id, output }) => [itemIdText(id), Buffer.from(output).toString()]));
}

describe("the ledger after a loss of power", () => {
  let power: PowerLossStore;
  let ledger: LedgerHarness;
  let workers: LedgerWorker[];

  beforeEach(async () => {
    await begin();
  });

  async function begin(): Promise<void> {
    power = new PowerLossStore();
    ledger = await LedgerHarness.start({ store: power });
    workers = [await ledger.worker(1, { slots: 2 }), await ledger.worker(2, { slots: 2 })];
  }

  async function losePower(random: Random): Promise<void> {
    power = power.losePower(random);
    await ledger.lead(power);
  }

  /** The worker comes back and drops what the verdict says. */
  async function reconnect(worker: LedgerWorker): Promise<void> {
    await worker.beat();
    const held = [...worker.held];
    const verdict = await worker.hello();
    worker.forget(held.filter((_, at) => verdict?.[at] !== true));
  }

  const first = ({ held: [item] }: LedgerWorker): HeldItem => {
    if (item === undefined) throw new Error("nothing is held");
    return item;
  };

  it("has forgotten an assignment that was not synced: it is the worker's that is heard of it first", async () => {
    const [one, two] = workers;
    if (one === undefined || two === undefined) return;
    await ledger.submit(["a"]);
    await one.ask(1);
    const lost = first(one);
    expect(power.atRisk).to.be.above(0);
    await losePower(nothingSurvives);
    await reconnect(two);
    await two.ask(1);
    expect(first(two), "the same attempt of a later leadership").to.include({ attempt: 1, epoch: 1 });
    await reconnect(one);
    expect(one.held).to.deep.equal([]);
    await one.send([reportOf(lost, ERROR)]);
    await one.send([reportOf(lost)]);
    expect(await ledger.view()).to.include({ running: 1, done: 0, failed: 0 });
    await two.report([...two.held]);
    expect(await ledger.view()).to.include({ done: 1 });
  });

  it("keeps what a synced commit came after", async () => {
    const [one, two] = workers;
    if (one === undefined || two === undefined) return;
    await ledger.submit(["a", "b"]);
    await one.ask(1);
    await two.ask(1);
    await one.report([first(one)]);
    await losePower(nothingSurvives);
    await reconnect(two);
    expect(two.texts).to.deep.equal(["b"]);
    expect(await ledger.view()).to.include({ running: 1, done: 1 });
  });

  it("has every submission and every result that was acknowledged, and finishes", async () => {
    const step = fc.record({
      what: fc.constantFrom("submit", "ask", "ask", "report", "report", "fail", "release", "power"),
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
            case "release":
              await worker.release(items);
              break;
            default:
              await losePower(random);
              expect(await power.scan({ ...prefixRange(ITEM_INDEX_PREFIX), limit: 1_000 })).to.have.length(
                submitted,
              );
              expect([...(await resultsIn(power))]).to.have.deep.members([...acknowledged]);
              for (const each of workers) await reconnect(each);
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
