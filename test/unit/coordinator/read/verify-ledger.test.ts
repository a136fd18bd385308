// The walk over everything at the end of a run: how much of it is in memory at a time.
import { expect } from "chai";
import { verifyLedger } from "../../../../src/coordinator/read/verify-ledger.ts";
import type { Entry, ScanRange } from "../../../../src/storage/store.ts";
import { DelegatingStore } from "../../../support/delegating-store.ts";
import { LedgerHarness } from "../../../support/ledger-harness.ts";

/** The bytes of the largest page. */
class WeighingStore extends DelegatingStore {
  bytes = 0;

  override async scan(range: ScanRange): Promise<Entry[]> {
    const page = await super.scan(range);
    const bytes = page.reduce((sum, { value }) => sum + value.length, 0);
    this.bytes = Math.max(this.bytes, bytes);
    return page;
  }
}

const MIB = 2 ** 20;

describe("the check at the end of a run", () => {
  it("reads pages that are bounded by their bytes, and finds what is wrong behind the first one", async () => {
    const ledger = await LedgerHarness.start({ isChecked: false });
    await ledger.submit(["light", "lighter"]);
    for (let batchNumber = 2; batchNumber <= 13; batchNumber++)
      await ledger.submit([String.fromCharCode(96 + batchNumber).repeat(2 * MIB)], { batchNumber });
    const { numbers } = ledger.state.ledger.tally;
    const store = new WeighingStore(ledger.store);
    expect(await verifyLedger(store, numbers)).to.equal(undefined);
    expect(store.bytes, "4 MiB, and the row that takes it over that").to.be.within(4 * MIB, 6.5 * MIB);
    const [last] = (await ledger.store.scan({ from: "items/", to: "items0", limit: 100 })).slice(-1);
    await ledger.store.commit({ puts: [], deletes: [last?.key ?? ""], expect: [], durability: "flush" });
    expect(await verifyLedger(store, numbers)).to.include({ kind: "corrupt", key: "meta/ledger" });
  });
});
