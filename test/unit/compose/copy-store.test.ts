import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { copyStore } from "../../../src/compose/copy-store.ts";
import { StorageLease } from "../../../src/coordinator/lead/lease.ts";
import { STORE_IDENTITY_KEY } from "../../../src/storage/keys.ts";
import { MemoryStore } from "../../../src/storage/memory/memory-store.ts";
import { claimStore } from "../../../src/storage/store-identity.ts";
import type { CommitOutcome, Batch } from "../../../src/storage/store.ts";
import { batchOf, EVERYTHING, putOf } from "../../support/batch.ts";
import { newRunId } from "../../support/certificates.ts";
import { DelegatingStore } from "../../support/delegating-store.ts";
import { failureOf } from "../../support/rejection.ts";

const runId = newRunId();
const ROWS = 2_500;

async function storeOfRun(): Promise<MemoryStore> {
  const store = new MemoryStore();
  await claimStore(store, { runId, clock: systemClock, random: systemRandom });
  await new StorageLease(store, "a").claim();
  const puts = Array.from({ length: ROWS }, (_, at) => putOf(`items/${at}`, `value ${at}`));
  await store.commit(batchOf({ puts }));
  return store;
}

describe("copying a run to another database", () => {
  it("copies every row as it is, and counts them", async () => {
    const [source, target] = [await storeOfRun(), new MemoryStore()];
    const { rows } = await copyStore(source, target, runId);
    expect(rows).to.equal(ROWS + 3);
    expect(await target.scan(EVERYTHING)).to.deep.equal(await source.scan(EVERYTHING));
  });

  it("is refused where the target has a run already, and where the source is empty or another run's", async () => {
    const [source, other] = [await storeOfRun(), await storeOfRun()];
    expect(await failureOf(copyStore(source, other, runId))).to.include({ code: "store_unusable" });
    expect(await failureOf(copyStore(new MemoryStore(), new MemoryStore(), runId))).to.include({
      code: "store_unusable",
    });
    expect(await failureOf(copyStore(source, new MemoryStore(), newRunId()))).to.include({
      code: "store_other_run",
    });
  });

  it("leaves, when it is cut off, a copy without an identity, which nobody leads with, and can be begun anew", async () => {
    const [source, target] = [await storeOfRun(), new MemoryStore()];
    let commits = 0;
    const mortal = new (class extends DelegatingStore {
      override async commit(batch: Batch): Promise<CommitOutcome> {
        return ++commits > 2 ? { kind: "unknown", cause: new Error("cut off") } : super.commit(batch);
      }
    })(target);
    await copyStore(source, mortal, runId).catch(() => undefined);
    expect((await target.scan(EVERYTHING)).length).to.be.within(1_000, ROWS);
    const claim = claimStore(target, { runId, clock: systemClock, random: systemRandom });
    expect(await failureOf(claim)).to.include({ code: "store_corrupt" });
    await source.commit(batchOf({ deletes: ["items/0", "items/1"] }));
    await copyStore(source, target, runId);
    expect(await target.scan(EVERYTHING)).to.deep.equal(await source.scan(EVERYTHING));
  });

  it("fails when somebody has begun to lead with the old database, or to write to the new one", async () => {
    for (const meddle of [
      (source: MemoryStore) => new StorageLease(source, "b").claim(),
      (_source: MemoryStore, target: MemoryStore) => target.commit(batchOf({ puts: [putOf("items/x", "")] })),
    ]) {
      const [source, target] = [await storeOfRun(), new MemoryStore()];
      let isDone = false;
      const watched = new (class extends DelegatingStore {
        override async commit(batch: Batch): Promise<CommitOutcome> {
          const outcome = await super.commit(batch);
          if (!isDone) await meddle(source, target);
          isDone = true;
          return outcome;
        }
      })(target);
      const error = await failureOf(copyStore(source, watched, runId));
      expect(error.code).to.be.oneOf(["store_held", "store_corrupt"]);
      expect(await target.get(STORE_IDENTITY_KEY)).to.equal(undefined);
    }
  });
});
