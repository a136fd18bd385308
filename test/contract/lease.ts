// The contract of the lease over every store: the same suite for all of them, run by a file of a few lines. It asks nothing of
// a clock; how long to wait before a lease is taken is the elector's business.
import { expect } from "chai";
import type { LeaseRows, TakeOutcome } from "../../src/coordinator/lead/lease.ts";
import { StorageLease } from "../../src/coordinator/lead/lease.ts";
import { epoch } from "../../src/base/ids.ts";
import { COORDINATOR_LEASE_KEY, EPOCH_KEY } from "../../src/storage/keys.ts";
import type { Batch, CommitOutcome, Store } from "../../src/storage/store.ts";
import { batchOf, putOf } from "../support/batch.ts";
import { DelegatingStore } from "../support/delegating-store.ts";
import { FaultyStore } from "../support/faulty-store.ts";
import { claimIn, leadershipIn, leaseAsBefore, leaseEntry } from "../support/ledger-rows.ts";
import type { StoreFactory } from "./store.ts";

export function leaseContract(name: string, factory: StoreFactory): void {
  describe(`lease contract: ${name}`, () => {
    let store: Store;
    beforeEach(async () => {
      store = await factory.open();
    });
    afterEach(() => store.close());

    takingTests(() => store);
    renewalTests(() => store);
    fencingTests(() => store);
    versionTests(() => store);
    generationTests(() => store);
    doubtTests(() => store);
  });
}

const lease = (store: Store, holder: string): StorageLease => new StorageLease(store, holder);

async function taken(of: StorageLease, rows?: LeaseRows): Promise<Extract<TakeOutcome, { kind: "taken" }>> {
  const outcome = await of.take(rows ?? (await of.read()));
  if (outcome.kind !== "taken") throw new Error(`the lease was not taken: ${outcome.kind}`);
  return outcome;
}

function takingTests(store: () => Store): void {
  it("nobody's is free, and is taken with epoch 0", async () => {
    const challenger = lease(store(), "a");
    const rows = await challenger.read();
    expect(challenger.isFree(rows)).to.equal(true);
    expect((await taken(challenger, rows)).leadership.epoch).to.equal(0);
    expect(await leadershipIn(store())).to.deep.equal({ lease: [0, "a"], epoch: 0 });
  });

  it("another's is not free, and is taken all the same by who has waited, with the next epoch", async () => {
    await taken(lease(store(), "a"));
    const challenger = lease(store(), "b");
    const rows = await challenger.read();
    expect(challenger.isFree(rows)).to.equal(false);
    expect((await taken(challenger, rows)).leadership.epoch).to.equal(1);
    expect(await leadershipIn(store())).to.deep.equal({ lease: [1, "b"], epoch: 1 });
  });

  it("has one winner among those who read the same rows, and the others change nothing", async () => {
    await taken(lease(store(), "old"));
    const challengers = ["a", "b", "c", "d"].map((holder) => lease(store(), holder));
    const sights = await Promise.all(challengers.map((challenger) => challenger.read()));
    const outcomes = await Promise.all(
      challengers.map((challenger, at) => challenger.take(sights[at] as LeaseRows)),
    );
    expect(outcomes.map(({ kind }) => kind).sort()).to.deep.equal(["beaten", "beaten", "beaten", "taken"]);
    const winner = "abcd"[outcomes.findIndex(({ kind }) => kind === "taken")];
    expect(await leadershipIn(store())).to.deep.equal({ lease: [1, winner], epoch: 1 });
  });

  it("gives no epoch twice, and each is above the one before", async () => {
    const epochs: number[] = [];
    const compete = async (holder: string): Promise<void> => {
      const own = lease(store(), holder);
      for (let wins = 0; wins < 5;) {
        const outcome = await own.take(await own.read());
        if (outcome.kind !== "taken") continue;
        wins++;
        epochs.push(outcome.leadership.epoch);
      }
    };
    await Promise.all(["a", "b", "c"].map(compete));
    expect(epochs.toSorted((one, other) => one - other)).to.deep.equal(
      Array.from({ length: 15 }, (_, at) => at),
    );
  });

  it("that was resigned is free at once, and keeps its epoch", async () => {
    const holder = lease(store(), "a");
    await taken(holder);
    await holder.renew();
    await holder.resign();
    expect(await leadershipIn(store())).to.deep.equal({ lease: [0, null], epoch: 0 });
    const next = lease(store(), "b");
    expect(next.isFree(await next.read())).to.equal(true);
    expect((await taken(next)).leadership.epoch).to.equal(1);
  });

  it("is not resigned by who does not hold it any more", async () => {
    const older = lease(store(), "older");
    await taken(older);
    await taken(lease(store(), "newer"));
    await older.resign();
    expect(await leadershipIn(store())).to.deep.equal({ lease: [1, "newer"], epoch: 1 });
  });
}

