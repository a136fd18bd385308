import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { failure } from "../../../src/base/errors.ts";
import type { IncarnationId, StoreId } from "../../../src/base/ids.ts";
import { ulidToBytes } from "../../../src/base/ids.ts";
import { checkBeforeClaim } from "../../../src/coordinator/before-claim.ts";
import type { CoordinatorOptions } from "../../../src/coordinator/coordinator-options.ts";
import { StaticElector } from "../../../src/coordinator/lead/elector.ts";
import { StorageLease } from "../../../src/coordinator/lead/lease.ts";
import type { LeaseRows } from "../../../src/coordinator/lead/lease.ts";
import { laterOf, NO_EXTENT } from "../../../src/coordinator/lead/store-memory.ts";
import type { Remembered, StoreExtent, StoreMemory } from "../../../src/coordinator/lead/store-memory.ts";
import {
  COORDINATOR_LEASE_KEY,
  EPOCH_KEY,
  LEDGER_CHARTS_KEY,
  LEDGER_KEY,
  WORKERS_PREFIX,
} from "../../../src/storage/keys.ts";
import { MemoryStore } from "../../../src/storage/memory/memory-store.ts";
import type { Batch, CommitOutcome, Entry, ScanRange, Store } from "../../../src/storage/store.ts";
import { batchOf, EVERYTHING } from "../../support/batch.ts";
import { useClosers } from "../../support/closers.ts";
import { DelegatingStore } from "../../support/delegating-store.ts";
import { eventually } from "../../support/eventually.ts";
import { chartsEntry, leadershipIn } from "../../support/ledger-rows.ts";
import { RecordingEmitter } from "../../support/recording-emitter.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { failureOf } from "../../support/rejection.ts";
import type { StartedCoordinator, TestCluster } from "../../support/test-coordinator.ts";
import {
  newTestCluster,
  startCoordinator,
  startListeningCoordinator,
} from "../../support/test-coordinator.ts";
import { beatMessage, workerClient } from "../../support/worker-client.ts";

/** A host's memory of one store, in this process. */
class Memory implements StoreMemory {
  known: Remembered = { ...NO_EXTENT, accepted: 0 };
  kept = 0;

  async recall(): Promise<Remembered> {
    return this.known;
  }

  note(seen: Partial<StoreExtent>): void {
    this.adopt({ ...NO_EXTENT, accepted: this.known.accepted, ...seen });
  }

  adopt(accepted: Remembered): void {
    this.known = laterOf(this.known, accepted);
  }

  async keep(): Promise<void> {
    this.kept++;
  }

  accept({ completion, submitted, done }: StoreExtent): void {
    const { epoch, accepted } = this.known;
    this.known = { epoch, completion, submitted, done, accepted: accepted + 1 };
  }
}

