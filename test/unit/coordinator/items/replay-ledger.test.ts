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
import type { Entry, ScanRange } from "../../../../src/storage/store.ts";
import { prefixRange } from "../../../../src/storage/store.ts";
import { batchOf } from "../../../support/batch.ts";
import { LedgerHarness } from "../../../support/ledger-harness.ts";
import { ERROR } from "../../../support/ledger-worker.ts";
import { LEADERSHIP, LIVENESS } from "../../../support/reactor-harness.ts";

/** Counts what is read. */
class CountingStore extends MemoryStore {
  gets = 0;
  scans = 0;
  rows = 0;

  override get(key: string): Promise<Uint8Array | undefined> {
    this.gets++;
    return super.get(key);
  }

  override async scan(range: ScanRange): Promise<Entry[]> {
    this.scans++;
    const entries = await super.scan(range);
    this.rows += entries.length;
    return entries;
  }
}

const OPTIONS = { liveness: LIVENESS, workersMax: 10, nowMs: 0, ...LEADERSHIP };

/** A ledger with so many results, six items in flight, and some of every other kind. */
async function ledgerWith(done: number): Promise<LedgerHarness> {
  const ledger = await LedgerHarness.start({ isChecked: false });
  const worker = await ledger.worker(1, { slots: 1_024 });
  await ledger.submit(Array.from({ length: done }, (_, at) => `done ${at}`));
  await worker.ask(done);
  await worker.report([...worker.held]);
  await ledger.submit(
    Array.from({ length: 10 }, (_, at) => `left ${at}`),
    { batchNumber: 2 },
  );
  await worker.ask(10);
  await worker.report(worker.held.slice(0, 2), ERROR);
  await worker.release(worker.held.slice(0, 2));
  await ledger.submit(["never given out"], { batchNumber: 3 });
  return ledger;
}

async function rowsOf(ledger: LedgerHarness): Promise<Entry[]> {
  return ledger.store.scan({ from: "!", to: "~", limit: 1_000_000 });
}

describe("the ledger of a new leader", () => {
  it("costs what is in flight and not what is done", async () => {
    const costs: object[] = [];
    for (const done of [10, 2_000]) {
      const store = new CountingStore(await rowsOf(await ledgerWith(done)));
      const { ledger } = await replay(store, OPTIONS);
      expect(ledger.tally.count("done")).to.equal(done);
      const { gets, scans, rows } = store;
      costs.push({ gets, scans, rows });
    }
    expect(costs[1]).to.deep.equal(costs[0]);
  });

  it("goes on with the first loads no differently either", async () => {
    const costs: object[] = [];
    for (const done of [10, 2_000]) {
      const store = new CountingStore(await rowsOf(await ledgerWith(done)));
      const ledger = await LedgerHarness.start({ store, isChecked: false });
      await ledger.watch(250);
      const { gets, scans, rows } = store;
      costs.push({ gets, scans, rows });
    }
    expect(costs[1]).to.deep.equal(costs[0]);
  });

  describe("refuses a store", () => {
    const damage = (row: Entry): Entry => {
      const value = Buffer.from(row.value);
      value[value.length - 1] = (value[value.length - 1] ?? 0) ^ 1;
      return { key: row.key, value };
    };

    for (const prefix of [RUNNING_PREFIX, "meta/", WORKERS_PREFIX]) {
      it(`with a damaged row under ${prefix}, and names it`, async () => {
        const { store } = await ledgerWith(3);
        const rows = await store.scan({ ...prefixRange(prefix), limit: 1 });
        const [row] = rows;
        if (row === undefined) throw new Error(`nothing under ${prefix}`);
        await store.commit(batchOf({ puts: [damage(row)] }));
        const error = await replay(store, OPTIONS).catch((thrown: unknown) => thrown);
        expect(error).to.include({ code: "store_corrupt" });
        expect((error as RolloutError).params["key"]).to.equal(row.key);
      });
    }

    it("with a row in flight that is gone", async () => {
      const { store } = await ledgerWith(3);
      const [row] = await store.scan({ ...prefixRange(RUNNING_PREFIX), limit: 1 });
      await store.commit(batchOf({ deletes: [row?.key ?? ""] }));
      const error = await replay(store, OPTIONS).catch((thrown: unknown) => thrown);
      expect((error as RolloutError).params["key"]).to.equal(LEDGER_KEY);
    });

    it("with an item in flight at a worker that the registry does not have", async () => {
      const { store } = await ledgerWith(3);
      const rows = await store.scan({ ...prefixRange(WORKERS_PREFIX), limit: 10 });
      const counts = await store.scan({ ...prefixRange("counts/"), limit: 10 });
      const deletes = [...rows, ...counts].map(({ key }) => key);
      await store.commit(batchOf({ deletes }));
      const error = await replay(store, OPTIONS).catch((thrown: unknown) => thrown);
      expect((error as RolloutError).params["key"]).to.match(/^running\//);
    });

    it("with a run in a state that its chart does not have", async () => {
      const { store } = await ledgerWith(0);
      const value = Buffer.from((await store.get(LEDGER_KEY)) ?? []);
      await store.commit(batchOf({ puts: [{ key: RUN_KEY, value }] }));
      const error = await replay(store, OPTIONS).catch((thrown: unknown) => thrown);
      expect((error as RolloutError).params["key"]).to.equal(RUN_KEY);
    });
  });

  describe("stops over damage that it meets later, and names it:", () => {
    for (const prefix of [ITEMS_PREFIX, RETURNED_PREFIX, DELAYED_PREFIX]) {
      it(`a row under ${prefix}`, async () => {
        const { store } = await ledgerWith(0);
        const rows = await store.scan({ ...prefixRange(prefix), limit: 100 });
        const row = rows.at(-1);
        if (row === undefined) throw new Error(`nothing under ${prefix}`);
        await store.commit(batchOf({ puts: [{ key: row.key, value: Buffer.from("no record") }] }));
        const ledger = await LedgerHarness.start({ store, isChecked: false });
        await ledger.submit(["one more"], { batchNumber: 4 });
        await ledger.watch(250);
        const [error] = ledger.fatal;
        expect(error).to.include({ code: "store_corrupt" });
        expect((error as RolloutError).params["key"]).to.equal(row.key);
      });
    }

    it("an item that was returned and is gone", async () => {
      const { store } = await ledgerWith(0);
      const [row] = await store.scan({ ...prefixRange(RETURNED_PREFIX), limit: 1 });
      const key = `${ITEMS_PREFIX}${row?.key.slice(RETURNED_PREFIX.length) ?? ""}`;
      await store.commit(batchOf({ deletes: [key] }));
      const ledger = await LedgerHarness.start({ store, isChecked: false });
      await ledger.watch(250);
      expect((ledger.fatal[0] as RolloutError).params["key"]).to.equal(key);
    });
  });
});
