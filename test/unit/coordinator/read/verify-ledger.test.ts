// The walk over everything at the end of a run: how much of it is in memory at a time.
import { expect } from "chai";
import { verifyLedger } from "../../../../src/coordinator/read/verify-ledger.ts";
import { WatchedStore } from "../../../support/watched-store.ts";
import { World } from "../../../support/world.ts";

const MIB = 2 ** 20;

describe("the check at the end of a run", () => {
  it("reads pages that are bounded by their bytes, and finds what is wrong behind the first one", async () => {
    const ledger = await World.start({ isChecked: false });
    await ledger.submit(["light", "lighter"]);
    for (let batchNumber = 2; batchNumber <= 13; batchNumber++)
      await ledger.submit([String.fromCharCode(96 + batchNumber).repeat(2 * MIB)], { batchNumber });
    const { numbers } = ledger.state.ledger.tally;
    const store = new WatchedStore(ledger.store);
    expect(await verifyLedger(store, numbers)).to.equal(undefined);
    expect(store.largestBytes, "4 MiB, and the row that takes it over that").to.be.within(4 * MIB, 6.5 * MIB);
    const [last] = (await ledger.store.scan({ from: "items/", to: "items0", limit: 100 })).slice(-1);
    await ledger.store.commit({ puts: [], deletes: [last?.key ?? ""], expect: [], durability: "flush" });
    expect(await verifyLedger(store, numbers)).to.include({ kind: "corrupt", key: "meta/ledger" });
  });
});
