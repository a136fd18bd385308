import { create } from "@bufbuild/protobuf";
import { expect } from "chai";
import { systemClock } from "../../../../src/base/clock.ts";
import { epoch, newUlid, ulidToBytes } from "../../../../src/base/ids.ts";
import type { StoreId } from "../../../../src/base/ids.ts";
import { seededRandom } from "../../../../src/base/random.ts";
import { CoordinatorEnvelopeSchema } from "../../../../src/gen/rollout/v1/common_pb.ts";
import type { CoordinatorEnvelope } from "../../../../src/gen/rollout/v1/common_pb.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import { EpochGuard } from "../../../../src/worker/link/epoch-guard.ts";
import type { SeenEpoch } from "../../../../src/worker/link/epoch-guard.ts";
import { readSeenEpochs, writeSeenEpochs } from "../../../../src/worker/life/worker-records.ts";
import { rejectionOf } from "../../../support/rejection.ts";
import { settle } from "../../../support/settle.ts";

const random = seededRandom(3);
const [first, second] = [newUlid<StoreId>(systemClock, random), newUlid<StoreId>(systemClock, random)];

function envelope(coordEpoch: bigint | undefined, storeId: StoreId = first): CoordinatorEnvelope {
  return create(CoordinatorEnvelopeSchema, {
    storeId: ulidToBytes(storeId),
    ...(coordEpoch !== undefined && { coordEpoch }),
  });
}

const admitted = { kind: "admitted" } as const;

describe("the guard of epochs", () => {
  let guard: EpochGuard;
  /** The records that went to the disk, in order. */
  let kept: (readonly SeenEpoch[])[];

  beforeEach(() => {
    kept = [];
    guard = new EpochGuard([], async (seen) => void kept.push(seen));
  });

  it("admits the first leader that it meets, also under epoch 0", async () => {
    expect(await guard.admit(envelope(0n))).to.deep.equal(admitted);
    expect(guard.seen).to.deep.equal([{ storeId: first, epoch: 0 }]);
  });

  it("admits the same epoch again, and writes down a higher one only", async () => {
    await guard.admit(envelope(4n));
    expect(await guard.admit(envelope(4n))).to.deep.equal(admitted);
    expect(await guard.admit(envelope(5n))).to.deep.equal(admitted);
    expect(kept.map(([latest]) => latest?.epoch)).to.deep.equal([4, 5]);
  });

  it("admits a new leader when it is on disk and not before, and judges what comes meanwhile by it", async () => {
    const disk = Promise.withResolvers<undefined>();
    const order: string[] = [];
    guard = new EpochGuard([], async () => {
      await disk.promise;
      order.push("on disk");
    });
    const higher = guard.admit(envelope(5n)).then(({ kind }) => order.push(kind));
    const lower = guard.admit(envelope(4n)).then(({ kind }) => order.push(kind));
    await settle();
    expect([order, guard.seen]).to.deep.equal([[], []]);
    disk.resolve(undefined);
    await Promise.all([higher, lower]);
    expect(order).to.deep.equal(["on disk", "admitted", "refused"]);
  });

  it("admits nothing that could not be written down, and tries again with the next message", async () => {
    let isFull = true;
    guard = new EpochGuard([], async () => {
      if (isFull) throw new Error("a full disk");
    });
    expect(await rejectionOf(guard.admit(envelope(5n)))).to.have.property("message", "a full disk");
    expect(guard.seen).to.deep.equal([]);
    isFull = false;
    expect(await guard.admit(envelope(5n))).to.deep.equal(admitted);
  });

  it("refuses a lower epoch, and goes on obeying the higher one", async () => {
    await guard.admit(envelope(4n));
    const refusal = await guard.admit(envelope(3n));
    expect(refusal).to.deep.equal({ kind: "refused", reason: "epoch 3 is lower than 4, which was seen" });
    expect(guard.seen).to.deep.equal([{ storeId: first, epoch: 4 }]);
    expect(await guard.admit(envelope(4n))).to.deep.equal(admitted);
  });

  for (const [what, message] of [
    ["no envelope", undefined],
    ["no epoch", envelope(undefined)],
    ["no store", create(CoordinatorEnvelopeSchema, { coordEpoch: 9n })],
  ] as const)
    it(`refuses a message with ${what}`, async () => {
      expect(await guard.admit(message)).to.deep.equal({
        kind: "refused",
        reason: "the message names no epoch",
      });
      expect(guard.seen).to.deep.equal([]);
    });

  it("refuses an epoch that is not exact any more", async () => {
    expect(await guard.admit(envelope(2n ** 53n))).to.have.property("kind", "refused");
    expect(await guard.admit(envelope(2n ** 53n - 1n))).to.have.property("kind", "admitted");
  });

  it("counts each store for itself", async () => {
    await guard.admit(envelope(9n));
    expect(await guard.admit(envelope(2n, second))).to.deep.equal(admitted);
    expect(await guard.admit(envelope(8n))).to.have.property("kind", "refused");
    expect(await guard.admit(envelope(1n, second))).to.have.property("kind", "refused");
  });

  it("has the latest store first, which is the one to speak of", async () => {
    await guard.admit(envelope(9n));
    await guard.admit(envelope(2n, second));
    expect(await guard.admit(envelope(9n))).to.deep.equal(admitted);
    expect(guard.seen.map(({ storeId }) => storeId)).to.deep.equal([first, second]);
  });

  it("remembers a few stores and no more", async () => {
    for (let count = 0; count < 50; count++)
      await guard.admit(envelope(1n, newUlid<StoreId>(systemClock, random)));
    expect(guard.seen.length).to.equal(8);
  });

  it("knows after a restart what it has seen", async () => {
    const store = new MemoryStore();
    await guard.admit(envelope(9n));
    await guard.admit(envelope(2n, second));
    await writeSeenEpochs(store, guard.seen);
    const restarted = new EpochGuard(await readSeenEpochs(store), async () => undefined);
    expect(restarted.seen).to.deep.equal([
      { storeId: second, epoch: epoch(2) },
      { storeId: first, epoch: epoch(9) },
    ]);
    expect(await restarted.admit(envelope(8n))).to.have.property("kind", "refused");
  });
});
