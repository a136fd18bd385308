import { expect } from "chai";
import { charts } from "../../../machines/index.ts";
import { failure } from "../../../src/base/errors.ts";
import { ulidToBytes } from "../../../src/base/ids.ts";
import type { WorkerId } from "../../../src/base/ids.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { StaticElector } from "../../../src/coordinator/lead/elector-static.ts";
import { StorageLease } from "../../../src/coordinator/lead/lease.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import { ActorSystem } from "../../../src/runtime/driver.ts";
import {
  COORDINATOR_LEASE_KEY,
  countKey,
  EPOCH_KEY,
  LEDGER_CHARTS_KEY,
  workerKey,
} from "../../../src/storage/keys.ts";
import { MemoryStore } from "../../../src/storage/memory/memory-store.ts";
import type { Batch, CommitOutcome, Store } from "../../../src/storage/store.ts";
import { batchOf } from "../../support/batch.ts";
import { newRunId } from "../../support/certificates.ts";
import { useClosers } from "../../support/closers.ts";
import { DelegatingStore } from "../../support/delegating-store.ts";
import { eventually } from "../../support/eventually.ts";
import { chartsEntry, epochEntry } from "../../support/ledger-rows.ts";
import { LIVENESS } from "../../support/reactor-harness.ts";
import { failureOf } from "../../support/rejection.ts";
import type {
  CoordinatorTestOptions,
  StartedCoordinator,
  TestCluster,
} from "../../support/test-coordinator.ts";
import {
  newTestCluster,
  startCoordinator,
  startListeningCoordinator,
} from "../../support/test-coordinator.ts";
import { beatMessage, workerClient } from "../../support/worker-client.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

