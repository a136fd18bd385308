import { expect } from "chai";
import { replay } from "../../../../src/coordinator/replay.ts";
import type { RolloutError } from "../../../../src/base/errors.ts";
import {
  DELAYED_PREFIX,
  ITEMS_PREFIX,
  LEDGER_KEY,
  RETURNED_PREFIX,
  RUN_KEY,
  RUNNING_PREFIX,
  WORKERS_PREFIX,
} from "../../../../src/storage/keys.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import { prefixRange } from "../../../../src/storage/store.ts";
import { batchOf, EVERYTHING } from "../../../support/batch.ts";
import { failureOf } from "../../../support/rejection.ts";
import { WatchedStore } from "../../../support/watched-store.ts";
import { LEADERSHIP, LIVENESS, texts, World } from "../../../support/world.ts";
import { ERROR } from "../../../support/world-worker.ts";

const OPTIONS = { liveness: LIVENESS, workersMax: 10, nowMs: 0, ...LEADERSHIP };

/** A ledger with so many results, six items in flight, and some of every other kind. */
async function ledgerWith(done: number): Promise<World> {
  const ledger = await World.start({ isChecked: false });
  const worker = await ledger.worker(1, { slots: 1_024 });
  await ledger.submit(texts(done, "done"));
  await worker.ask(done);
  await worker.report([...worker.held]);
  await ledger.submit(texts(10, "left"), { batchNumber: 2 });
  await worker.ask(10);
  await worker.report(worker.held.slice(0, 2), ERROR);
  await worker.handBack(worker.held.slice(0, 2));
  await ledger.submit(["never given out"], { batchNumber: 3 });
  return ledger;
}

async function copyOf({ store }: World): Promise<WatchedStore> {
  return new WatchedStore(new MemoryStore(await store.scan(EVERYTHING)));
}

/** How much was read. */
function costOf({ gets, scans }: WatchedStore): object {
  return { gets, scans: scans.length, rows: scans.reduce((sum, { rows }) => sum + rows.length, 0) };
}

describe("the ledger of a new leader", () => {
  it("reads the items in flight and not the finished ones", async () => {
    const costs: object[] = [];
    for (const done of [10, 2_000]) {
      const store = await copyOf(await ledgerWith(done));
      const { ledger } = await replay(store, OPTIONS);
      expect(ledger.tally.count("done")).to.equal(done);
      costs.push(costOf(store));
    }
    expect(costs[1]).to.deep.equal(costs[0]);
  });

  it("goes on with the first loads no differently either", async () => {
    const costs: object[] = [];
    for (const done of [10, 2_000]) {
      const store = await copyOf(await ledgerWith(done));
      const ledger = await World.start({ store, isChecked: false });
      await ledger.watch(250);
      costs.push(costOf(store));
    }
    expect(costs[1]).to.deep.equal(costs[0]);
  });

  describe("refuses a store", () => {
    for (const prefix of [RUNNING_PREFIX, "meta/", WORKERS_PREFIX]) {
      it(`with a damaged row under ${prefix}, and names it`, async () => {
        const ledger = await ledgerWith(3);
        const key = await ledger.damage(prefix);
        const error = await failureOf(replay(ledger.store, OPTIONS));
        expect([error.code, error.params["key"]]).to.deep.equal(["store_corrupt", key]);
      });
    }

    it("with a row in flight that is gone", async () => {
      const ledger = await ledgerWith(3);
      await ledger.damage(RUNNING_PREFIX, 0, "gone");
      expect((await failureOf(replay(ledger.store, OPTIONS))).params["key"]).to.equal(LEDGER_KEY);
    });

    it("with an item in flight at a worker that the registry does not have", async () => {
      const ledger = await ledgerWith(3);
      for (const prefix of [WORKERS_PREFIX, "counts/"]) await ledger.damage(prefix, 0, "gone");
      expect((await failureOf(replay(ledger.store, OPTIONS))).params["key"]).to.match(/^running\//);
    });

    it("with a run in a state that its chart does not have", async () => {
      const { store } = await ledgerWith(0);
      const value = Buffer.from((await store.get(LEDGER_KEY)) ?? []);
      await store.commit(batchOf({ puts: [{ key: RUN_KEY, value }] }));
      expect((await failureOf(replay(store, OPTIONS))).params["key"]).to.equal(RUN_KEY);
    });
  });

  describe("stops over damage that it meets later, and names it:", () => {
    for (const prefix of [ITEMS_PREFIX, RETURNED_PREFIX, DELAYED_PREFIX]) {
      it(`a row under ${prefix}`, async () => {
        const left = await ledgerWith(0);
        const { store } = left;
        const key = (await left.rowsUnder(prefix)).at(-1)?.key ?? "";
        await store.commit(batchOf({ puts: [{ key, value: Buffer.from("no record") }] }));
        const ledger = await World.start({ store, isChecked: false });
        await ledger.submit(["one more"], { batchNumber: 4 });
        await ledger.watch(250);
        const [error] = ledger.fatal;
        expect(error).to.include({ code: "store_corrupt" });
        expect((error as RolloutError).params["key"]).to.equal(key);
      });
    }

    it("an item that was returned and is gone", async () => {
      const { store } = await ledgerWith(0);
      const [row] = await store.scan({ ...prefixRange(RETURNED_PREFIX), limit: 1 });
      const key = `${ITEMS_PREFIX}${row?.key.slice(RETURNED_PREFIX.length) ?? ""}`;
      await store.commit(batchOf({ deletes: [key] }));
      const ledger = await World.start({ store, isChecked: false });
      await ledger.watch(250);
      expect((ledger.fatal[0] as RolloutError).params["key"]).to.equal(key);
    });
  });
});
