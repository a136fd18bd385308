import { expect } from "chai";
import { readSnapshot, snapshotEntry } from "../../../../src/coordinator/lead/coordinator-snapshot.ts";
import type { CoordinatorSnapshot } from "../../../../src/coordinator/lead/coordinator-snapshot.ts";
import { COORDINATOR_SNAPSHOT_KEY } from "../../../../src/storage/keys.ts";
import { batchOf } from "../../../support/batch.ts";
import { failureOf } from "../../../support/rejection.ts";
import { World } from "../../../support/world.ts";
import { ERROR } from "../../../support/world-worker.ts";

describe("the snapshot of a leader", () => {
  let world: World;

  beforeEach(async () => {
    world = await World.start();
  });

  async function published(): Promise<CoordinatorSnapshot> {
    await world.step({ kind: "publish" });
    const snapshot = await readSnapshot(world.store);
    if (snapshot === undefined) throw new Error("nothing was published");
    return snapshot;
  }

  it("is not there before one was asked for", async () => {
    await world.submit(["a"]);
    expect(await world.store.get(COORDINATOR_SNAPSHOT_KEY)).to.equal(undefined);
  });

  it("says how far the queue is given out, what is in flight, and what each worker has done", async () => {
    await world.submit(["a", "b", "c", "d"]);
    await world.settle();
    const worker = await world.worker(1, { credit: 3 });
    await world.settle();
    const [first, second] = worker.held;
    if (first === undefined || second === undefined) throw new Error("the worker has nothing");
    await worker.report([first]);
    await worker.report([second], ERROR);
    const snapshot = await published();
    const { usage, cursors, ...numbers } = snapshot;
    const { state } = world;
    expect(numbers).to.deep.equal({
      epoch: state.epoch,
      number: 1,
      nextSequence: 4,
      nextCompletion: state.ledger.tally.nextCompletion,
      pending: state.ledger.tally.pending,
      inFlight: worker.held.length,
      done: 1,
      failed: 0,
    });
    expect(cursors).to.deep.equal(new Map(state.ledger.tally.cursors));
    expect([...usage.values()].map(({ done, failed }) => [done, failed])).to.deep.equal([[1, 1]]);
  });

  it("is continued by the next leader: its number, and the usage of workers that are known", async () => {
    await world.submit(["a", "b"]);
    await world.settle();
    const worker = await world.worker(1, { credit: 1 });
    await world.settle();
    await worker.report(worker.held.slice(0, 1));
    const before = await published();
    await world.lead();
    expect(world.state.usage).to.deep.equal(before.usage);
    const { number, usage, epoch } = await published();
    expect([number, epoch]).to.deep.equal([2, before.epoch + 1]);
    expect(usage).to.deep.equal(before.usage);
  });

  for (const name of ["nextSequence", "nextCompletion"] as const)
    it(`refuses a ledger whose ${name} is behind it`, async () => {
      await world.submit(["a"]);
      const snapshot = await published();
      const ahead = snapshotEntry({ ...snapshot, [name]: snapshot[name] + 1 });
      await world.store.commit(batchOf({ puts: [ahead] }));
      const refused = await failureOf(world.lead());
      expect([refused.code, refused.params["key"]]).to.deep.equal([
        "store_corrupt",
        COORDINATOR_SNAPSHOT_KEY,
      ]);
    });
});