describe("a candidate", () => {
  const closeLater = useClosers();
  let cluster: TestCluster;
  let memory: Memory;

  beforeEach(async () => {
    cluster = await newTestCluster();
    memory = new Memory();
  });

  const lead = (options: Partial<CoordinatorOptions> = {}): Promise<StartedCoordinator> =>
    startCoordinator(cluster, { memory, ...options });

  async function led(options: Partial<CoordinatorOptions> = {}): Promise<StartedCoordinator> {
    const started = await lead(options);
    closeLater(() => started.coordinator.stop());
    return started;
  }

  /** The leader's store as it was at this moment. */
  const copied = async (): Promise<Store> => new MemoryStore(await cluster.store.scan(EVERYTHING));

  /** A leader that a worker tells that it has seen this epoch. */
  async function hearing(epochSeen: bigint, other?: StoreId): Promise<StartedCoordinator> {
    const listening = await startListeningCoordinator(cluster, { memory });
    closeLater(async () => {
      await listening.coordinator.halt();
      await listening.server.close(0);
    });
    const { beats, worker, close } = await workerClient(listening);
    closeLater(close);
    const storeId = ulidToBytes(other ?? listening.coordinator.storeId);
    const beat = beatMessage(worker);
    await beats.beat({ beat: { ...beat, worker: { ...beat.worker, storeId, epochSeen } } });
    return listening;
  }

  describe("claims nothing, and changes nothing", () => {
    async function refused(options: Partial<CoordinatorOptions> = {}): Promise<string> {
      const before = await cluster.store.scan(EVERYTHING);
      const { code } = await failureOf(lead(options));
      expect(await cluster.store.scan(EVERYTHING)).to.deep.equal(before);
      return code;
    }

    beforeEach(async () => {
      await (await lead()).coordinator.stop();
    });

    it("over rows that a newer or an unknown chart has written", async () => {
      await cluster.store.commit(batchOf({ puts: [chartsEntry(["worker-lifecycle", "2", "later"])] }));
      expect(await refused()).to.equal("store_newer");
    });

    it("over a ledger that it cannot read", async () => {
      await cluster.store.commit(batchOf({ puts: [{ key: LEDGER_KEY, value: new Uint8Array(30) }] }));
      expect(await refused()).to.equal("store_corrupt");
    });

    it("over a store that went back since it was seen", async () => {
      memory.note({ epoch: 7 });
      expect(await refused()).to.equal("store_rolled_back");
    });
  });

  it("claims nothing over rows that a newer chart has written while it waited", async () => {
    await (await lead()).coordinator.stop();
    const elector = new StaticElector(new StorageLease(cluster.store, "late"), systemClock);
    const campaign = elector.campaign.bind(elector);
    let before: unknown;
    elector.campaign = async (how) => {
      await cluster.store.commit(batchOf({ puts: [chartsEntry(["worker-lifecycle", "2", "later"])] }));
      before = await leadershipIn(cluster.store);
      return campaign(how);
    };
    expect((await failureOf(lead({ elector }))).code).to.equal("store_newer");
    expect(await leadershipIn(cluster.store)).to.deep.equal(before);
  });

  it("lets go of what it finds out to be unable to lead after it has claimed", async () => {
    await (await lead()).coordinator.stop();
    // Somebody else writes between the look and the claim.
    const store = new (class extends DelegatingStore {
      override async commit(batch: Batch): Promise<CommitOutcome> {
        const isClaim = batch.puts.some(({ key }) => key === EPOCH_KEY);
        const outcome = await super.commit(batch);
        const puts = [chartsEntry(["worker-lifecycle", "2", "later"])];
        if (isClaim) await super.commit(batchOf({ puts }));
        return outcome;
      }
    })(cluster.store);
    const error = await failureOf(lead({ store }));
    expect(error).to.include({ code: "store_newer" });
    expect(error.params["key"]).to.equal(LEDGER_CHARTS_KEY);
    expect(await leadershipIn(cluster.store)).to.deep.equal({ lease: [1, null], epoch: 1 });
  });

  it("reads a ledger of its own store once more, and one that others write to not before it has it", async () => {
    for (const [multiProcess, times] of [
      [false, 2],
      [true, 1],
    ] as const) {
      const { store } = await newTestCluster();
      let reads = 0;
      const counting = new (class extends DelegatingStore {
        override get supports(): Store["supports"] {
          return { multiProcess };
        }
        override get(key: string): Promise<Uint8Array | undefined> {
          if (key === "meta/run") reads++;
          return super.get(key);
        }
      })(store);
      const { coordinator } = await startCoordinator({ ...cluster, store: counting });
      closeLater(() => coordinator.stop());
      expect(reads).to.equal(times);
    }
  });

  describe("over a store that went back to an older state", () => {
    const beforeResults = { epoch: 0, completion: 0, submitted: 0, done: 0 };

    it("says how much is missing, and what was seen", async () => {
      await (await lead()).coordinator.stop();
      memory.note({ epoch: 3, completion: 12, submitted: 40, done: 31 });
      const error = await failureOf(lead());
      expect(error.params).to.deep.include({ missing: "31 results and 40 items" });
      expect(error.row.exit).to.equal(6);
    });

    it("is no rollback where its rows were read before this host saw a later leader", async () => {
      const { store } = cluster;
      await (await lead()).coordinator.stop();
      const look = (): Promise<LeaseRows> => new StorageLease(store, "a candidate").read();
      const rows = await look();
      await (await lead()).coordinator.stop();
      expect(memory.known.epoch).to.equal(1);
      const rehearse = (): Promise<void> => Promise.resolve();
      const options = {
        store,
        memory,
        acceptsRollback: false,
        events: new RecordingEmitter(),
        look,
        rehearse,
      };
      expect(await checkBeforeClaim(options, rows)).to.equal(undefined);
      expect(options.events.events).to.deep.equal([]);
    });

    it("is halted by its chart: before it claims, and as a leader that hears of it", async () => {
      await (await lead()).coordinator.stop();
      memory.note({ epoch: 3 });
      const log = new RecordingLogger();
      await failureOf(lead({ log }));
      expect(transitionsIn(log).at(-1)).to.equal("store.rolledBack Candidate.Claiming Halted");

      memory = new Memory();
      const leader = await hearing(99n);
      await eventually("it ends", () => leader.fatal.length > 0);
      expect(transitionsIn(leader.log).at(-1)).to.equal("store.rolledBack Leader Halted");
      await leader.coordinator.halt();
      expect((await new StorageLease(cluster.store, "a look").read()).lease?.holder).to.equal(null);
    });

    it("emits store_rolled_back with nothing accepted", async () => {
      await (await lead()).coordinator.stop();
      memory.note({ epoch: 3, completion: 12, submitted: 1, done: 1 });
      const events: unknown[] = [];
      await failureOf(lead({ events: { emit: (topic, payload) => void events.push([topic, payload]) } }));
      expect(events).to.deep.equal([
        ["store_rolled_back", { epoch: 0, seen_epoch: 3, missing_results: 1, missing_items: 1, accepted: 0 }],
      ]);
    });

    it("is led when the rollback was accepted, above every epoch that was seen, and the rollback is counted", async () => {
      await (await lead()).coordinator.stop();
      memory.note({ epoch: 30, completion: 12, submitted: 40, done: 31 });
      const first = await lead({ acceptsRollback: true });
      expect(first.coordinator.epoch).to.be.greaterThan(30 + 65_535);
      expect(first.events.of("store_rolled_back").map(({ accepted }) => accepted)).to.deep.equal([1]);
      await first.coordinator.stop();
      expect(memory.known).to.deep.equal({ ...beforeResults, epoch: first.coordinator.epoch, accepted: 1 });
      // Accepted, it is nothing to halt at any more.
      expect((await led()).coordinator.epoch).to.equal(first.coordinator.epoch + 1);
    });

    it("is led on every host once one host has accepted that, and halts each host when it goes back again", async () => {
      const other = new Memory();
      await (await lead()).coordinator.stop();
      await (await lead({ memory: other })).coordinator.stop();
      for (const host of [memory, other]) host.note({ epoch: 30, completion: 12, submitted: 40, done: 31 });
      await (await lead({ acceptsRollback: true })).coordinator.stop();
      // Handed on by leaders that have accepted nothing themselves.
      await (await lead()).coordinator.stop();
      const next = await lead({ memory: other });
      expect(next.events.of("store_rolled_back")).to.deep.equal([]);
      await next.coordinator.stop();
      expect(other.known).to.deep.equal({ ...beforeResults, epoch: next.coordinator.epoch, accepted: 1 });

      other.note({ completion: 5 });
      expect((await failureOf(lead({ memory: other }))).code).to.equal("store_rolled_back");
      await (await lead({ memory: other, acceptsRollback: true })).coordinator.stop();
      expect(other.known.accepted).to.equal(2);
      await (await lead()).coordinator.stop();
      expect(memory.known.accepted).to.equal(2);
    });

    it("is found by a copy of the store, as a restored backup is", async () => {
      const started = await lead();
      const backup = await copied();
      await started.coordinator.stop();
      await (await lead()).coordinator.stop();
      cluster = { ...cluster, store: backup };
      expect((await failureOf(lead())).code).to.equal("store_rolled_back");
    });

    it("remembers each leadership before it leads", async () => {
      const { coordinator } = await led();
      expect(memory.known.epoch).to.equal(coordinator.epoch);
      expect(memory.kept).to.be.greaterThan(0);
    });
  });

  describe("whose worker has seen a later epoch than the store has", () => {
    it("ends, for the store went back, and remembers what the worker has seen", async () => {
      const { fatal, fenced, events } = await hearing(99n);
      await eventually("it ends", () => fatal.length > 0);
      expect(fatal[0]).to.deep.include({ code: "store_rolled_back" });
      expect(fenced).to.deep.equal([]);
      expect(events.of("store_rolled_back")).to.have.length(1);
      expect(memory.known.epoch).to.equal(99);
    });

    it("does not lead again before somebody has accepted that, and then above it", async () => {
      const first = await hearing(99n);
      await eventually("it ends", () => first.fatal.length > 0);
      expect((await failureOf(lead())).code).to.equal("store_rolled_back");
      expect((await led({ acceptsRollback: true })).coordinator.epoch).to.be.greaterThan(99);
    });

    for (const [what, epochSeen, other] of [
      ["an epoch that leaves no room above it", 2n ** 52n, undefined],
      ["an epoch of another store", 99n, "01ARZ3NDEKTSV4RRFFQ69G5FAV" as StoreId],
    ] as const)
      it(`leads again where the rollback is ${what}`, async () => {
        const { fatal, coordinator } = await hearing(epochSeen, other);
        expect(fatal).to.deep.equal([]);
        expect(memory.known.epoch).to.equal(coordinator.epoch);
      });

    it("is fenced where another one leads under that epoch", async () => {
      const listening = await startListeningCoordinator(cluster, { memory });
      closeLater(() => listening.stop());
      const { beats, worker, close } = await workerClient(listening);
      closeLater(close);
      const { epoch } = await new StorageLease(cluster.store, "other").claim();
      const names = { storeId: ulidToBytes(listening.coordinator.storeId), epochSeen: BigInt(epoch) };
      const beat = beatMessage(worker);
      await failureOf(
        beats.beat({ beat: { ...beat, worker: { ...beat.worker, ...names } } }, { timeoutMs: 300 }),
      );
      await eventually("it is fenced", () => listening.fenced.length > 0);
      expect(listening.fatal).to.deep.equal([]);
      expect(listening.events.of("store_rolled_back")).to.deep.equal([]);
    });
  });

  it("reads the ledger again when the database became another one while it was read, and calls it damaged when it did not", async () => {
    const listening = await startListeningCoordinator(cluster, { memory });
    const { beats, worker, close } = await workerClient(listening);
    await beats.beat({ beat: beatMessage(worker) });
    close();
    await listening.stop();
    /** A page of the registry comes from where it is not written yet. */
    const switching = (generation: string): Store & { misread: number } =>
      new (class extends DelegatingStore {
        misread = 0;

        override get generation(): string {
          return this.misread > 0 ? generation : super.generation;
        }

        override async scan(range: ScanRange): Promise<Entry[]> {
          if (!range.from.startsWith(WORKERS_PREFIX) || this.misread > 0) return super.scan(range);
          this.misread++;
          return [];
        }
      })(cluster.store);
    const same = switching(cluster.store.generation);
    expect((await failureOf(lead({ store: same }))).code).to.equal("store_corrupt");
    const promoted = switching("promoted");
    const { coordinator } = await led({ store: promoted });
    expect([promoted.misread, coordinator.epoch > listening.coordinator.epoch]).to.deep.equal([1, true]);
  });

  it("reads the ledger again when the database became another one, though all that was read of both fits", async () => {
    const readings = async (generation: string): Promise<number> => {
      const store = new (class extends DelegatingStore {
        scans = 0;

        override get generation(): string {
          return this.scans > 0 ? generation : super.generation;
        }

        override async scan(range: ScanRange): Promise<Entry[]> {
          if (range.from.startsWith(WORKERS_PREFIX)) this.scans++;
          return super.scan(range);
        }
      })(cluster.store);
      const { coordinator } = await lead({ store });
      await coordinator.stop();
      return store.scans;
    };
    const once = await readings(cluster.store.generation);
    expect(await readings("promoted")).to.equal(2 * once);
  });

  it("says that the store is on another branch, and leads above all that the lost one can have given", async () => {
    const started = await lead();
    await started.coordinator.stop();
    const store = new (class extends DelegatingStore {
      override get generation(): string {
        return "promoted";
      }
    })(cluster.store);
    const { coordinator, events } = await led({ store });
    expect(coordinator.epoch).to.be.greaterThan(65_535);
    expect(events.of("store_generation_changed")).to.deep.equal([
      { epoch: coordinator.epoch, from: cluster.store.generation, to: "promoted" },
    ]);
  });

  it("does not write its lease where its own look fails for another reason", async () => {
    const before = await cluster.store.get(COORDINATOR_LEASE_KEY);
    const cause = failure("store_write_failed", { path: "memory", reason: "a test" });
    memory.recall = () => Promise.reject(cause);
    expect((await failureOf(lead({ incarnation: "01X" as IncarnationId }))).code).to.equal(
      "store_write_failed",
    );
    expect(await cluster.store.get(COORDINATOR_LEASE_KEY)).to.equal(before);
  });
});

/** The steps of the coordinator's role, as the log has them. */
function transitionsIn({ lines }: RecordingLogger): string[] {
  return lines.flatMap(({ message, fields }) =>
    message === "transition" && String(fields["address"]).startsWith("coordinator/")
      ? [[fields["event"], fields["from"], fields["to"]].join(" ")]
      : [],
  );
}
