// The contract of the lease over every store: the same suite for all of them, run by a file of a few lines. It asks nothing of
// a clock; how long to wait before a lease is taken is the elector's business.
import { expect } from "chai";
import type { LeaseRows, TakeOutcome } from "../../src/coordinator/lead/lease.ts";
import { StorageLease } from "../../src/coordinator/lead/lease.ts";
import { COORDINATOR_LEASE_KEY, EPOCH_KEY } from "../../src/storage/keys.ts";
import type { CommitOutcome, Store } from "../../src/storage/store.ts";
import { batchOf, putOf } from "../support/batch.ts";
import { leadershipIn } from "../support/ledger-rows.ts";
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
