import { expect } from "chai";
import { encodeRecord } from "../../../src/storage/codec.ts";
import type { RecordType } from "../../../src/storage/codec.ts";
import { MemoryStore } from "../../../src/storage/memory/memory-store.ts";
import { SegmentCount, verifySegment } from "../../../src/storage/segment-count.ts";
import type { Segment } from "../../../src/storage/segment-count.ts";
import type { Entry } from "../../../src/storage/store.ts";
import { batchOf, putOf } from "../../support/batch.ts";
import { failureOf } from "../../support/rejection.ts";

const lamp: RecordType<number> = {
  kind: 200,
  name: "lamp",
  version: 1,
  encode: (value) => [value],
  decode: (fields) => fields.integer(0),
  migrations: {},
};
const segment: Segment = { name: "lamps", prefix: "lamps/", record: lamp };
const entry = (at: number, value: number): Entry => {
  const key = `lamps/${String(at).padStart(5, "0")}`;
  return { key, value: encodeRecord(lamp, key, value) };
};
// More than a page of the walk.
const SIZE = 600;

describe("segment count", () => {
  let store: MemoryStore;
  const entries = Array.from({ length: SIZE }, (_, at) => entry(at, at));

  beforeEach(async () => {
    store = new MemoryStore([putOf("lamp", "neighbour"), putOf("lamps0", "neighbour")]);
    const count = await SegmentCount.load(store, segment);
    for (const { value } of entries) count.added(value);
    await store.commit(batchOf({ puts: [...entries, count.entry()] }));
  });

  it("a segment that is as it was written verifies, and says how many there are", async () => {
    expect(await verifySegment(store, segment)).to.deep.equal({ kind: "ok", value: SIZE });
  });

  it("an empty segment that was never counted verifies", async () => {
    expect(await verifySegment(new MemoryStore(), segment)).to.deep.equal({ kind: "ok", value: 0 });
  });

  it("goes on from what is stored, through additions, replacements and removals", async () => {
    const count = await SegmentCount.load(store, segment);
    expect(count.count).to.equal(SIZE);
    const [first, second, fresh, changed] = [entry(0, 0), entry(1, 1), entry(SIZE, 1), entry(1, 77)];
    count.removed(first.value);
    count.added(fresh.value);
    count.replaced(second.value, changed.value);
    await store.commit(batchOf({ puts: [fresh, changed, count.entry()], deletes: [first.key] }));
    expect(await verifySegment(store, segment)).to.deep.equal({ kind: "ok", value: SIZE });
    expect((await SegmentCount.load(store, segment)).count).to.equal(SIZE);
  });

  it("a record that is missing is noticed", async () => {
    await store.commit(batchOf({ deletes: [entry(SIZE - 1, 0).key] }));
    expect(await verifySegment(store, segment)).to.deep.equal({
      kind: "corrupt",
      key: "counts/lamps",
      reason: "600 records were counted under lamps/, and 599 are there",
    });
  });

  it("an older value of a record, whole in itself, is noticed", async () => {
    const count = await SegmentCount.load(store, segment);
    count.replaced(entry(3, 3).value, entry(3, 4).value);
    await store.commit(batchOf({ puts: [count.entry()] }));
    expect(await verifySegment(store, segment)).to.include({ kind: "corrupt", key: "counts/lamps" });
  });

  it("one record too many, and one lost beside one that is too many, are noticed", async () => {
    await store.commit(batchOf({ puts: [entry(SIZE, 9)] }));
    expect(await verifySegment(store, segment)).to.include({ kind: "corrupt", key: "counts/lamps" });
    await store.commit(batchOf({ deletes: [entry(5, 5).key] }));
    expect(await verifySegment(store, segment)).to.include({ kind: "corrupt", key: "counts/lamps" });
  });

  it("a damaged record is named, on whatever page it stands", async () => {
    for (const at of [0, 256, SIZE - 1]) {
      const damaged = entry(at, at);
      damaged.value[damaged.value.length - 1] = 0xc0;
      const held = await store.get(damaged.key);
      await store.commit(batchOf({ puts: [damaged] }));
      expect(await verifySegment(store, segment)).to.include({ kind: "corrupt", key: damaged.key });
      await store.commit(batchOf({ puts: [{ key: damaged.key, value: held ?? damaged.value }] }));
    }
  });

  it("a record of a newer rollout is named as such", async () => {
    const { key } = entry(7, 7);
    await store.commit(batchOf({ puts: [{ key, value: encodeRecord({ ...lamp, version: 2 }, key, 7) }] }));
    expect(await verifySegment(store, segment)).to.deep.equal({ kind: "newer", key, found: 2, known: 1 });
  });

  it("a count that is missing or damaged is named", async () => {
    await store.commit(batchOf({ deletes: ["counts/lamps"] }));
    expect(await verifySegment(store, segment)).to.include({ kind: "corrupt", key: "counts/lamps" });
    await store.commit(batchOf({ puts: [putOf("counts/lamps", "damaged")] }));
    expect(await verifySegment(store, segment)).to.include({ kind: "corrupt", key: "counts/lamps" });
    expect(await failureOf(SegmentCount.load(store, segment))).to.include({ code: "store_corrupt" });
  });
});
