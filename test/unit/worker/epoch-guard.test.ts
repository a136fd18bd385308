import { create } from "@bufbuild/protobuf";
import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { epoch, newUlid, ulidToBytes } from "../../../src/base/ids.ts";
import type { StoreId } from "../../../src/base/ids.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { CoordinatorEnvelopeSchema } from "../../../src/gen/rollout/v1/common_pb.ts";
import type { CoordinatorEnvelope } from "../../../src/gen/rollout/v1/common_pb.ts";
import { MemoryStore } from "../../../src/storage/memory/memory-store.ts";
import { EpochGuard } from "../../../src/worker/epoch-guard.ts";
import { readSeenEpochs, writeSeenEpochs } from "../../../src/worker/own-record.ts";

const random = seededRandom(3);
const [first, second] = [newUlid<StoreId>(systemClock, random), newUlid<StoreId>(systemClock, random)];

function envelope(coordEpoch: bigint | undefined, storeId: StoreId = first): CoordinatorEnvelope {
  return create(CoordinatorEnvelopeSchema, {
    storeId: ulidToBytes(storeId),
    ...(coordEpoch !== undefined && { coordEpoch }),
  });
}

const admitted = { kind: "admitted", risen: false } as const;
const risen = { kind: "admitted", risen: true } as const;

describe("the guard of epochs", () => {
  let guard: EpochGuard;

  beforeEach(() => {
    guard = new EpochGuard([]);
  });

  it("admits the first leader that it meets, also under epoch 0", () => {
    expect(guard.admit(envelope(0n))).to.deep.equal(risen);
    expect(guard.seen).to.deep.equal([{ storeId: first, epoch: 0 }]);
  });

  it("admits the same epoch again, and a higher one as something new", () => {
    guard.admit(envelope(4n));
    expect(guard.admit(envelope(4n))).to.deep.equal(admitted);
    expect(guard.admit(envelope(5n))).to.deep.equal(risen);
  });

  it("refuses a lower epoch, and goes on obeying the higher one", () => {
    guard.admit(envelope(4n));
    const refusal = guard.admit(envelope(3n));
    expect(refusal).to.deep.equal({ kind: "refused", reason: "epoch 3 is lower than 4, which was seen" });
    expect(guard.seen).to.deep.equal([{ storeId: first, epoch: 4 }]);
    expect(guard.admit(envelope(4n))).to.deep.equal(admitted);
  });

  for (const [what, message] of [
    ["no envelope", undefined],
    ["no epoch", envelope(undefined)],
    ["no store", create(CoordinatorEnvelopeSchema, { coordEpoch: 9n })],
  ] as const)
    it(`refuses a message with ${what}`, () => {
      expect(guard.admit(message)).to.deep.equal({
        kind: "refused",
        reason: "the message names no epoch",
      });
      expect(guard.seen).to.deep.equal([]);
    });

  it("refuses an epoch that is not exact any more", () => {
    expect(guard.admit(envelope(2n ** 53n))).to.have.property("kind", "refused");
    expect(guard.admit(envelope(2n ** 53n - 1n))).to.have.property("kind", "admitted");
  });

  it("counts each store for itself", () => {
    guard.admit(envelope(9n));
    expect(guard.admit(envelope(2n, second))).to.deep.equal(risen);
    expect(guard.admit(envelope(8n))).to.have.property("kind", "refused");
    expect(guard.admit(envelope(1n, second))).to.have.property("kind", "refused");
  });

  it("has the latest store first, which is the one to speak of", () => {
    guard.admit(envelope(9n));
    guard.admit(envelope(2n, second));
    expect(guard.admit(envelope(9n))).to.deep.equal(risen);
    expect(guard.seen.map(({ storeId }) => storeId)).to.deep.equal([first, second]);
  });

  it("remembers a few stores and no more", () => {
    for (let count = 0; count < 50; count++) guard.admit(envelope(1n, newUlid<StoreId>(systemClock, random)));
    expect(guard.seen.length).to.equal(8);
  });

  it("knows after a restart what it has seen", async () => {
    const store = new MemoryStore();
    guard.admit(envelope(9n));
    guard.admit(envelope(2n, second));
    await writeSeenEpochs(store, guard.seen);
    const restarted = new EpochGuard(await readSeenEpochs(store));
    expect(restarted.seen).to.deep.equal([
      { storeId: second, epoch: epoch(2) },
      { storeId: first, epoch: epoch(9) },
    ]);
    expect(restarted.admit(envelope(8n))).to.have.property("kind", "refused");
  });
});