describe("a coordinator", () => {
  const closeLater = useClosers();
  let cluster: TestCluster;

  beforeEach(async () => {
    cluster = await newTestCluster();
  });

  async function start(options: CoordinatorTestOptions = {}): Promise<StartedCoordinator> {
    const started = await startCoordinator(cluster, options);
    closeLater(() => started.coordinator.stop());
    return started;
  }

  it("leads when it has started, with an epoch of its own each time, in one store", async () => {
    const first = await startCoordinator(cluster);
    await first.coordinator.stop();
    const { coordinator } = await start();
    expect([first.coordinator.epoch, coordinator.epoch]).to.deep.equal([0, 1]);
    expect(coordinator.storeId).to.equal(first.coordinator.storeId);
  });

  describe("does not lead", () => {
    async function refused(): Promise<Record<string, string>> {
      const error = await failureOf(startCoordinator(cluster));
      return { code: error.code, ...error.params };
    }

    async function ledgerOfTwo(): Promise<void> {
      const listening = await startListeningCoordinator(cluster);
      for (let count = 0; count < 2; count++) {
        const { beats, worker, close } = await workerClient(listening);
        await beats.beat({ beat: beatMessage(worker) });
        close();
      }
      await listening.stop();
    }

    async function firstWorker(): Promise<{ key: string; value: Uint8Array }> {
      const [row] = await cluster.store.scan({ from: "workers/", to: "workers0", limit: 1 });
      if (row === undefined) throw new Error("there is a worker");
      return row;
    }

    it("over the store of another run, and writes nothing to it", async () => {
      await (await startCoordinator(cluster)).coordinator.stop();
      const epoch = await cluster.store.get(EPOCH_KEY);
      const found = cluster.runId;
      cluster = { ...cluster, runId: newRunId() };
      expect(await refused()).to.include({ code: "store_other_run", found, expected: cluster.runId });
      expect(await cluster.store.get(EPOCH_KEY)).to.deep.equal(epoch);
    });

    it("over rows that other charts wrote", async () => {
      await (await startCoordinator(cluster)).coordinator.stop();
      await cluster.store.commit(batchOf({ puts: [chartsEntry(["worker-lifecycle", "2", "later"])] }));
      expect(await refused()).to.include({ code: "store_newer", key: LEDGER_CHARTS_KEY });
    });

    it("over a damaged row of a worker, and names its key", async () => {
      await ledgerOfTwo();
      const { key, value } = await firstWorker();
      const damaged = Buffer.from(value);
      damaged[12] = (damaged[12] ?? 0) ^ 0x10;
      await cluster.store.commit(batchOf({ puts: [{ key, value: damaged }] }));
      expect(await refused()).to.include({ code: "store_corrupt", key });
    });

    it("over a ledger in which a worker is missing, and names the count", async () => {
      await ledgerOfTwo();
      await cluster.store.commit(batchOf({ deletes: [(await firstWorker()).key] }));
      expect(await refused()).to.include({ code: "store_corrupt", key: countKey("workers") });
    });

    it("over a ledger in which the workers and their count are missing", async () => {
      await ledgerOfTwo();
      const rows = await cluster.store.scan({ from: "workers/", to: "workers0", limit: 10 });
      const deletes = [...rows.map(({ key }) => key), countKey("workers")];
      await cluster.store.commit(batchOf({ deletes }));
      expect(await refused()).to.include({ code: "store_corrupt", key: countKey("workers") });
    });
  });

  describe("keeps its role in its own store", () => {
    async function roleIn({ incarnation, ownStore }: StartedCoordinator): Promise<[string?, unknown?]> {
      const actors = await ActorSystem.open({
        store: ownStore,
        charts: { "coordinator-role": charts["coordinator-role"] },
        clock: systemClock,
        random: seededRandom(1),
        log: silentLogger,
        perform: () => {},
        durability: "flush",
        onFatal: () => {},
      });
      const address = `coordinator/${incarnation}`;
      const role: [string?, unknown?] = [actors.stateOf(address) ?? "", actors.contextOf(address)];
      await actors.close();
      return role;
    }

    it("as Leader while it leads, and as Candidate once it has stopped", async () => {
      const started = await startCoordinator(cluster);
      expect(await roleIn(started)).to.deep.equal(["Leader", { epoch: 0 }]);
      await started.coordinator.stop();
      expect(await roleIn(started)).to.deep.equal(["Candidate", { epoch: 0 }]);
    });

    it("under its incarnation: an earlier one, fenced or leading, carries nothing over", async () => {
      const ownStore = new MemoryStore();
      const first = await startCoordinator(cluster, { ownStore });
      const second = await start({ ownStore });
      expect(second.incarnation).to.not.equal(first.incarnation);
      expect((await roleIn({ ...second, ownStore }))[0]).to.equal("Leader");
      await first.coordinator.stop();
    });
  });

  describe("over a store that somebody else has claimed meanwhile", () => {
    it("is fenced at its next write: says so once, and answers nothing", async () => {
      const listening = await startListeningCoordinator(cluster);
      closeLater(() => listening.stop());
      const { beats, worker, close } = await workerClient(listening);
      closeLater(close);
      await beats.beat({ beat: beatMessage(worker) });
      await new StorageLease(cluster.store, "other").claim();
      const said = listening.events.events.length;
      const beat = beatMessage(worker, { sequence: 2n });
      const unanswered = failureOf(beats.beat({ beat }, { timeoutMs: 300 }));
      await eventually("it is fenced", () => listening.fenced.length > 0);
      expect((await unanswered).code).to.equal("coordinator_silent");
      expect(listening.fenced).to.deep.equal([
        {
          ...{ epoch: 0, seenEpoch: 1, reason: `another leader wrote ${EPOCH_KEY}` },
          ...{ refusedWrites: 1, refusedReplies: 2 },
        },
      ]);
      expect(listening.events.events).to.have.length(said);
      expect(listening.fatal).to.deep.equal([]);
    });

    describe("and hears of it from a worker", () => {
      async function hearing(epochSeen: bigint, storeId?: Uint8Array): Promise<StartedCoordinator> {
        const listening = await startListeningCoordinator(cluster);
        closeLater(() => listening.stop());
        const { beats, worker, close } = await workerClient(listening);
        closeLater(close);
        await new StorageLease(cluster.store, "other").claim();
        const names = { storeId: storeId ?? ulidToBytes(listening.coordinator.storeId), epochSeen };
        const beat = beatMessage(worker);
        const told = beats.beat(
          { beat: { ...beat, worker: { ...beat.worker, ...names } } },
          { timeoutMs: 300 },
        );
        expect((await failureOf(told)).code).to.equal("coordinator_silent");
        await eventually("it is fenced", () => listening.fenced.length > 0);
        return listening;
      }

      it("reads the lease, and goes by what stands there", async () => {
        const { fenced } = await hearing(7n);
        expect(fenced[0]).to.deep.include({ seenEpoch: 1, reason: "another coordinator holds the lease" });
      });

      for (const [what, epochSeen, storeId] of [
        ["that names its own epoch", 0n, undefined],
        ["whose epoch is another store's", 7n, new Uint8Array(16)],
      ] as const)
        it(`does not look for one ${what}`, async () => {
          const { fenced } = await hearing(epochSeen, storeId);
          expect(fenced[0]?.reason).to.equal(`another leader wrote ${EPOCH_KEY}`);
        });
    });

    it("does not believe a worker that is wrong", async () => {
      const listening = await startListeningCoordinator(cluster);
      closeLater(() => listening.stop());
      const { beats, worker, close } = await workerClient(listening);
      closeLater(close);
      const storeId = ulidToBytes(listening.coordinator.storeId);
      for (const sequence of [1n, 2n]) {
        const beat = beatMessage(worker, { sequence });
        await beats.beat({ beat: { ...beat, worker: { ...beat.worker, storeId, epochSeen: 99n } } });
      }
      expect(listening.fenced).to.deep.equal([]);
    });

    for (const [what, answer, afterMs] of [
      ["takes nothing any more", new Promise<CommitOutcome>(() => {}), 2_000],
      [
        "has failed",
        { kind: "unknown", cause: failure("store_write_failed", { path: "own", reason: "a test" }) },
        0,
      ],
    ] as const)
      it(`is fenced though its own disk ${what}`, async () => {
        const clock = new VirtualClock();
        const inner = new MemoryStore();
        let isWell = true;
        const ownStore = new (class extends DelegatingStore {
          override async commit(batch: Batch): Promise<CommitOutcome> {
            return isWell ? super.commit(batch) : answer;
          }
        })(inner);
        const elector = new StaticElector(new StorageLease(cluster.store, "own"), clock);
        const { fenced } = await startCoordinator(cluster, { clock, ownStore, elector });
        await new StorageLease(cluster.store, "other").claim();
        isWell = false;
        await elector.isLeader({ doubted: true });
        await clock.advance(Math.max(afterMs - 1, 0));
        expect(fenced).to.have.length(afterMs === 0 ? 1 : 0);
        await clock.advance(10_000);
        expect(fenced.map(({ seenEpoch }) => seenEpoch)).to.deep.equal([1]);
      });

    it("writes nothing more once it is fenced, not even that the lease is free", async () => {
      const listening = await startListeningCoordinator(cluster);
      const { beats, worker, close } = await workerClient(listening);
      closeLater(close);
      // The lease row is still its own.
      await cluster.store.commit(batchOf({ puts: [epochEntry(5)] }));
      await failureOf(beats.beat({ beat: beatMessage(worker) }, { timeoutMs: 300 }));
      await eventually("it is fenced", () => listening.fenced.length > 0);
      const lease = await cluster.store.get(COORDINATOR_LEASE_KEY);
      await listening.stop();
      expect(await cluster.store.get(COORDINATOR_LEASE_KEY)).to.deep.equal(lease);
    });

    it("leaves the lease to its new holder when it is stopped", async () => {
      const { coordinator } = await startCoordinator(cluster);
      await new StorageLease(cluster.store, "other").claim();
      const lease = await cluster.store.get("lease/coordinator_lease");
      await coordinator.stop();
      expect(await cluster.store.get("lease/coordinator_lease")).to.deep.equal(lease);
    });
  });

  it("ends, and answers nothing, when the store cannot say what it wrote", async () => {
    const inner = cluster.store;
    let isBroken = false;
    const cause = failure("store_write_failed", { path: "memory", reason: "a test" });
    const store: Store = {
      location: inner.location,
      supports: inner.supports,
      everWritten: inner.everWritten,
      get: (key) => inner.get(key),
      getMany: (keys) => inner.getMany(keys),
      scan: (range) => inner.scan(range),
      commit: async (batch) => (isBroken ? { kind: "unknown", cause } : inner.commit(batch)),
      close: () => inner.close(),
    };
    cluster = { ...cluster, store };
    const listening = await startListeningCoordinator(cluster);
    closeLater(() => listening.stop());
    const { beats, worker, close } = await workerClient(listening);
    closeLater(close);
    isBroken = true;
    const unanswered = failureOf(beats.beat({ beat: beatMessage(worker) }, { timeoutMs: 300 }));
    await eventually("it ends", () => listening.fatal.length > 0);
    expect((await unanswered).code).to.equal("coordinator_silent");
    expect([listening.fatal, listening.fenced]).to.deep.equal([[cause], []]);
    expect(listening.events.events).to.deep.equal([]);
  });

  describe("that starts over a ledger with workers", () => {
    let clock: VirtualClock;
    let known: WorkerId;

    beforeEach(async () => {
      clock = new VirtualClock();
      const before = await startListeningCoordinator(cluster);
      const { beats, worker, close } = await workerClient(before);
      await beats.beat({ beat: beatMessage(worker) });
      close();
      await before.stop();
      known = worker.id;
    });

    it("gives each a full failure timeout, and says then that it failed", async () => {
      const { events } = await start({ clock, liveness: LIVENESS });
      await clock.advance(500 + 5_000);
      expect(events.of("worker_failed")).to.deep.equal([]);
      await clock.advance(300);
      expect(events.of("worker_failed").map(({ worker_id }) => worker_id)).to.deep.equal([known]);
      expect(await cluster.store.get(workerKey(known))).to.not.equal(undefined);
    });

    it("does not register them again when they beat", async () => {
      const listening = await startListeningCoordinator(cluster);
      closeLater(() => listening.stop());
      const { beats, worker, close } = await workerClient(listening, { id: known });
      closeLater(close);
      await beats.beat({ beat: beatMessage(worker, { sequence: 2n }) });
      expect(listening.events.of("worker_heartbeat")).to.have.length(1);
      expect(listening.events.of("worker_registered")).to.deep.equal([]);
    });
  });
});
