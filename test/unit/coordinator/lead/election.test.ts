// The election, in its own terms: each sentence that users are told of it. The tests of each elector go further.
import { expect } from "chai";
import { StorageElector } from "../../../../src/coordinator/lead/elector-storage.ts";
import type { LeaseTiming } from "../../../../src/coordinator/lead/elector-storage.ts";
import { StaticElector } from "../../../../src/coordinator/lead/elector.ts";
import { StorageLease } from "../../../../src/coordinator/lead/lease.ts";
import { settingOf } from "../../../../src/config/schema.ts";
import { EVENTS } from "../../../../src/observe/events.ts";
import { COORDINATOR_LEASE_KEY, EPOCH_KEY, LEASE_PREFIX } from "../../../../src/storage/keys.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import { prefixRange } from "../../../../src/storage/store.ts";
import { DelegatingStore } from "../../../support/delegating-store.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";
import { RecordingWatchdog } from "../../../support/recording-watchdog.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";
import { WatchedStore } from "../../../support/watched-store.ts";

const TIMING: LeaseTiming = {
  ttlMs: 5_000,
  renewalMs: 1_000,
  deadlineMs: 4_000,
};

/** A store that cannot be reached any more at some point. */
class CutStore extends DelegatingStore {
  isCut = false;

  override get(key: string): Promise<Uint8Array | undefined> {
    return this.isCut ? Promise.reject(new Error("the network is down")) : super.get(key);
  }

  override commit(...batch: Parameters<DelegatingStore["commit"]>): ReturnType<DelegatingStore["commit"]> {
    const cause = new Error("the network is down");
    return this.isCut ? Promise.resolve({ kind: "unknown", cause }) : super.commit(...batch);
  }
}

describe("several coordinators over one store", () => {
  let clock: VirtualClock;
  let shared: MemoryStore;

  beforeEach(() => {
    clock = new VirtualClock({ monotonicMs: 7_000 });
    shared = new MemoryStore();
  });

  function stand(
    name: string,
    timing = TIMING,
  ): { elector: StorageElector; store: CutStore; log: RecordingLogger } {
    const [store, log] = [new CutStore(shared), new RecordingLogger()];
    const lease = new StorageLease(store, name);
    const elector = new StorageElector({
      lease,
      timing,
      clock,
      log,
      watchdog: new RecordingWatchdog(),
    });
    elector.campaign({ onLost: () => undefined }).catch(() => undefined);
    return { elector, store, log };
  }

  const read = (): ReturnType<StorageLease["read"]> => new StorageLease(shared, "a looker-on").read();

  it("election: there is one lease row", async () => {
    stand("one");
    stand("other");
    await clock.advance(10_000);
    const rows = await shared.scan({ ...prefixRange(LEASE_PREFIX), limit: 10 });
    expect(rows.map(({ key }) => key)).to.deep.equal([COORDINATOR_LEASE_KEY]);
  });

  it("election: a campaign takes the row when it is absent, and fails while another renews it", async () => {
    const one = stand("one");
    await clock.advance();
    const other = stand("other");
    await clock.advance(30_000);
    expect([await one.elector.isLeader(), await other.elector.isLeader()]).to.deep.equal([true, false]);
  });

  it("election: a renewal is of one's own row, and keeps its epoch", async () => {
    stand("one");
    await clock.advance();
    const before = (await read()).lease;
    await clock.advance(3_000);
    const after = (await read()).lease;
    expect([after?.epoch, after?.holder]).to.deep.equal([before?.epoch, before?.holder]);
    expect(after?.renewals).to.be.greaterThan(before?.renewals ?? 0);
  });

  it("election: a row has expired when it was seen to stand still for a TTL, whatever clocks on walls say", async () => {
    const one = stand("one");
    await clock.advance();
    one.store.isCut = true;
    const other = stand("other");
    await clock.advance(TIMING.ttlMs - 1_000);
    expect(await other.elector.isLeader()).to.equal(false);
    await clock.advance(2_000);
    expect(await other.elector.isLeader()).to.equal(true);
  });

  it("election: one that cannot reach the store does not lead a TTL later, and its answer is a second old at most", async () => {
    const { elector, store } = stand("one");
    await clock.advance();
    store.isCut = true;
    await clock.advance(500);
    expect(await elector.isLeader()).to.equal(true);
    await clock.advance(1_000);
    expect(await elector.isLeader(), "nothing is known of the last second").to.equal(false);
    await clock.advance(TIMING.ttlMs);
    expect([elector.mayAct(), await elector.isLeader()]).to.deep.equal([false, false]);
  });

  it("election: who resigns frees the row at once, and does not lead before a new campaign", async () => {
    const one = stand("one");
    await clock.advance();
    const other = stand("other");
    await clock.advance(500);
    await one.elector.resign();
    const { lease, epoch } = await read();
    expect([lease?.holder, lease?.epoch, epoch], "the row keeps its epoch").to.deep.equal([null, 0, 0]);
    expect(await one.elector.isLeader()).to.equal(false);
    await clock.advance(1_500);
    expect([await one.elector.isLeader(), await other.elector.isLeader()]).to.deep.equal([false, true]);
  });

  it("election: the TTL is a setting", async () => {
    expect(settingOf("coordinator.failover_threshold").default).to.equal("5s");
    const short = { ttlMs: 500, renewalMs: 100, deadlineMs: 400 };
    const one = stand("one", short);
    await clock.advance();
    one.store.isCut = true;
    const other = stand("other", short);
    await clock.advance(1_000);
    expect(await other.elector.isLeader()).to.equal(true);
  });

  it("election: the holder has a name", async () => {
    stand("one");
    await clock.advance();
    expect((await read()).lease?.holder).to.equal("one");
  });

  it("election: one coordinator alone takes the row at once, and touches no other but the epoch's", async () => {
    const store = new WatchedStore(shared);
    await new StaticElector(new StorageLease(store, "own"), clock).campaign({
      onLost: () => undefined,
    });
    const rows = await shared.scan({ from: "!", to: "~", limit: 100 });
    expect(rows.map(({ key }) => key).sort()).to.deep.equal([EPOCH_KEY, COORDINATOR_LEASE_KEY].sort());
    expect(clock.armed, "it campaigns no more").to.equal(0);
  });

  it("election: campaigns and renewals are no events, and changes of the role are", () => {
    const names = Object.keys(EVENTS);
    expect(names.filter((name) => /campaign|renew|^lease/.test(name))).to.deep.equal([]);
    for (const role of [
      "coordinator_following",
      "coordinator_leading",
      "coordinator_fenced",
      "coordinator_stopped",
    ])
      expect(names).to.include(role);
  });
});
