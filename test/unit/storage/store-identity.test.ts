import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { newUlid } from "../../../src/base/ids.ts";
import type { RunId } from "../../../src/base/ids.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { encodeRecord } from "../../../src/storage/codec.ts";
import { FaultyStore } from "../../support/faulty-store.ts";
import { PowerLossStore } from "../../support/power-loss-store.ts";
import { STORE_IDENTITY_KEY } from "../../../src/storage/keys.ts";
import { MemoryStore } from "../../../src/storage/memory/memory-store.ts";
import { verifySegment } from "../../../src/storage/segment-count.ts";
import type { Segment } from "../../../src/storage/segment-count.ts";
import { claimStore, readFirstGeneration, storeIdentityRecord } from "../../../src/storage/store-identity.ts";
import { batchOf, putOf, textOf } from "../../support/batch.ts";
import { failureOf } from "../../support/rejection.ts";

const random = seededRandom(1);
const runId = newUlid<RunId>(systemClock, random);
const otherRunId = newUlid<RunId>(systemClock, random);
const claim = { runId, clock: systemClock, random };
const segmentOf = (name: string): Segment => ({
  name,
  prefix: `${name}/`,
  record: { kind: 200, name, version: 1, encode: () => [], decode: () => undefined, migrations: {} },
});

