import { expect } from "chai";
import { replay } from "../../../src/coordinator/replay.ts";
import { workerRecord } from "../../../src/coordinator/workers/worker-record.ts";
import { encodeRecord } from "../../../src/storage/codec.ts";
import { countKey, heartbeatKey, workerKey, WORKERS_PREFIX } from "../../../src/storage/keys.ts";
import { MemoryStore } from "../../../src/storage/memory/memory-store.ts";
import type { Store } from "../../../src/storage/store.ts";
import { batchOf } from "../../support/batch.ts";
import { LEADERSHIP, LIVENESS, World } from "../../support/world.ts";
import { incarnationId, workerId } from "../../support/world-worker.ts";
import { failureOf } from "../../support/rejection.ts";

const options = { liveness: LIVENESS, workersMax: 10_000, nowMs: 1_000, ...LEADERSHIP };

async function corruptKeyOf(store: Store): Promise<string | undefined> {
  const error = await failureOf(replay(store, options));
  expect(error.code).to.equal("store_corrupt");
  return error.params["key"];
}

/** A worker's row as it should be. */
const ROW = {
  incarnation: incarnationId(1),
  state: "Ready+Alive",
  slots: 1,
  plugins: [],
  registeredAtWallMs: 0,
  trust: "Trusted",
  failuresInRow: 0,
  isToDrain: false,
};

describe("replay", () => {
  let reactor: World;

  beforeEach(async () => {
    reactor = await World.start({ workersMax: 2_000 });
  });

  it("of an empty store knows nobody", async () => {
    expect((await replay(new MemoryStore(), options)).workers.size).to.equal(0);
  });

  it("gives each worker a full failure timeout from the moment of leading", async () => {
    await reactor.beat();
    reactor.pass(3_600_000);
    await reactor.lead();
    await reactor.watch(500 + 5_000);
    expect(reactor.stateOf()).to.equal("Ready+Suspected");
    await reactor.watch(50);
    expect(reactor.stateOf()).to.equal("Ready+Failed");
  });

  it("gives more time the more workers have to find their way back, over many pages", async () => {
    const ids = Array.from({ length: 1_500 }, (_, at) => workerId(at + 1));
    await reactor.beats(...ids.map((id) => ({ workerId: id })));
    const { workers } = await replay(reactor.store, options);
    expect([...workers.keys()]).to.deep.equal(ids);
    expect(workers.get(workerId(1_500))?.dueAtMs).to.equal(1_000 + 500 + 10_000);
  });

  it("knows failed workers as failed, and waits for no beat of theirs", async () => {
    await reactor.beat();
    await reactor.watch(6_000);
    reactor.takeTopics();
    await reactor.lead();
    await reactor.watch(20_000);
    expect(reactor.stateOf()).to.equal("Ready+Failed");
    expect(reactor.takeTopics()).to.deep.equal([]);
    await reactor.beat({ sequence: 2 });
    expect(reactor.takeTopics()).to.deep.equal(["worker_recovered"]);
  });

  it("knows what was the last beat, so that an old one is not taken for news", async () => {
    await reactor.beat({ sequence: 9, state: "Ready" });
    await reactor.lead();
    await reactor.beat({ sequence: 8, state: "Gone" });
    expect(reactor.stateOf()).to.equal("Ready+Alive");
  });

  describe("refuses a store", () => {
    beforeEach(async () => {
      for (const number of [1, 2, 3]) await reactor.beat({ workerId: workerId(number) });
    });

    async function put(key: string, value: Uint8Array): Promise<void> {
      await reactor.store.commit(batchOf({ puts: [{ key, value }] }));
    }

    it("with a damaged row of the registry, by its key", async () => {
      const value = Buffer.from((await reactor.store.get(workerKey(workerId(2)))) ?? []);
      value[10] = (value[10] ?? 0) ^ 1;
      await put(workerKey(workerId(2)), value);
      expect(await corruptKeyOf(reactor.store)).to.equal(workerKey(workerId(2)));
    });

    it("with a row missing, by the key of the count", async () => {
      await reactor.store.commit(batchOf({ deletes: [workerKey(workerId(2))] }));
      expect(await corruptKeyOf(reactor.store)).to.equal(countKey("workers"));
    });

    it("with an older version of a row", async () => {
      const older = (await reactor.store.get(workerKey(workerId(2)))) ?? new Uint8Array();
      await reactor.beat({ workerId: workerId(2), sequence: 2, slots: 9 });
      await put(workerKey(workerId(2)), older);
      expect(await corruptKeyOf(reactor.store)).to.equal(countKey("workers"));
    });

    it("with a damaged heartbeat, by its key", async () => {
      await put(heartbeatKey(workerId(3)), new Uint8Array(30));
      expect(await corruptKeyOf(reactor.store)).to.equal(heartbeatKey(workerId(3)));
    });

    it("with a row of a state that the chart does not have", async () => {
      const row = { ...ROW, state: "Asleep+Alive" };
      await replaceRow(reactor, workerKey(workerId(1)), row);
      expect(await corruptKeyOf(reactor.store)).to.equal(workerKey(workerId(1)));
    });

    it("with a row of a state that the chart of its trust does not have", async () => {
      const row = { ...ROW, trust: "Beloved" };
      await replaceRow(reactor, workerKey(workerId(1)), row);
      expect(await corruptKeyOf(reactor.store)).to.equal(workerKey(workerId(1)));
    });

    it("with a row under a key that names no worker", async () => {
      const key = `${WORKERS_PREFIX}nobody`;
      await replaceRow(reactor, key, ROW);
      expect(await corruptKeyOf(reactor.store)).to.equal(key);
    });
  });
});

/** Puts a row that is whole and rightly counted. */
async function replaceRow(
  { store, state: { workersCount } }: World,
  key: string,
  row: Parameters<typeof workerRecord.encode>[0],
): Promise<void> {
  const before = await store.get(key);
  const value = encodeRecord(workerRecord, key, row);
  if (before === undefined) workersCount.added(value);
  else workersCount.replaced(before, value);
  await store.commit(batchOf({ puts: [{ key, value }, workersCount.entry()] }));
}
