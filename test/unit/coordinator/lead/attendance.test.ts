import { expect } from "chai";
import { newUlid } from "../../../../src/base/ids.ts";
import type { Epoch, IncarnationId } from "../../../../src/base/ids.ts";
import { seededRandom } from "../../../../src/base/random.ts";
import { Attendance } from "../../../../src/coordinator/lead/attendance.ts";
import type { AttendanceOptions, LeaderTerm } from "../../../../src/coordinator/lead/attendance.ts";
import { snapshotEntry } from "../../../../src/coordinator/lead/coordinator-snapshot.ts";
import { StorageLease } from "../../../../src/coordinator/lead/lease.ts";
import type { Leadership } from "../../../../src/coordinator/lead/lease.ts";
import { presenceRecord } from "../../../../src/coordinator/lead/presence.ts";
import type { PresenceRow } from "../../../../src/coordinator/lead/presence.ts";
import { Role } from "../../../../src/coordinator/lead/role.ts";
import { decodeRecord, encodeRecord, okOrFailure } from "../../../../src/storage/codec.ts";
import { coordinatorKey } from "../../../../src/storage/keys.ts";
import type { Batch, CommitOutcome } from "../../../../src/storage/store.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import { batchOf } from "../../../support/batch.ts";
import { useClosers } from "../../../support/closers.ts";
import { DelegatingStore } from "../../../support/delegating-store.ts";
import { RecordingEmitter } from "../../../support/recording-emitter.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

const TIMING = { ttlMs: 5_000, renewalMs: 1_000, deadlineMs: 4_000 };
const ELECTABLE = { weight: 1, isItsTurn: true, hasQuorum: true };

/** Commits may wait, as for a standby that is gone; reads go on. */
class StallingStore extends DelegatingStore {
  waiting = 0;
  #answered: Promise<unknown> = Promise.resolve();

  /** Until what this returns is called. */
  stall(): () => void {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    this.#answered = promise;
    return () => resolve(undefined);
  }

  override async commit(batch: Batch): Promise<CommitOutcome> {
    this.waiting++;
    await this.#answered;
    this.waiting--;
    return super.commit(batch);
  }
}

