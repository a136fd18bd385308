import { expect } from "chai";
import type { IncarnationId } from "../../../../src/base/ids.ts";
import { seededRandom } from "../../../../src/base/random.ts";
import { FaultyStore } from "../../../support/faulty-store.ts";
import { PowerLossStore } from "../../../support/power-loss-store.ts";
import {
  WORKER_CREDENTIALS_KEY,
  WORKER_EPOCHS_KEY,
  WORKER_INCARNATION_KEY,
  WORKER_REVOKED_KEY,
} from "../../../../src/storage/keys.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import {
  nextIncarnation,
  readOwnCredentials,
  readSeenEpochs,
  wasRevoked,
  writeOwnCredentials,
} from "../../../../src/worker/life/worker-records.ts";
import { batchOf, putOf } from "../../../support/batch.ts";
import { failureOf } from "../../../support/rejection.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

describe("what a worker keeps for itself", () => {
  const random = seededRandom(5);
  let clock: VirtualClock;
  let store: MemoryStore;

  beforeEach(() => {
    clock = new VirtualClock();
    store = new MemoryStore();
  });

  describe("an incarnation", () => {
    it("is greater than every one before it", async () => {
      const made: IncarnationId[] = [];
      for (let start = 0; start < 20; start++) made.push(await nextIncarnation(store, clock, random));
      expect(new Set(made).size).to.equal(20);
      expect([...made].sort()).to.deep.equal(made);
    });

    it("grows also when the wall clock was set back", async () => {
      const before = await nextIncarnation(store, clock, random);
      clock.jumpWall(-86_400_000);
      const after = await nextIncarnation(store, clock, random);
      expect(after > before).to.equal(true);
      expect((await nextIncarnation(store, clock, random)) > after).to.equal(true);
    });

    it("grows over a carry from byte to byte", async () => {
      const full = { bytes: (count: number) => new Uint8Array(count).fill(255), unit: () => 0 };
      const before = await nextIncarnation(store, clock, full);
      const after = await nextIncarnation(store, clock, full);
      expect(after > before).to.equal(true);
    });

    it("is on stable storage before anybody hears of it", async () => {
      const disk = new PowerLossStore();
      const made = await nextIncarnation(disk, clock, random);
      const after = disk.losePower();
      clock.jumpWall(-1_000);
      expect((await nextIncarnation(after, clock, random)) > made).to.equal(true);
    });

    it("is not given when it could not be written", async () => {
      const faulty = new FaultyStore(store, { kind: "fail_before", afterFailure: "broken" });
      expect(await failureOf(nextIncarnation(faulty, clock, random))).to.include({
        code: "store_write_failed",
      });
    });
  });

  it("is nothing at first", async () => {
    expect(await readSeenEpochs(store)).to.deep.equal([]);
    expect(await readOwnCredentials(store)).to.equal(undefined);
  });

  it("is its certificate, as it was written", async () => {
    const own = {
      credentials: { certificatePem: "certificate", keyPem: "key", caPem: "ca" },
      renewAtWallMs: 12.5,
    };
    await writeOwnCredentials(store, own);
    expect(await readOwnCredentials(store)).to.deep.equal(own);
  });

  for (const [key, read] of [
    [WORKER_INCARNATION_KEY, () => nextIncarnation(store, clock, random)],
    [WORKER_EPOCHS_KEY, () => readSeenEpochs(store)],
    [WORKER_CREDENTIALS_KEY, () => readOwnCredentials(store)],
    [WORKER_REVOKED_KEY, () => wasRevoked(store)],
  ] as const)
    it(`that is damaged at ${key} is reported by that key`, async () => {
      await store.commit(batchOf({ puts: [putOf(key, "this is no record at all")] }));
      const error = await failureOf(read());
      expect([error.code, error.params["key"]]).to.deep.equal(["store_corrupt", key]);
    });
});
