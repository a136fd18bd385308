import { expect } from "chai";
import { systemClock } from "../../../../src/base/clock.ts";
import { newUlid } from "../../../../src/base/ids.ts";
import type { Epoch, IncarnationId } from "../../../../src/base/ids.ts";
import { systemRandom } from "../../../../src/base/random.ts";
import { Role } from "../../../../src/coordinator/lead/role.ts";
import { silentLogger } from "../../../../src/observe/log.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import { eventually } from "../../../support/eventually.ts";

describe("a coordinator's role", () => {
  const take = (ownStore: MemoryStore): Promise<Role> =>
    Role.take({
      ...{ ownStore, clock: systemClock, random: systemRandom, log: silentLogger },
      ...{ incarnation: newUlid<IncarnationId>(systemClock, systemRandom), onFatal: () => {} },
    });

  async function leading(ownStore: MemoryStore, resignLease = (): Promise<void> => Promise.resolve()) {
    const role = await take(ownStore);
    expect(await role.claim("free", { weight: 1, isItsTurn: true, hasQuorum: true })).to.equal(true);
    await role.lead(3 as Epoch, { startLeading() {}, abortFenced() {}, resignLease });
    return role;
  }

  for (const [by, seenEpoch, said] of [
    ["01X", 4, "was fenced at epoch 3 by coordinator 01X, which leads at epoch 4"],
    ["01X", null, "was fenced at epoch 3 by coordinator 01X"],
    [null, 4, "was fenced at epoch 3 by a leadership at epoch 4"],
    [null, null, "was fenced at epoch 3"],
  ] as const)
    it(`that was lost to ${by ?? "an unknown process"} at epoch ${seenEpoch ?? "unknown"} is told so`, async () => {
      const ownStore = new MemoryStore();
      await (await leading(ownStore)).lose({ reason: "a test", seenEpoch, by });
      expect((await take(ownStore)).former).to.equal(said);
    });

  it("is resigned only when the lease is free", async () => {
    const order: string[] = [];
    const free = Promise.withResolvers<undefined>();
    const role = await leading(new MemoryStore(), () => {
      order.push("asked");
      return free.promise;
    });
    const resigned = role.resign().then(() => order.push("resigned"));
    await eventually("the lease is to be free", () => order.length > 0);
    await role.close();
    order.push("free");
    free.resolve(undefined);
    await resigned;
    expect(order).to.deep.equal(["asked", "free", "resigned"]);
  });
});