describe("a coordinator among others", () => {
  const closeLater = useClosers();
  const random = seededRandom(1);
  let clock: VirtualClock;
  let shared: MemoryStore;

  beforeEach(() => {
    clock = new VirtualClock({ monotonicMs: 7_000 });
    shared = new MemoryStore();
  });

  interface Attending {
    readonly attendance: Attendance;
    readonly incarnation: IncarnationId;
    readonly role: Role;
    readonly events: RecordingEmitter;
    readonly log: RecordingLogger;
    /** As a leader: when it heard a worker last, whether it judges them, and why it gave up. */
    readonly leader: {
      heardMs: number;
      holdsJudgement: boolean;
      mayAct: boolean;
      published: number;
      gaveUp: string[];
    };
    lead(): Promise<Leadership>;
    makeRoom(): Promise<void>;
    /** A look of its elector. */
    see(): Promise<void>;
  }

  async function attend(port: number, more: Partial<AttendanceOptions> = {}): Promise<Attending> {
    await clock.advance(1);
    const incarnation = newUlid<IncarnationId>(clock, random);
    const [events, log] = [new RecordingEmitter(), new RecordingLogger()];
    const onFatal = (error: unknown): void => {
      throw error;
    };
    const role = await Role.take({ ownStore: new MemoryStore(), incarnation, clock, random, log, onFatal });
    let term: LeaderTerm | undefined;
    const attendance = new Attendance({
      ...{ store: shared, incarnation, role, timing: TIMING, clock, log, events },
      address: `10.0.0.1:${port}`,
      standing: { weight: 1, quorum: "off" },
      ...{ removeAfterMs: 3_600_000, failureTimeoutMs: 5_000 },
      term: () => term,
      rehearse: () => undefined,
      ...more,
    });
    const lease = new StorageLease(shared, incarnation);
    const leader: Attending["leader"] = {
      ...{ heardMs: Infinity, holdsJudgement: false, mayAct: true, published: 0, gaveUp: [] },
    };
    closeLater(() => attendance.stop());
    await attendance.start();
    return {
      ...{ attendance, incarnation, role, events, log, leader },
      see: async () => attendance.see((await lease.read()).lease),
      lead: async () => {
        const leadership = await lease.claim();
        await role.claim("free", ELECTABLE);
        const resignLease = (): Promise<void> => lease.resign();
        await role.lead(leadership.epoch, { startLeading() {}, abortFenced() {}, resignLease });
        term = {
          epoch: leadership.epoch,
          epochRow: leadership.epochRow,
          electedAtWallMs: clock.wallMs(),
          mayAct: () => leader.mayAct,
          publish: () => void leader.published++,
          published: () => leader.published,
          unheardForMs: () => Math.max(0, clock.monotonicMs() - leader.heardMs),
          holdJudgement: (isHeld) => void (leader.holdsJudgement = isHeld),
          giveUp: (reason) => void leader.gaveUp.push(reason),
        };
        attendance.turned();
        await clock.advance();
        return leadership;
      },
      makeRoom: async () => {
        await role.makeRoom();
        term = undefined;
        attendance.turned();
        await clock.advance();
      },
    };
  }

  const beats = (count: number): Promise<void> => clock.advance(count * TIMING.renewalMs);

  it("knows the leader that it follows by the leader's row", async () => {
    const [leader, follower] = [await attend(1), await attend(2)];
    expect(follower.attendance.leader).to.equal(undefined);
    await leader.lead();
    await beats(2);
    await follower.see();
    expect(follower.attendance.leader).to.deep.equal({ address: "10.0.0.1:1", epoch: 0 });
    expect(leader.attendance.leader).to.equal(undefined);
    expect(follower.events.of("coordinator_following")).to.deep.equal([
      { address: "10.0.0.1:2", leader_address: "10.0.0.1:1", epoch: 0 },
    ]);
    await follower.see();
    expect(follower.events.of("coordinator_following")).to.have.length(1);
  });

  it("shows each coordinator, with role and epoch, to all of them", async () => {
    const [leader, follower] = [await attend(1), await attend(2)];
    await leader.lead();
    await beats(3);
    await follower.see();
    await beats(2);
    for (const { attendance } of [leader, follower]) {
      const seen = attendance.members.map(({ row, isPresent }) => [
        row.address,
        row.role,
        row.epoch,
        isPresent,
      ]);
      expect(seen).to.deep.equal([
        ["10.0.0.1:1", "Leader", 0, true],
        ["10.0.0.1:2", "Following", 0, true],
      ]);
    }
  });

  it("election: everybody is shown since when the holder leads, by its own row", async () => {
    const [leader, follower] = [await attend(1), await attend(2)];
    const since = ({ attendance }: Attending): unknown[] =>
      attendance.members.map(({ row }) => row.electedAtWallMs);
    await leader.lead();
    const electedAt = clock.wallMs();
    await beats(3);
    for (const each of [leader, follower]) expect(since(each)).to.deep.equal([electedAt, null]);
    await leader.makeRoom();
    await beats(3);
    await follower.lead();
    await beats(3);
    for (const each of [leader, follower])
      expect(since(each)).to.deep.equal([null, electedAt + 6 * TIMING.renewalMs]);
  });

  it("election: the row of a leader of an earlier version does not say since when", async () => {
    const leader = await attend(1);
    await leader.lead();
    const { attendance, incarnation } = leader;
    const earlier = {
      ...presenceRecord,
      encode: (row: PresenceRow) => presenceRecord.encode(row).slice(0, 10),
    };
    const key = coordinatorKey(incarnation);
    const bytes = encodeRecord(earlier, key, { ...attendance.own.row, heartbeat: 7 });
    const row = okOrFailure("", decodeRecord(presenceRecord, key, bytes));
    expect(row).to.include({ role: "Leader", heartbeat: 7, electedAtWallMs: null });
  });

  it("sees new coordinators while its own row is not written, and writes one row at a time", async () => {
    const stalling = new StallingStore(shared);
    const follower = await attend(1, { store: stalling });
    const answer = stalling.stall();
    await beats(1);
    const another = await attend(2);
    await beats(3);
    expect(stalling.waiting).to.equal(1);
    const present = follower.attendance.members.filter(({ isPresent }) => isPresent);
    expect(present.map(({ incarnation }) => incarnation)).to.include(another.incarnation);
    answer();
    await beats(1);
    expect(stalling.waiting).to.equal(0);
  });

  it("takes its row away when it leaves, also one that was on its way", async () => {
    const stalling = new StallingStore(shared);
    const follower = await attend(1, { store: stalling });
    const answer = stalling.stall();
    await beats(2);
    const stopped = follower.attendance.stop();
    answer();
    await stopped;
    expect(await shared.get(coordinatorKey(follower.incarnation))).to.equal(undefined);
  });

  it("waits for a successor that has just come, and not for one that does not come", async () => {
    const leader = await attend(1);
    await leader.lead();
    const alone = leader.attendance.awaitSuccessor();
    await clock.advance(4 * TIMING.renewalMs);
    expect(await alone).to.equal(false);
    const follower = await attend(2);
    expect(leader.attendance.hasSuccessor).to.equal(false);
    const coming = leader.attendance.awaitSuccessor();
    await clock.advance(4 * TIMING.renewalMs);
    expect(await coming).to.equal(true);
    await follower.attendance.stop();
  });

  it("ranks behind all others when it has resigned, until it has seen another one lead", async () => {
    const [former, next] = [await attend(1), await attend(2)];
    await former.lead();
    await beats(3);
    await former.makeRoom();
    const mayClaim = (openForMs: number): boolean =>
      former.attendance.candidacy({ opening: "free", openForMs, quietForMs: 0 }).isItsTurn;
    expect([mayClaim(TIMING.ttlMs - 1), mayClaim(TIMING.ttlMs)]).to.deep.equal([false, true]);
    await beats(2);
    const seen = next.attendance.members.find(({ incarnation }) => incarnation === former.incarnation);
    expect(seen?.row).to.include({ role: "Following", isWilling: false });
    // The free row says nothing of another one.
    await former.see();
    await clock.advance();
    expect(mayClaim(TIMING.ttlMs - 1)).to.equal(false);
    await next.lead();
    await former.see();
    await clock.advance();
    expect(mayClaim(0)).to.equal(true);
  });

  it("publishes with each heartbeat while it leads, and applies while it follows", async () => {
    const [leader, follower] = [await attend(1), await attend(2)];
    const { epochRow } = await leader.lead();
    const before = leader.leader.published;
    await beats(3);
    expect(leader.leader.published).to.equal(before + 3);
    const counts = { nextSequence: 9, nextCompletion: 4, pending: 1, inFlight: 2, done: 3, failed: 0 };
    const snapshot = {
      epoch: 0 as Epoch,
      number: 41,
      cursors: new Map([[0, 7]]),
      ...counts,
      usage: new Map(),
    };
    await shared.commit(batchOf({ puts: [snapshotEntry(snapshot)], expect: [epochRow] }));
    await beats(2);
    const own = follower.attendance.members.find(({ incarnation }) => incarnation === follower.incarnation);
    expect(own?.row.snapshotNumber).to.equal(41);
  });

  // The wait for a standby may have been cancelled: such a claim is seen, leads nobody, and is lost with a promotion.
  it("counts an epoch as led when its leader publishes a snapshot, and not when its claim is seen", async () => {
    const epochs: Epoch[] = [];
    const [leader, follower] = [
      await attend(1),
      await attend(2, { onPublished: (epoch) => epochs.push(epoch) }),
    ];
    const { epoch, epochRow } = await leader.lead();
    await beats(2);
    await follower.see();
    expect([follower.attendance.leader?.epoch, epochs]).to.deep.equal([epoch, []]);
    const counts = { nextSequence: 9, nextCompletion: 4, pending: 1, inFlight: 2, done: 3, failed: 0 };
    const snapshot = { epoch, number: 41, cursors: new Map(), ...counts, usage: new Map() };
    await shared.commit(batchOf({ puts: [snapshotEntry(snapshot)], expect: [epochRow] }));
    await beats(3);
    expect(epochs).to.deep.equal([epoch]);
  });

  it("writes nothing more as a leader that may not act (C5), and takes its row away when it leaves", async () => {
    const leader = await attend(1);
    await leader.lead();
    await beats(1);
    leader.leader.mayAct = false;
    const key = coordinatorKey(leader.incarnation);
    const before = await shared.get(key);
    await beats(5);
    expect(await shared.get(key)).to.deep.equal(before);
    await leader.attendance.stop();
    expect(await shared.get(key)).to.equal(undefined);
    await beats(5);
    expect(await shared.get(key)).to.equal(undefined);
  });

  it("takes away what an earlier process left at its address, when it comes", async () => {
    const former = await attend(1);
    await former.role.close();
    const key = coordinatorKey(former.incarnation);
    expect(await shared.get(key)).to.not.equal(undefined);
    const latter = await attend(1);
    expect(await shared.get(key)).to.equal(undefined);
    expect(await shared.get(coordinatorKey(latter.incarnation))).to.not.equal(undefined);
  });

  it("rehearses each minute once there is something to read, and says how long it took", async () => {
    let rehearsals = 0;
    const rehearse = async (): Promise<void> => {
      rehearsals++;
      await new Promise<void>((resolve) => void clock.after(30, resolve));
    };
    const follower = await attend(2, { rehearse });
    await beats(3);
    expect(rehearsals).to.equal(0);
    const counts = { nextSequence: 0, nextCompletion: 0, pending: 0, inFlight: 0, done: 0, failed: 0 };
    const snapshot = { epoch: 0 as Epoch, number: 1, cursors: new Map(), ...counts, usage: new Map() };
    await shared.commit(batchOf({ puts: [snapshotEntry(snapshot)] }));
    await beats(61);
    expect(rehearsals).to.equal(1);
    expect(follower.attendance.members[0]?.row.rehearsalMs).to.equal(30);
    expect(follower.events.of("coordinator_rehearsed")).to.deep.equal([
      { epoch: null, snapshot_number: 1, replay_ms: 30 },
    ]);
    await beats(61);
    expect(rehearsals).to.equal(2);
  });

  it("logs that a rehearsal failed, and goes on", async () => {
    const snapshot = { epoch: 0 as Epoch, number: 1, cursors: new Map(), usage: new Map() };
    const counts = { nextSequence: 0, nextCompletion: 0, pending: 0, inFlight: 0, done: 0, failed: 0 };
    await shared.commit(batchOf({ puts: [snapshotEntry({ ...snapshot, ...counts })] }));
    const { log, attendance } = await attend(2, { rehearse: () => Promise.reject(new Error("torn")) });
    await beats(2);
    expect(log.lines.filter(({ level }) => level === "error")).to.have.length(1);
    expect(attendance.members[0]?.row.rehearsalMs).to.equal(null);
  });

  describe("asked who leads", () => {
    it("tells the caller to come back soon while the leader renews, and sooner when the lease is free", async () => {
      const [leader, follower] = [await attend(1), await attend(2)];
      await follower.see();
      expect(follower.attendance.retryAfterMs).to.equal(250);
      await leader.lead();
      await follower.see();
      expect(follower.attendance.retryAfterMs).to.equal(250);
      await clock.advance(1_999);
      expect(follower.attendance.retryAfterMs).to.equal(250);
      await beats(9);
      expect(follower.attendance.retryAfterMs).to.equal(250);
      await leader.role.resign();
      await follower.see();
      expect(follower.attendance.retryAfterMs).to.equal(100);
    });

    it("tells the caller when a lease that is not renewed can be taken, and never names a long time", async () => {
      const [leader, follower] = [await attend(1), await attend(2)];
      await leader.lead();
      await follower.see();
      const asked: number[] = [];
      for (const waitMs of [2_000, 500, 1_000, 1_000, 400]) {
        await clock.advance(waitMs);
        await follower.see();
        asked.push(follower.attendance.retryAfterMs);
      }
      expect(asked).to.deep.equal([2_000, 2_000, 1_500, 500, 250]);
    });
  });

  describe("as a leader whom nobody hears", () => {
    const [deaf, hearing] = [(): boolean => false, (): boolean => true];

    /** No worker is heard from now on. */
    async function unheard(listeners: readonly (() => boolean)[]): Promise<Attending> {
      const leader = await attend(1);
      const followers = [];
      for (const [at, hears] of listeners.entries()) followers.push(await attend(2 + at, { hears }));
      await leader.lead();
      await beats(2);
      for (const follower of followers) await follower.see();
      await beats(2);
      expect(leader.leader.holdsJudgement).to.equal(false);
      leader.leader.heardMs = clock.monotonicMs();
      return leader;
    }

    it("gives up when no worker was heard for as long as a leader may be silent, and a minority of the others hears it", async () => {
      const { leader } = await unheard([deaf, deaf]);
      await beats(4);
      expect(leader.gaveUp).to.deep.equal([]);
      await beats(1);
      expect(leader.gaveUp).to.deep.equal([
        "no worker is heard, and 2 of 2 coordinators do not hear this one",
      ]);
    });

    it("judges no worker by a silence that its own network may cause, until one worker is heard", async () => {
      const { leader } = await unheard([deaf, deaf]);
      await beats(1);
      expect(leader.holdsJudgement).to.equal(false);
      await beats(1);
      expect(leader.holdsJudgement).to.equal(true);
      leader.heardMs = clock.monotonicMs();
      await beats(1);
      expect(leader.holdsJudgement).to.equal(false);
    });

    it("waits for as long as workers may be silent, where that is longer", async () => {
      const leader = await attend(1, { failureTimeoutMs: 8_000 });
      const follower = await attend(2, { hears: deaf });
      await leader.lead();
      await beats(2);
      await follower.see();
      leader.leader.heardMs = clock.monotonicMs();
      await beats(7);
      expect(leader.leader.gaveUp).to.deep.equal([]);
      await beats(1);
      expect(leader.leader.gaveUp).to.have.length(1);
    });

    it("does not count reports about the leader before it", async () => {
      const [former, leader] = [await attend(1), await attend(2)];
      const followers = [await attend(3, { hears: deaf }), await attend(4, { hears: deaf })];
      await former.lead();
      await beats(1);
      for (const follower of followers) await follower.see();
      await beats(2);
      await former.makeRoom();
      await leader.lead();
      leader.leader.heardMs = clock.monotonicMs();
      await beats(20);
      expect(leader.leader.gaveUp).to.deep.equal([]);
      for (const follower of followers) await follower.see();
      await beats(2);
      expect(leader.leader.gaveUp).to.not.deep.equal([]);
    });

    it("goes on while workers are heard, or most of the others hear it", async () => {
      const heard = await unheard([deaf, hearing]);
      await beats(20);
      expect(heard.leader.gaveUp).to.deep.equal([]);
      expect(heard.leader.holdsJudgement).to.equal(false);
    });

    it("goes on when it is alone", async () => {
      const { leader } = await unheard([]);
      await beats(20);
      expect(leader.gaveUp).to.deep.equal([]);
    });
  });
});
