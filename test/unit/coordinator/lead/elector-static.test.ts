import { expect } from "chai";
import { StaticElector } from "../../../../src/coordinator/lead/elector.ts";
import type { Loss } from "../../../../src/coordinator/lead/elector.ts";
import { StorageLease } from "../../../../src/coordinator/lead/lease.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import { leadershipIn } from "../../../support/ledger-rows.ts";
import { WatchedStore } from "../../../support/watched-store.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

describe("the elector of a store that one process has", () => {
  let clock: VirtualClock;
  let store: WatchedStore;
  let elector: StaticElector;
  let lost: Loss[];

  beforeEach(async () => {
    clock = new VirtualClock();
    store = new WatchedStore(new MemoryStore());
    await new StorageLease(store, "before").claim();
    elector = new StaticElector(new StorageLease(store, "own"), clock);
    lost = [];
  });

  const campaign = (): ReturnType<StaticElector["campaign"]> =>
    elector.campaign({ onLost: (loss) => void lost.push(loss) });

  it("leads at once, whoever led before, with the next epoch", async () => {
    expect(elector.mayAct()).to.equal(false);
    expect((await campaign()).epoch).to.equal(1);
    expect(elector.mayAct()).to.equal(true);
  });

  it("has no deadline, and no timer", async () => {
    await campaign();
    expect(clock.armed).to.equal(0);
    await clock.advance(86_400_000);
    expect(elector.mayAct()).to.equal(true);
    expect(await elector.isLeader()).to.equal(true);
  });

  it("reads the store at most once a second when a worker doubts it, and goes on", async () => {
    await campaign();
    store.gets = 0;
    for (let time = 0; time < 20; time++) expect(await elector.isLeader({ doubted: true })).to.equal(true);
    expect(store.gets).to.equal(2);
    await clock.advance(1_000);
    expect(await elector.isLeader({ doubted: true })).to.equal(true);
    expect(store.gets).to.equal(4);
    expect(lost).to.deep.equal([]);
  });

  it("has lost, once, when the row names another holder, and then writes nothing", async () => {
    await campaign();
    await new StorageLease(store, "other").claim();
    expect(await elector.isLeader({ doubted: true })).to.equal(false);
    await clock.advance(2_000);
    expect(await elector.isLeader({ doubted: true })).to.equal(false);
    expect(lost).to.deep.equal([{ reason: "another coordinator holds the lease", seenEpoch: 2 }]);
    expect(elector.mayAct()).to.equal(false);
    await elector.resign();
    expect(await leadershipIn(store)).to.deep.equal({ lease: [2, "other"], epoch: 2 });
  });

  it("lets go of the lease and leads no more", async () => {
    await campaign();
    await elector.resign();
    expect(await leadershipIn(store)).to.deep.equal({ lease: [1, null], epoch: 1 });
    expect([elector.mayAct(), lost]).to.deep.equal([false, []]);
  });
});