function renewalTests(store: () => Store): void {
  it("is never the same bytes again when it is renewed, and the epoch row stays as it is", async () => {
    const holder = lease(store(), "a");
    await taken(holder);
    const seen: string[] = [];
    const epochRow = await store().get(EPOCH_KEY);
    for (let time = 0; time < 5; time++) {
      seen.push(Buffer.from((await store().get(COORDINATOR_LEASE_KEY)) ?? []).toString("hex"));
      expect(await holder.renew()).to.deep.equal({ kind: "renewed" });
    }
    expect(new Set(seen).size).to.equal(5);
    expect(await store().get(EPOCH_KEY)).to.deep.equal(epochRow);
    expect(await leadershipIn(store())).to.deep.equal({ lease: [0, "a"], epoch: 0 });
  });

  it("is not taken by who has not seen the last renewal", async () => {
    const holder = lease(store(), "a");
    await taken(holder);
    const challenger = lease(store(), "b");
    const rows = await challenger.read();
    await holder.renew();
    expect(await challenger.take(rows)).to.deep.equal({ kind: "beaten" });
    expect(await holder.renew()).to.deep.equal({ kind: "renewed" });
  });
}

function fencingTests(store: () => Store): void {
  const write = async (outcome: Extract<TakeOutcome, { kind: "taken" }>): Promise<CommitOutcome["kind"]> => {
    const { epochRow } = outcome.leadership;
    const puts = [putOf("item", String(outcome.leadership.epoch))];
    return (await store().commit(batchOf({ puts, expect: [epochRow] }))).kind;
  };

  it("of another is not renewed, and its epoch is told", async () => {
    const older = lease(store(), "older");
    await taken(older);
    await taken(lease(store(), "newer"));
    const before = await store().get(COORDINATOR_LEASE_KEY);
    expect(await older.renew()).to.deep.equal({ kind: "fenced", seenEpoch: 1 });
    expect(await store().get(COORDINATOR_LEASE_KEY)).to.deep.equal(before);
  });

  it("that was taken lets nothing of the older leader through, and everything of the newer", async () => {
    const older = await taken(lease(store(), "older"));
    expect(await write(older)).to.equal("committed");
    const newer = await taken(lease(store(), "newer"));
    expect(await write(older)).to.equal("conflict");
    expect(await write(newer)).to.equal("committed");
  });

  it("goes on letting its leader through when it is renewed", async () => {
    const holder = lease(store(), "a");
    const leading = await taken(holder);
    await holder.renew();
    expect(await write(leading)).to.equal("committed");
  });
}

function versionTests(store: () => Store): void {
  it("of version 1 is read: it is taken, renewed and resigned as one of its own", async () => {
    await store().commit(batchOf({ puts: [leaseEntry(3, "before")] }));
    const next = lease(store(), "a");
    const rows = await next.read();
    expect(rows.lease).to.deep.include({ epoch: 3, holder: "before", address: "" });
    expect((await taken(next, rows)).leadership.epoch).to.be.at.least(4);
    expect(await next.renew()).to.deep.equal({ kind: "renewed" });
    await next.resign();
    expect((await next.read()).lease?.holder).to.equal(null);
  });

  it("is named as newer to a program that knows version 1 only", async () => {
    await taken(lease(store(), "a"));
    const bytes = (await store().get(COORDINATOR_LEASE_KEY)) ?? new Uint8Array();
    expect(leaseAsBefore(bytes)).to.deep.equal({
      ...{ kind: "newer", key: COORDINATOR_LEASE_KEY, found: 2, known: 1 },
    });
  });

  it("says where its holder listens, and keeps that over renewals", async () => {
    const address = "127.0.0.1:1";
    const holder = new StorageLease(store(), "a", { address });
    await taken(holder);
    await holder.renew();
    const { generation } = store();
    expect(await claimIn(store())).to.deep.equal({ address, generation });
    expect((await holder.read()).lease?.address).to.equal(address);
  });
}

/** The same store, which goes on as another branch of its history when it is told. */
class BranchingStore extends DelegatingStore {
  #generation: string;

  constructor(inner: Store, generation = inner.generation) {
    super(inner);
    this.#generation = generation;
  }

  override get generation(): string {
    return this.#generation;
  }

  branchTo(generation: string): void {
    this.#generation = generation;
  }
}

/** A branch whose commits nobody else sees. */
class UnseenBranch extends BranchingStore {
  override async commit(): Promise<CommitOutcome> {
    return { kind: "committed" };
  }
}

const EPOCHS_PER_BRANCH = 65_536;

