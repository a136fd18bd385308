import { expect } from "chai";
import { failure } from "../../../../src/base/errors.ts";
import { StorageElector } from "../../../../src/coordinator/lead/elector-storage.ts";
import type { LeaseTiming } from "../../../../src/coordinator/lead/elector-storage.ts";
import type { Loss } from "../../../../src/coordinator/lead/elector.ts";
import type { Leadership } from "../../../../src/coordinator/lead/lease.ts";
import { StorageLease } from "../../../../src/coordinator/lead/lease.ts";
import { COORDINATOR_LEASE_KEY } from "../../../../src/storage/keys.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import type { Batch, CommitOutcome, Store } from "../../../../src/storage/store.ts";
import { DelegatingStore } from "../../../support/delegating-store.ts";
import { leadershipIn } from "../../../support/ledger-rows.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";
import { RecordingWatchdog } from "../../../support/recording-watchdog.ts";
import { failureOf } from "../../../support/rejection.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

const TIMING: LeaseTiming = { ttlMs: 5_000, renewalMs: 1_000, deadlineMs: 4_000 };
const START_MS = 7_000;

/** The test says how each commit and read of this store ends. */
class MoodyStore extends DelegatingStore {
  readonly #clock: VirtualClock;
  isReadable = true;
  /** The fate of commits. */
  mood: "good" | "lost" | "unanswered" = "good";
  /** How long a commit takes to take effect, and its answer as long again. */
  delayMs = 0;
  reads = 0;
  /** Why it cannot be read. */
  trouble: Error = new Error("the network is down");

  constructor(inner: Store, clock: VirtualClock) {
    super(inner);
    this.#clock = clock;
  }

  override async get(key: string): Promise<Uint8Array | undefined> {
    this.reads++;
    if (!this.isReadable) throw this.trouble;
    return super.get(key);
  }

  override async commit(batch: Batch): Promise<CommitOutcome> {
    const cause = failure("store_write_failed", { path: "memory", reason: "a test" });
    if (this.mood === "lost") return { kind: "unknown", cause };
    await this.#pass();
    const outcome = await super.commit(batch);
    await this.#pass();
    return this.mood === "unanswered" ? { kind: "unknown", cause } : outcome;
  }

  async #pass(): Promise<void> {
    const { delayMs } = this;
    if (delayMs > 0) await new Promise<void>((resolve) => void this.#clock.after(delayMs, resolve));
  }
}

