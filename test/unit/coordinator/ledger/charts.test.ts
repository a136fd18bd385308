import { expect } from "chai";
import { checkLedgerCharts } from "../../../../src/coordinator/ledger/charts.ts";
import { StorageLease } from "../../../../src/coordinator/lead/lease.ts";
import { LEDGER_CHARTS_KEY } from "../../../../src/storage/keys.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import type { Expectation } from "../../../../src/storage/store.ts";
import { chartsEntry } from "../../../support/ledger-rows.ts";
import { failureOf } from "../../../support/rejection.ts";

function storeOf(...stamps: Parameters<typeof chartsEntry>): MemoryStore {
  return new MemoryStore([chartsEntry(...stamps)]);
}

async function lead(store: MemoryStore): Promise<Expectation> {
  return (await new StorageLease(store, "a").claim()).epochRow;
}

describe("the charts of the ledger", () => {
  it("are stamped into a new ledger, and found again by the next leader", async () => {
    const store = new MemoryStore();
    await checkLedgerCharts(store, await lead(store));
    const stamp = await store.get(LEDGER_CHARTS_KEY);
    expect(stamp).to.not.equal(undefined);
    await checkLedgerCharts(store, await lead(store));
    expect(await store.get(LEDGER_CHARTS_KEY)).to.deep.equal(stamp);
  });

  for (const [what, store] of [
    ["another version", storeOf(["worker-lifecycle", "2", "0"])],
    ["the same version and another structure", storeOf(["worker-lifecycle", "1", "0"])],
    ["nothing of one that this leader needs", storeOf(["work-item", "1", "0"])],
  ] as const)
    it(`are refused when the store says ${what}, by name`, async () => {
      const error = await failureOf(checkLedgerCharts(store, await lead(store)));
      expect(error.code).to.equal("store_newer");
      expect(error.params["key"]).to.equal(LEDGER_CHARTS_KEY);
      expect(error.params["known"]).to.contain("worker-lifecycle 1");
    });

  it("are refused when the stamp is damaged", async () => {
    const store = new MemoryStore([{ key: LEDGER_CHARTS_KEY, value: new Uint8Array(30) }]);
    expect(await failureOf(checkLedgerCharts(store, await lead(store)))).to.include({
      code: "store_corrupt",
    });
  });

  it("are not stamped by a leader that was deposed", async () => {
    const store = new MemoryStore();
    const older = await lead(store);
    await lead(store);
    await checkLedgerCharts(store, older);
    expect(await store.get(LEDGER_CHARTS_KEY)).to.equal(undefined);
  });
});