describe("store identity", () => {
  it("the first claim makes an identity, and later ones find the same", async () => {
    const store = new MemoryStore();
    const made = await claimStore(store, claim);
    expect(made).to.include({ runId, formatVersion: 1 });
    expect(await claimStore(store, claim)).to.deep.equal(made);
  });

  it("two stores of one run have two ids", async () => {
    const [one, other] = [
      await claimStore(new MemoryStore(), claim),
      await claimStore(new MemoryStore(), claim),
    ];
    expect(one.storeId).to.not.equal(other.storeId);
  });

  it("a store of another run is refused, naming both", async () => {
    const store = new MemoryStore();
    await claimStore(store, claim);
    const refused = await failureOf(claimStore(store, { ...claim, runId: otherRunId }));
    expect(refused).to.include({ code: "store_other_run" });
    expect(refused.params).to.include({ found: runId, expected: otherRunId });
  });

  it("of two that claim an empty store at once, one run has it", async () => {
    const store = new MemoryStore();
    const claims = [claimStore(store, claim), claimStore(store, { ...claim, runId: otherRunId })];
    const settled = await Promise.allSettled(claims);
    expect(settled.map(({ status }) => status)).to.deep.equal(["fulfilled", "rejected"]);
  });

  it("survives the loss of power as soon as it is given", async () => {
    const store = new PowerLossStore();
    const made = await claimStore(store, claim);
    const reopened = store.losePower();
    expect(await claimStore(reopened, claim)).to.deep.equal(made);
  });

  it("a newer layout and a newer record are refused", async () => {
    const identity = await claimStore(new MemoryStore(), claim);
    const newer = [
      [encodeRecord(storeIdentityRecord, STORE_IDENTITY_KEY, { ...identity, formatVersion: 2 }), 2],
      [encodeRecord({ ...storeIdentityRecord, version: 3 }, STORE_IDENTITY_KEY, identity), 3],
    ] as const;
    for (const [value, found] of newer) {
      const refused = await failureOf(
        claimStore(new MemoryStore([{ key: STORE_IDENTITY_KEY, value }]), claim),
      );
      expect(refused).to.include({ code: "store_newer" });
      expect(refused.params).to.include({
        ...{ key: STORE_IDENTITY_KEY, found: String(found), known: String(found - 1) },
      });
    }
  });

  it("one of 0.1, which names no generation, is read and stays as it is", async () => {
    const { storeId, formatVersion, createdAtMs, segments } = await claimStore(new MemoryStore(), claim);
    const before = { ...storeIdentityRecord, version: 1 };
    const tuple = [formatVersion, storeId, runId, createdAtMs, segments];
    const value = encodeRecord({ ...before, encode: () => tuple }, STORE_IDENTITY_KEY, undefined as never);
    const store = new MemoryStore([{ key: STORE_IDENTITY_KEY, value }]);
    expect(await claimStore(store, claim)).to.deep.include({ storeId, generation: "" });
    expect(await store.get(STORE_IDENTITY_KEY)).to.deep.equal(value);
    expect(await readFirstGeneration(store)).to.equal("");
  });

  it("names the generation of the store that it was made on", async () => {
    const made = new MemoryStore();
    expect(await readFirstGeneration(made)).to.equal(undefined);
    const { generation } = await claimStore(made, claim);
    expect([generation, await readFirstGeneration(made)]).to.deep.equal([made.generation, made.generation]);
  });

  it("a damaged identity is refused", async () => {
    const refused = await failureOf(
      claimStore(new MemoryStore([putOf(STORE_IDENTITY_KEY, "damaged")]), claim),
    );
    expect(refused).to.include({ code: "store_corrupt" });
    expect(refused.params).to.include({ key: STORE_IDENTITY_KEY });
  });

  it("a store with records and without an identity is damaged, not new", async () => {
    const store = new MemoryStore([putOf("workers/1", "x")]);
    const refused = await failureOf(claimStore(store, claim));
    expect(refused).to.include({ code: "store_corrupt" });
    expect(await store.get(STORE_IDENTITY_KEY)).to.equal(undefined);
  });

  it("a store that was written once and holds nothing has lost it, and is not new", async () => {
    const store = new MemoryStore();
    await store.commit(batchOf({ puts: [putOf("a", "")] }));
    await store.commit(batchOf({ deletes: ["a"] }));
    expect(await failureOf(claimStore(store, claim))).to.include({ code: "store_corrupt" });
  });

  it("the counts of the segments that are claimed begin at 0, those of later claims too", async () => {
    const store = new MemoryStore();
    const made = await claimStore(store, { ...claim, segments: [segmentOf("lamps")] });
    expect(made.segments).to.deep.equal(["lamps"]);
    expect(await verifySegment(store, segmentOf("lamps"))).to.deep.equal({ kind: "ok", value: 0 });
    const later = await claimStore(store, { ...claim, segments: [segmentOf("lamps"), segmentOf("tables")] });
    expect(later).to.deep.equal({ ...made, segments: ["lamps", "tables"] });
    expect(await store.get("counts/tables")).to.not.equal(undefined);
    expect(await claimStore(store, claim)).to.deep.equal(later);
  });

  it("a later claim leaves counts as they are", async () => {
    const store = new MemoryStore();
    await claimStore(store, { ...claim, segments: [segmentOf("lamps")] });
    await store.commit(batchOf({ puts: [putOf("counts/lamps", "written since")] }));
    await claimStore(store, { ...claim, segments: [segmentOf("lamps"), segmentOf("tables")] });
    expect(textOf(await store.get("counts/lamps"))).to.equal("written since");
  });

  it("a count that was claimed and is missing is damage", async () => {
    const store = new MemoryStore();
    await claimStore(store, { ...claim, segments: [segmentOf("lamps")] });
    await store.commit(batchOf({ deletes: ["counts/lamps"] }));
    const refused = await failureOf(claimStore(store, claim));
    expect(refused).to.include({ code: "store_corrupt" });
    expect(refused.params).to.include({ key: "counts/lamps" });
  });

  it("a lost answer is cleared up by reading again", async () => {
    const inner = new MemoryStore();
    const made = await claimStore(new FaultyStore(inner, { kind: "fail_after" }), claim);
    expect(await claimStore(inner, claim)).to.deep.equal(made);
  });

  it("a write that did not happen, or cannot be cleared up, is a failed write", async () => {
    for (const afterFailure of ["usable", "broken"] as const) {
      const store = new FaultyStore(new MemoryStore(), { kind: "fail_before", afterFailure });
      expect(await failureOf(claimStore(store, claim))).to.include({ code: "store_write_failed" });
      if (afterFailure === "usable")
        expect(await store.commit(batchOf({}))).to.include({ kind: "committed" });
    }
  });
});