describe("the elector of a store that is shared", () => {
  let clock: VirtualClock;
  let shared: MemoryStore;

  beforeEach(() => {
    clock = new VirtualClock({ monotonicMs: START_MS });
    shared = new MemoryStore();
  });

  interface Candidate {
    readonly elector: StorageElector;
    readonly store: MoodyStore;
    readonly lost: Loss[];
    readonly log: RecordingLogger;
    readonly watchdog: RecordingWatchdog;
    /** The leadership that was won. */
    won: Leadership | undefined;
    readonly campaign: Promise<Leadership>;
  }

  function stand(name: string, signal?: AbortSignal): Candidate {
    const store = new MoodyStore(shared, clock);
    const [log, watchdog, lost]: [RecordingLogger, RecordingWatchdog, Loss[]] = [
      new RecordingLogger(),
      new RecordingWatchdog(),
      [],
    ];
    const lease = new StorageLease(store, name);
    const elector = new StorageElector({ lease, timing: TIMING, clock, log, watchdog });
    const campaign = elector.campaign({ onLost: (loss) => void lost.push(loss), ...(signal && { signal }) });
    const candidate: Candidate = { elector, store, lost, log, watchdog, won: undefined, campaign };
    campaign.then(
      (leadership) => (candidate.won = leadership),
      () => undefined,
    );
    return candidate;
  }

  async function leader(name = "leader"): Promise<Candidate> {
    const candidate = stand(name);
    await clock.advance();
    expect(candidate.elector.mayAct()).to.equal(true);
    return candidate;
  }

  /** The clock goes on, and no timer runs. */
  function sleepThrough(forMs: number): void {
    const monotonicMs = clock.monotonicMs.bind(clock);
    clock.monotonicMs = () => monotonicMs() + forMs;
  }

  const sinceStartMs = (): number => clock.monotonicMs() - START_MS;

  describe("takes the lease", () => {
    it("at once when nobody has it", async () => {
      const { won } = await leader();
      expect(won?.epoch).to.equal(0);
      expect(sinceStartMs()).to.equal(0);
    });

    it("of a leader that has gone, a TTL after it has first seen the row, and no sooner", async () => {
      await new StorageLease(shared, "gone").claim();
      await clock.advance(60_000);
      const challenger = stand("b");
      await clock.advance(TIMING.ttlMs - 1);
      expect(challenger.won).to.equal(undefined);
      await clock.advance(1);
      expect(challenger.won?.epoch).to.equal(1);
    });

    it("not while its holder renews it, however long that lasts", async () => {
      const holder = await leader();
      const challenger = stand("b");
      await clock.advance(120_000);
      expect([challenger.won, holder.lost]).to.deep.equal([undefined, []]);
    });

    it("a full TTL after the last renewal that it has seen", async () => {
      const holder = await leader();
      const challenger = stand("b");
      await clock.advance(3_100);
      holder.store.mood = "lost";
      await clock.advance(TIMING.ttlMs - 200);
      expect(challenger.won).to.equal(undefined);
      await clock.advance(600);
      expect(challenger.won?.epoch).to.equal(1);
    });

    it("that was resigned at its next look", async () => {
      const holder = await leader();
      const challenger = stand("b");
      await clock.advance(2_000);
      await holder.elector.resign();
      await clock.advance(TIMING.renewalMs / 2);
      expect(challenger.won?.epoch).to.equal(1);
    });

    it("only when the row is still the one that it has watched: one of several challengers wins", async () => {
      await new StorageLease(shared, "gone").claim();
      const challengers = ["b", "c", "d"].map((name) => stand(name));
      await clock.advance(TIMING.ttlMs + 10_000);
      expect(challengers.filter(({ won }) => won !== undefined)).to.have.length(1);
      expect((await leadershipIn(shared)).epoch).to.equal(1);
    });

    it("again when the answer to its claim came after its own deadline", async () => {
      const slow = stand("slow");
      slow.store.delayMs = TIMING.deadlineMs;
      await clock.advance(TIMING.deadlineMs);
      slow.store.delayMs = 0;
      await clock.advance(2 * TIMING.deadlineMs);
      expect(slow.won?.epoch).to.equal(1);
      expect(slow.elector.mayAct()).to.equal(true);
    });

    it("when its own name is in the row as the store answers again, though the answer to its claim was lost", async () => {
      const candidate = stand("a");
      candidate.store.mood = "unanswered";
      await clock.advance(TIMING.renewalMs);
      expect(candidate.won).to.equal(undefined);
      candidate.store.mood = "good";
      await clock.advance(2 * TIMING.renewalMs);
      expect(candidate.won?.epoch).to.equal((await leadershipIn(shared)).epoch);
    });
  });

  describe("goes on trying", () => {
    for (const trouble of [
      new Error("the network is down"),
      failure("store_unreachable", { path: "memory", reason: "a test" }),
    ])
      it(`while the store cannot be read (${trouble.message}), and says so once`, async () => {
        const candidate = stand("a");
        candidate.store.trouble = trouble;
        candidate.store.isReadable = false;
        await clock.advance(10_000);
        expect(candidate.log.lines.filter(({ level }) => level === "warn")).to.have.length(1);
        candidate.store.isReadable = true;
        await clock.advance(1_000);
        expect(candidate.won?.epoch).to.equal(0);
      });

    it("when a claim did not reach the store", async () => {
      const candidate = stand("a");
      candidate.store.mood = "lost";
      await clock.advance(3_000);
      expect(candidate.won).to.equal(undefined);
      const warned = candidate.log.lines.length;
      expect(warned).to.be.greaterThan(0);
      candidate.store.mood = "good";
      await clock.advance(1_000);
      expect(candidate.won?.epoch).to.equal(0);
      expect(candidate.log.lines, "nothing to warn of any more").to.have.length(warned);
    });

    it("until it is told to stop", async () => {
      await new StorageLease(shared, "other").claim();
      const stop = new AbortController();
      const candidate = stand("a", stop.signal);
      await clock.advance(1_000);
      stop.abort();
      expect((await failureOf(candidate.campaign)).code).to.equal("interrupted");
      expect(clock.armed).to.equal(0);
    });

    it("but not over a row that it cannot understand", async () => {
      shared = new MemoryStore([{ key: COORDINATOR_LEASE_KEY, value: new Uint8Array(20) }]);
      expect((await failureOf(stand("a").campaign)).code).to.equal("store_corrupt");
    });
  });

  describe("leads", () => {
    it("with a renewal each second, each of which moves the deadline to 4 s from when it was sent", async () => {
      const { watchdog, elector } = await leader();
      expect(watchdog).to.deep.include({ epoch: 0, deadlineMs: START_MS + 4_000 });
      for (let second = 1; second <= 5; second++) {
        await clock.advance(1_000);
        expect(watchdog.deadlineMs).to.equal(START_MS + second * 1_000 + 4_000);
      }
      expect(elector.mayAct()).to.equal(true);
    });

    it("by the time at which a slow renewal was sent, not by that of its answer", async () => {
      const { watchdog, store } = await leader();
      store.delayMs = 700;
      await clock.advance(1_000);
      await clock.advance(1_400);
      expect(watchdog.deadlineMs).to.equal(START_MS + 1_000 + 4_000);
    });

    it("until 4 s after it sent its last successful renewal, when none gets through", async () => {
      const { elector, store, lost } = await leader();
      await clock.advance(2_000);
      store.mood = "lost";
      await clock.advance(3_999);
      expect([elector.mayAct(), lost]).to.deep.equal([true, []]);
      await clock.advance(1);
      expect(elector.mayAct()).to.equal(false);
      expect(lost).to.deep.equal([
        { reason: "the lease was not renewed before its deadline", seenEpoch: null },
      ]);
    });

    it("on when renewals fail for a while, and when their answers are lost", async () => {
      const { elector, store, lost } = await leader();
      store.mood = "lost";
      await clock.advance(2_500);
      store.mood = "unanswered";
      await clock.advance(60_000);
      store.mood = "good";
      await clock.advance(60_000);
      expect([elector.mayAct(), lost]).to.deep.equal([true, []]);
    });

    it("no more once it is over: a renewal that is answered too late revives nothing", async () => {
      const { elector, store, lost, watchdog } = await leader();
      store.delayMs = 1_600;
      await clock.advance(4_000);
      expect(lost).to.have.length(1);
      const { deadlineMs } = watchdog;
      store.delayMs = 0;
      await clock.advance(10_000);
      expect(elector.mayAct()).to.equal(false);
      expect(lost).to.have.length(1);
      expect(watchdog.deadlineMs).to.equal(deadlineMs);
    });

    it("no more from its first renewal that finds another epoch, and says which", async () => {
      const { elector, lost } = await leader();
      await new StorageLease(shared, "other").claim();
      await clock.advance(999);
      expect(elector.mayAct()).to.equal(true);
      await clock.advance(1);
      expect(elector.mayAct()).to.equal(false);
      await clock.advance(60_000);
      expect(lost).to.deep.equal([{ reason: "another coordinator holds the lease", seenEpoch: 1 }]);
    });

    it("no more when it has slept through its deadline and finds the answer to a renewal in its socket", async () => {
      const { elector, store, lost, watchdog } = await leader();
      store.delayMs = 500;
      await clock.advance(1_000);
      sleepThrough(TIMING.deadlineMs);
      await clock.advance(1_000);
      expect(elector.mayAct()).to.equal(false);
      expect(lost.map(({ reason }) => reason)).to.deep.equal([
        "the lease was not renewed before its deadline",
      ]);
      expect(watchdog.deadlineMs).to.equal(START_MS + TIMING.deadlineMs);
    });

    it("no more when its clock has passed the deadline, before any timer has run", async () => {
      const { elector } = await leader();
      sleepThrough(TIMING.deadlineMs);
      expect(elector.mayAct()).to.equal(false);
      expect(await elector.isLeader()).to.equal(false);
    });
  });

  describe("asked whether it leads", () => {
    it("answers by its last renewal for a second, and then by a look at the store", async () => {
      const { elector, store } = await leader();
      await clock.advance(500);
      store.reads = 0;
      expect(await elector.isLeader()).to.equal(true);
      expect(store.reads).to.equal(0);
      store.mood = "lost";
      await clock.advance(1_000);
      store.reads = 0;
      expect(await elector.isLeader()).to.equal(true);
      expect(store.reads).to.be.at.least(1);
    });

    it("says no when the store cannot be read", async () => {
      const { elector, store } = await leader();
      store.mood = "lost";
      store.isReadable = false;
      await clock.advance(1_500);
      expect(await elector.isLeader()).to.equal(false);
      expect(elector.mayAct()).to.equal(true);
    });

    it("answers no before it has led, and has lost when the row names another holder", async () => {
      const candidate = stand("a");
      expect(await candidate.elector.isLeader()).to.equal(false);
      await clock.advance();
      await new StorageLease(shared, "other").claim();
      expect(await candidate.elector.isLeader({ doubted: true })).to.equal(false);
      expect(candidate.lost).to.deep.equal([{ reason: "another coordinator holds the lease", seenEpoch: 1 }]);
    });
  });

  describe("lets go", () => {
    it("of a lease that is its own, and renews it no more", async () => {
      const { elector, watchdog, lost } = await leader();
      await elector.resign();
      expect(await leadershipIn(shared)).to.deep.equal({ lease: [0, null], epoch: 0 });
      expect([elector.mayAct(), watchdog.deadlineMs, clock.armed, lost]).to.deep.equal([
        false,
        undefined,
        0,
        [],
      ]);
    });

    it("of a lease that is just being renewed", async () => {
      const { elector, store } = await leader();
      store.delayMs = 100;
      await clock.advance(1_000);
      const resigned = elector.resign();
      await clock.advance(1_000);
      await resigned;
      expect(await leadershipIn(shared)).to.deep.equal({ lease: [0, null], epoch: 0 });
    });

    it("without a write when its deadline has passed, though it had not noticed", async () => {
      const { elector, lost } = await leader();
      const before = await shared.get(COORDINATOR_LEASE_KEY);
      sleepThrough(TIMING.deadlineMs);
      await elector.resign();
      await clock.advance(10_000);
      expect(await shared.get(COORDINATOR_LEASE_KEY)).to.deep.equal(before);
      expect(lost).to.deep.equal([]);
    });

    it("without a write when it has lost it", async () => {
      const { elector, store } = await leader();
      store.mood = "lost";
      await clock.advance(4_000);
      store.mood = "good";
      const before = await shared.get(COORDINATOR_LEASE_KEY);
      await elector.resign();
      expect(await shared.get(COORDINATOR_LEASE_KEY)).to.deep.equal(before);
    });
  });
});
