import { expect } from "chai";
import fc from "fast-check";
import { failure } from "../../../../src/base/errors.ts";
import { epoch } from "../../../../src/base/ids.ts";
import type { Leadership } from "../../../../src/coordinator/lead/lease.ts";
import { StorageLease } from "../../../../src/coordinator/lead/lease.ts";
import type { Fault } from "../../../support/faulty-store.ts";
import { FaultyStore } from "../../../support/faulty-store.ts";
import { COORDINATOR_LEASE_KEY, EPOCH_KEY } from "../../../../src/storage/keys.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import type { Batch, CommitOutcome, Store } from "../../../../src/storage/store.ts";
import { batchOf, putOf } from "../../../support/batch.ts";
import { epochEntry, leadershipIn, leaseEntry } from "../../../support/ledger-rows.ts";
import { failureOf } from "../../../support/rejection.ts";

function write(store: Store, leadership: Leadership): Promise<CommitOutcome> {
  return store.commit(batchOf({ puts: [putOf("item", "x")], expect: [leadership.epochRow] }));
}

describe("the lease", () => {
  let store: MemoryStore;

  beforeEach(() => {
    store = new MemoryStore();
  });

  describe("is claimed", () => {
    it("with epoch 0 first, and one more each time", async () => {
      const epochs: number[] = [];
      for (const holder of ["a", "b", "b", "c"])
        epochs.push((await new StorageLease(store, holder).claim()).epoch);
      expect(epochs).to.deep.equal([0, 1, 2, 3]);
      expect(await leadershipIn(store)).to.deep.equal({ lease: [3, "c"], epoch: 3 });
    });

    it("on stable storage, lease row and epoch row in one commit that expects both", async () => {
      const batches: Batch[] = [];
      const commit = store.commit.bind(store);
      store.commit = (batch) => {
        batches.push(batch);
        return commit(batch);
      };
      await new StorageLease(store, "a").claim();
      expect(batches).to.have.length(1);
      expect(batches[0]).to.deep.include({ durability: "sync" });
      expect(batches[0]?.puts.map(({ key }) => key)).to.have.members([COORDINATOR_LEASE_KEY, EPOCH_KEY]);
      expect(batches[0]?.expect).to.deep.equal([
        { key: COORDINATOR_LEASE_KEY, value: null },
        { key: EPOCH_KEY, value: null },
      ]);
    });

    it("with what its leaders have accepted of a store that went back, from one to the next", async () => {
      const accepted = { accepted: 2, epoch: 3, completion: 5, submitted: 7, done: 11 };
      const first = new StorageLease(store, "a");
      await first.take(await first.read(), { highest: epoch(3), accepted });
      for (const holder of ["b", "c"]) {
        const next = new StorageLease(store, holder);
        await next.claim();
        expect((await next.read()).lease?.accepted).to.deep.equal(accepted);
      }
    });

    for (const [changes, tries] of [
      [7, 8],
      [Infinity, 8],
    ] as const)
      it(`with ${tries} tries where the rows change under ${changes} of them`, async () => {
        let commits = 0;
        const commit = store.commit.bind(store);
        store.commit = (batch) =>
          ++commits > changes
            ? commit(batch)
            : Promise.resolve({ kind: "conflict", key: COORDINATOR_LEASE_KEY });
        const claimed = new StorageLease(store, "a").claim();
        if (changes === Infinity) expect((await failureOf(claimed)).code).to.equal("internal");
        else expect((await claimed).epoch).to.equal(0);
        expect(commits).to.equal(tries);
      });

    for (const [lease, epoch] of [
      [3, 7],
      [7, 3],
      [7, 7],
    ] as const)
      it(`with one more than the greater of ${lease} (lease) and ${epoch} (ledger)`, async () => {
        store = new MemoryStore([leaseEntry(lease, "old"), epochEntry(epoch)]);
        expect((await new StorageLease(store, "a").claim()).epoch).to.equal(8);
        expect(await leadershipIn(store)).to.deep.equal({ lease: [8, "a"], epoch: 8 });
      });

    it("over a ledger whose lease row is not there, above its epoch", async () => {
      store = new MemoryStore([epochEntry(4)]);
      expect((await new StorageLease(store, "a").claim()).epoch).to.equal(5);
    });

    it("again when another process was faster", async () => {
      const commit = store.commit.bind(store);
      store.commit = async (batch) => {
        store.commit = commit;
        await new StorageLease(store, "faster").claim();
        return commit(batch);
      };
      expect((await new StorageLease(store, "a").claim()).epoch).to.equal(1);
      expect(await leadershipIn(store)).to.deep.equal({ lease: [1, "a"], epoch: 1 });
    });

    it("in vain, and reports it, when another process is always faster", async () => {
      const commit = store.commit.bind(store);
      let rivals = 0;
      const rival = new StorageLease({ ...bound(store), commit: (batch: Batch) => commit(batch) }, "rival");
      store.commit = async (batch) => {
        rivals++;
        await rival.claim();
        return commit(batch);
      };
      expect(await failureOf(new StorageLease(store, "a").claim())).to.have.property("code", "internal");
      expect(rivals).to.be.lessThan(100);
    });
  });

  describe("claimed with an outcome that nobody knows", () => {
    it("is ours when it was executed: our own name stands there", async () => {
      const leadership = await new StorageLease(new FaultyStore(store, { kind: "fail_after" }), "a").claim();
      expect(leadership.epoch).to.equal(0);
      expect(await write(store, leadership)).to.deep.equal({ kind: "committed" });
    });

    it("is not claimed when it was not executed", async () => {
      const lease = new StorageLease(new FaultyStore(store, { kind: "fail_before" }), "a");
      expect(await failureOf(lease.claim())).to.have.property("code", "store_write_failed");
      expect(await leadershipIn(store)).to.deep.equal({ lease: undefined, epoch: undefined });
    });

    it("is not ours when another holder stands there with that very epoch", async () => {
      const faulty = new FaultyStore(store, { kind: "fail_before" });
      const commit = faulty.commit.bind(faulty);
      faulty.commit = async (batch) => {
        const outcome = await commit(batch);
        await new StorageLease(store, "other").claim();
        return outcome;
      };
      const error = await failureOf(new StorageLease(faulty, "a").claim());
      expect(error.code).to.equal("store_write_failed");
      expect(await leadershipIn(store)).to.deep.equal({ lease: [0, "other"], epoch: 0 });
    });

    it("is not claimed when the store cannot be read any more", async () => {
      const broken = new FaultyStore(store, { kind: "fail_after", afterFailure: "broken" });
      const error = await failureOf(new StorageLease(broken, "a").claim());
      expect(error.code).to.equal("store_write_failed");
    });
  });

  describe("renewed with an outcome that nobody knows", () => {
    /** A leader's lease whose renewals meet `fault` once. */
    async function held(fault: Fault): Promise<StorageLease> {
      const lease = new StorageLease(new FaultyStore(store, { nth: 2, ...fault }), "a");
      await lease.claim();
      return lease;
    }

    it("is renewed when it was executed", async () => {
      const lease = await held({ kind: "fail_after" });
      expect(await lease.renew()).to.deep.equal({ kind: "renewed" });
      expect(await lease.renew()).to.deep.equal({ kind: "renewed" });
    });

    it("is not renewed when it was not executed, and can be the next time", async () => {
      const lease = await held({ kind: "fail_before" });
      expect(await lease.renew()).to.have.property("kind", "unclear");
      expect(await lease.renew()).to.deep.equal({ kind: "renewed" });
    });

    it("is not renewed when the store cannot be read again", async () => {
      const lease = await held({ kind: "fail_after", afterFailure: "broken" });
      expect(await lease.renew()).to.have.property("kind", "unclear");
    });

    it("is lost when the row names another holder", async () => {
      const lease = await held({ kind: "fail_after" });
      await new StorageLease(store, "other").claim();
      expect(await lease.renew()).to.deep.equal({ kind: "fenced", seenEpoch: 1 });
    });

    it("goes on when that renewal comes late, after it was given up", async () => {
      const commit = store.commit.bind(store);
      const lease = new StorageLease(store, "a");
      await lease.claim();
      const late: Batch[] = [];
      const cause = failure("store_write_failed", { path: "memory", reason: "a test" });
      store.commit = async (batch) => {
        late.push(batch);
        return { kind: "unknown", cause };
      };
      expect(await lease.renew()).to.have.property("kind", "unclear");
      store.commit = commit;
      for (const batch of late) await commit(batch);
      expect(await lease.renew()).to.deep.equal({ kind: "renewed" });
    });
  });

  describe("is resigned", () => {
    it("by being marked free, with its epoch", async () => {
      const lease = new StorageLease(store, "a");
      await new StorageLease(store, "before").claim();
      await lease.claim();
      await lease.resign();
      expect(await leadershipIn(store)).to.deep.equal({ lease: [1, null], epoch: 1 });
      expect((await new StorageLease(store, "b").claim()).epoch).to.equal(2);
    });

    it("without effect by who does not hold it any more", async () => {
      const older = new StorageLease(store, "older");
      await older.claim();
      await new StorageLease(store, "newer").claim();
      await older.resign();
      expect(await leadershipIn(store)).to.deep.equal({ lease: [1, "newer"], epoch: 1 });
    });
  });

  it("deposes: a batch of an older leader meets a conflict and writes nothing", async () => {
    const older = await new StorageLease(store, "older").claim();
    expect(await write(store, older)).to.deep.equal({ kind: "committed" });
    const newer = await new StorageLease(store, "newer").claim();
    expect(await write(store, older)).to.deep.equal({ kind: "conflict", key: EPOCH_KEY });
    expect(await write(store, newer)).to.deep.equal({ kind: "committed" });
  });

  it("that is damaged is reported by its key, and not claimed", async () => {
    store = new MemoryStore([{ key: COORDINATOR_LEASE_KEY, value: new Uint8Array(20) }]);
    const error = await failureOf(new StorageLease(store, "a").claim());
    expect(error).to.deep.include({ code: "store_corrupt" });
    expect(error.params["key"]).to.equal(COORDINATOR_LEASE_KEY);
  });

  it("gives no epoch twice, however its claimers are interleaved", async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), async (scheduler) => {
        const shared = new MemoryStore();
        const epochs: number[] = [];
        const claimer = async (holder: string): Promise<void> => {
          const lease = new StorageLease(interleaved(shared, scheduler), holder);
          for (let time = 0; time < 2; time++) epochs.push((await lease.claim()).epoch);
        };
        await scheduler.waitFor(Promise.all(["a", "b", "c"].map(claimer)));
        expect([...epochs].sort()).to.deep.equal([0, 1, 2, 3, 4, 5]);
      }),
      { numRuns: 200 },
    );
  });
});

/** Each call on the store waits for its turn in the scheduler. */
function interleaved(store: Store, scheduler: fc.Scheduler): Store {
  return {
    ...bound(store),
    get: scheduler.scheduleFunction((key: string) => store.get(key)),
    commit: scheduler.scheduleFunction((batch: Batch) => store.commit(batch)),
  };
}

function bound(store: Store): Store {
  const { location, supports, everWritten, generation } = store;
  return {
    location,
    supports,
    everWritten,
    generation,
    get: (key) => store.get(key),
    getMany: (keys) => store.getMany(keys),
    scan: (range) => store.scan(range),
    commit: (batch) => store.commit(batch),
    close: () => store.close(),
  };
}
