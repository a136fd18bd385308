import { expect } from "chai";
import { charts } from "../../../machines/index.ts";
import { failure } from "../../../src/base/errors.ts";
import { ulidToBytes } from "../../../src/base/ids.ts";
import type { WorkerId } from "../../../src/base/ids.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { StaticElector } from "../../../src/coordinator/lead/elector.ts";
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
import { LIVENESS } from "../../support/world.ts";
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

  /** One that listens, and a worker's way to it. */
  async function listen(who: Parameters<typeof workerClient>[1] = {}) {
    const listening = await startListeningCoordinator(cluster);
    closeLater(() => listening.stop());
    const { beats, worker, close } = await workerClient(listening, who);
    closeLater(close);
    return { listening, beats, worker };
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

    it("over a ledger in which the workers and their count are missing", async () => {
      const { listening, beats, worker } = await listen();
      await beats.beat({ beat: beatMessage(worker) });
      await listening.stop();
      const deletes = [workerKey(worker.id), countKey("workers")];
      await cluster.store.commit(batchOf({ deletes }));
      expect(await refused()).to.include({ code: "store_corrupt", key: countKey("workers") });
    });
  });

  describe("keeps its role in its own store", () => {
    async function roleIn(ownStore: Store): Promise<[string?, unknown?]> {
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
      const [row] = await ownStore.scan({ from: "actors/", to: "actors0", limit: 1 });
      const address = row?.key.slice("actors/".length) ?? "";
      const role: [string?, unknown?] = [actors.stateOf(address) ?? "", actors.contextOf(address)];
      await actors.close();
      return role;
    }

    it("as Leader while it leads, and as a candidate that follows once it has stopped", async () => {
      const started = await startCoordinator(cluster);
      expect(await roleIn(started.ownStore)).to.deep.equal(["Leader", { epoch: 0, ending: null }]);
      await started.coordinator.stop();
      expect(await roleIn(started.ownStore)).to.deep.equal([
        "Candidate.Following.Willing",
        { epoch: 0, ending: { kind: "resigned", epoch: 0 } },
      ]);
    });

    const SAID = /^the coordinator before this one /;
    const saidOfFormer = ({ log }: StartedCoordinator): string[] =>
      log.lines.flatMap(({ message }) => (SAID.test(message) ? [message.replace(SAID, "")] : []));

    /** The store as the disk has it at this moment, when its process is killed. */
    async function killedNow(ownStore: Store): Promise<Store> {
      return new MemoryStore(await ownStore.scan({ from: "a", to: "z", limit: 10 }));
    }

    it("and the next one says how the last leadership ended, whoever never led in between", async () => {
      let ownStore: Store = new MemoryStore();
      const first = await startCoordinator(cluster, { ownStore });
      expect(saidOfFormer(first)).to.deep.equal([]);
      await first.coordinator.stop();

      const second = await startCoordinator(cluster, { ownStore });
      expect(saidOfFormer(second)).to.deep.equal(["resigned at epoch 0"]);
      ownStore = await killedNow(ownStore);
      await second.coordinator.stop();

      const elector = new StaticElector(new StorageLease(cluster.store, "never"), systemClock);
      elector.campaign = () => Promise.reject(failure("interrupted", {}));
      expect((await failureOf(startCoordinator(cluster, { ownStore, elector }))).code).to.equal(
        "interrupted",
      );

      const own = new StaticElector(new StorageLease(cluster.store, "own"), systemClock);
      const third = await start({ ownStore, elector: own });
      expect(saidOfFormer(third)).to.deep.equal(["was killed while it led at epoch 1"]);
      await new StorageLease(cluster.store, "01X").claim();
      await own.isLeader({ doubted: true });
      await eventually("it is fenced", () => third.fenced.length > 0);

      const fourth = await start({ ownStore: await killedNow(ownStore) });
      expect(saidOfFormer(fourth)).to.deep.equal([
        "was fenced at epoch 2 by coordinator 01X, which leads at epoch 3",
      ]);
    });

    it("and a record that cannot be read keeps no coordinator from leading", async () => {
      const ownStore = new MemoryStore();
      await (await startCoordinator(cluster, { ownStore })).coordinator.stop();
      const [row] = await ownStore.scan({ from: "a", to: "z", limit: 10 });
      if (row === undefined) throw new Error("there is a record");
      const damaged = Buffer.from(row.value);
      damaged[12] = (damaged[12] ?? 0) ^ 0x10;
      await ownStore.commit(batchOf({ puts: [{ ...row, value: damaged }] }));
      const second = await start({ ownStore });
      expect(saidOfFormer(second)).to.deep.equal([]);
      expect(second.log.lines.map(({ level }) => level)).to.include("warn");
      expect((await roleIn(ownStore))[0]).to.equal("Leader");
    });
  });

  describe("over a store that somebody else has claimed meanwhile", () => {
    it("is fenced at its next write: says so once, and answers nothing", async () => {
      const { listening, beats, worker } = await listen();
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
        const { listening, beats, worker } = await listen();
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

      it("reads the lease, and believes the lease", async () => {
        const { fenced } = await hearing(7n);
        expect(fenced[0]).to.deep.include({ seenEpoch: 1, reason: "another coordinator holds the lease" });
      });

      for (const [what, epochSeen, storeId] of [
        ["that names its own epoch", 0n, undefined],
        ["whose epoch is another store's", 7n, new Uint8Array(16)],
      ] as const)
        it(`does not read the lease for a worker ${what}`, async () => {
          const { fenced } = await hearing(epochSeen, storeId);
          expect(fenced[0]?.reason).to.equal(`another leader wrote ${EPOCH_KEY}`);
        });
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
      const { listening, beats, worker } = await listen();
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
    let isBroken = false;
    const cause = failure("store_write_failed", { path: "memory", reason: "a test" });
    const store = new (class extends DelegatingStore {
      override async commit(batch: Batch): Promise<CommitOutcome> {
        return isBroken ? { kind: "unknown", cause } : super.commit(batch);
      }
    })(cluster.store);
    cluster = { ...cluster, store };
    const { listening, beats, worker } = await listen();
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
      const { listening, beats, worker } = await listen();
      await beats.beat({ beat: beatMessage(worker) });
      await listening.stop();
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
      const { listening, beats, worker } = await listen({ id: known });
      await beats.beat({ beat: beatMessage(worker, { sequence: 2n }) });
      expect(listening.events.of("worker_heartbeat")).to.have.length(1);
      expect(listening.events.of("worker_registered")).to.deep.equal([]);
    });
  });
});