function generationTests(store: () => Store): void {
  it("of another generation is taken with an epoch above all that the lost branch can have given", async () => {
    await taken(lease(store(), "a"));
    const { leadership } = await taken(lease(new BranchingStore(store(), "another"), "b"));
    expect(leadership.epoch).to.be.at.least(EPOCHS_PER_BRANCH);
    expect(leadership.branchedFrom).to.equal(store().generation);
    expect((await claimIn(store()))?.generation).to.equal("another");
  });

  it("of the same generation is taken with the next epoch, also where it was of another one before", async () => {
    await taken(lease(store(), "a"));
    const branch = new BranchingStore(store(), "another");
    const { leadership } = await taken(lease(branch, "b"));
    const next = (await taken(lease(branch, "c"))).leadership;
    expect(next).to.deep.include({ epoch: leadership.epoch + 1, branchedFrom: undefined });
  });

  it("keeps over renewals the generation that it was claimed on", async () => {
    const branch = new BranchingStore(store());
    const holder = lease(branch, "a");
    await taken(holder);
    branch.branchTo("another");
    expect(await holder.renew()).to.deep.equal({ kind: "renewed" });
    expect((await claimIn(store()))?.generation).to.equal(store().generation);
  });

  it("is not taken while the store goes on as another generation, and then with an epoch of that one", async () => {
    await taken(lease(store(), "before"));
    const branch = new (class extends BranchingStore {
      override async commit(batch: Batch): Promise<CommitOutcome> {
        this.branchTo("another");
        return super.commit(batch);
      }
    })(store());
    const challenger = lease(branch, "a");
    expect(await challenger.take(await challenger.read())).to.deep.equal({ kind: "beaten" });
    const rows = await challenger.read();
    expect(challenger.isFree(rows)).to.equal(true);
    expect((await taken(challenger, rows)).leadership.epoch).to.be.at.least(EPOCHS_PER_BRANCH);
  });

  it("leaps to other epochs on two branches that begin at the same state", async () => {
    await taken(lease(store(), "before"));
    const leaps = ["b", "c"].map(async (generation) => {
      const own = lease(new UnseenBranch(store(), generation), `on ${generation}`);
      return (await taken(own)).leadership.epoch;
    });
    const [one = 0, other = 0] = await Promise.all(leaps);
    expect(Math.abs(one - other)).to.be.at.least(EPOCHS_PER_BRANCH);
  });

  it("leaps over epochs that are known to be lost, on whatever generation", async () => {
    await taken(lease(store(), "before"));
    const challenger = lease(store(), "a");
    const outcome = await challenger.take(await challenger.read(), { highest: epoch(500) });
    if (outcome.kind !== "taken") throw new Error(outcome.kind);
    expect(outcome.leadership.epoch).to.be.at.least(500 + EPOCHS_PER_BRANCH);
  });
}

function doubtTests(store: () => Store): void {
  it("that was taken with an unknown outcome is renewed on stable storage before it counts", async () => {
    const batches: Batch[] = [];
    const faulty = new (class extends FaultyStore {
      override async commit(batch: Batch): Promise<CommitOutcome> {
        batches.push(batch);
        return super.commit(batch);
      }
    })(store(), { kind: "fail_after" });
    const holder = lease(faulty, "a");
    const { leadership } = await taken(holder);
    expect(leadership.epoch).to.equal(0);
    expect(batches.map(({ durability }) => durability)).to.deep.equal(["sync", "sync"]);
    expect(batches[1]?.puts.map(({ key }) => key)).to.deep.equal([COORDINATOR_LEASE_KEY]);
    expect(await holder.renew()).to.deep.equal({ kind: "renewed" });
  });

  it("that was taken with an unknown outcome is not, while nothing else gets to stable storage", async () => {
    const cause = new Error("a test");
    const doubtful = new (class extends DelegatingStore {
      override async commit(batch: Batch): Promise<CommitOutcome> {
        if (batch.puts.length > 1) await super.commit(batch);
        return { kind: "unknown", cause };
      }
    })(store());
    const challenger = lease(doubtful, "a");
    expect(await challenger.take(await challenger.read())).to.deep.equal({ kind: "unclear", cause });
    expect((await challenger.read()).lease?.holder).to.equal("a");
  });

  for (const [what, answered, kind] of [
    ["is not, while all that is synced is written and not answered for", Infinity, "unclear"],
    ["is, once something that was synced is answered for", 3, "taken"],
  ] as const)
    it(`that was taken with an unknown outcome ${what}`, async () => {
      let synced = 0;
      // A wait for a standby that is cancelled each time: this server has what was committed.
      const unreplicated = new (class extends DelegatingStore {
        override async commit(batch: Batch): Promise<CommitOutcome> {
          const outcome = await super.commit(batch);
          if (batch.durability !== "sync" || ++synced >= answered) return outcome;
          return { kind: "unknown", cause: new Error("a test") };
        }
      })(store());
      const challenger = lease(unreplicated, "a");
      expect((await challenger.take(await challenger.read())).kind).to.equal(kind);
      expect((await challenger.read()).lease?.holder).to.equal("a");
      // One that need not be on stable storage counts as soon as it is there.
      expect(await challenger.renew()).to.deep.equal({ kind: "renewed" });
    });

  it("that was taken with an unknown outcome is another's when that one came in between", async () => {
    const cause = new Error("a test");
    const inner = store();
    const doubtful = new (class extends DelegatingStore {
      override async commit(batch: Batch): Promise<CommitOutcome> {
        if (batch.puts.length === 1) await taken(lease(inner, "faster"));
        const outcome = await super.commit(batch);
        return batch.puts.length > 1 ? { kind: "unknown", cause } : outcome;
      }
    })(inner);
    const challenger = lease(doubtful, "a");
    expect(await challenger.take(await challenger.read())).to.deep.equal({ kind: "beaten" });
    expect(await leadershipIn(inner)).to.deep.equal({ lease: [1, "faster"], epoch: 1 });
  });
}
