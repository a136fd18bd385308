import { expect } from "chai";
import { newUlid } from "../../../../src/base/ids.ts";
import type { IncarnationId } from "../../../../src/base/ids.ts";
import { seededRandom } from "../../../../src/base/random.ts";
import { Presence, presenceRecord } from "../../../../src/coordinator/lead/presence.ts";
import type { PresenceRow } from "../../../../src/coordinator/lead/presence.ts";
import { Roster } from "../../../../src/coordinator/lead/roster.ts";
import type { Standing } from "../../../../src/coordinator/lead/roster.ts";
import { encodeRecord } from "../../../../src/storage/codec.ts";
import { coordinatorKey, EPOCH_KEY } from "../../../../src/storage/keys.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import { batchOf } from "../../../support/batch.ts";
import { DelegatingStore } from "../../../support/delegating-store.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

const TIMING = { ttlMs: 5_000, renewalMs: 1_000 };
const WILLING: Standing = { weight: 1, isWilling: true, quorum: "off" };

const ROW: Omit<PresenceRow, "heartbeat"> = {
  address: "",
  weight: 1,
  role: "Following",
  isWilling: true,
  epoch: null,
  snapshotNumber: null,
  rehearsalMs: null,
  rehearsedAtWallMs: null,
  hearsLeader: null,
  electedAtWallMs: null,
};

/** A store that can be cut off. */
class RemoteStore extends DelegatingStore {
  isReachable = true;

  override scan(range: Parameters<MemoryStore["scan"]>[0]): ReturnType<MemoryStore["scan"]> {
    return this.isReachable ? super.scan(range) : Promise.reject(new Error("the network is down"));
  }
}

describe("the coordinators that there are", () => {
  let clock: VirtualClock;
  let shared: MemoryStore;
  let store: RemoteStore;
  let roster: Roster;
  const random = seededRandom(1);

  beforeEach(() => {
    clock = new VirtualClock({ monotonicMs: 7_000 });
    shared = new MemoryStore();
    store = new RemoteStore(shared);
    const incarnation = newUlid<IncarnationId>(clock, random);
    roster = new Roster({ store, incarnation, address: "10.0.0.1:1", timing: TIMING, clock });
  });

  interface Other {
    readonly incarnation: IncarnationId;
    readonly presence: Presence;
    readonly row: Omit<PresenceRow, "heartbeat">;
  }

  async function join(address: string, row: Partial<PresenceRow> = {}): Promise<Other> {
    await clock.advance(1);
    const incarnation = newUlid<IncarnationId>(clock, random);
    const other = {
      incarnation,
      presence: new Presence(shared, incarnation),
      row: { ...ROW, address, ...row },
    };
    expect(await other.presence.announce(other.row)).to.equal(true);
    return other;
  }

  /** So many heartbeats of these, each seen. */
  async function beats(count: number, ...others: readonly Other[]): Promise<void> {
    for (let beat = 0; beat < count; beat++) {
      await roster.look();
      await clock.advance(TIMING.renewalMs);
      for (const { presence, row } of others) await presence.announce(row);
    }
    await roster.look();
  }

  const present = (): string[] =>
    roster.others.flatMap(({ isPresent, row }) => (isPresent ? [row.address] : [])).sort();
  const mayTry = (openForMs: number, standing = WILLING): boolean =>
    roster.candidacy(standing, openForMs).isItsTurn;

  it("are there while their rows change, and for as long as a leader may be silent", async () => {
    const other = await join("10.0.0.2:1");
    await roster.look();
    // The row may be one of last year.
    expect(present()).to.deep.equal([]);
    await beats(1, other);
    expect(present()).to.deep.equal(["10.0.0.2:1"]);
    await clock.advance(TIMING.ttlMs - 1);
    expect(present()).to.deep.equal(["10.0.0.2:1"]);
    await clock.advance(1);
    expect(present()).to.deep.equal([]);
  });

  it("are one for each address: the latest process of a host, and none of this one", async () => {
    await join("10.0.0.1:1");
    const [former, latter] = [await join("10.0.0.2:1"), await join("10.0.0.2:1")];
    await beats(1, latter);
    expect(roster.others.map(({ incarnation }) => incarnation)).to.deep.equal([latter.incarnation]);
    await clock.advance(TIMING.ttlMs);
    await beats(1, latter);
    const outdated = roster.outdated(3_600_000).map(({ key }) => key);
    expect(outdated).to.contain(coordinatorKey(former.incarnation));
    expect(outdated).to.not.contain(coordinatorKey(latter.incarnation));
  });

  it("are seen where a clock was set back: the process that is there, not a former one whose id is greater", async () => {
    // Ids grow with wall time.
    const [latter, former] = [await join("10.0.0.2:1"), await join("10.0.0.2:1", { role: "Leader" })];
    await beats(2, latter);
    expect(roster.others.map(({ incarnation }) => incarnation)).to.deep.equal([latter.incarnation]);
    expect(roster.candidacy({ ...WILLING, quorum: "majority" }, TIMING.ttlMs).hasQuorum).to.equal(true);
    await clock.advance(TIMING.ttlMs);
    await beats(1, latter);
    expect(roster.outdated(3_600_000).map(({ key }) => key)).to.deep.equal([
      coordinatorKey(former.incarnation),
    ]);
  });

  it("are all read, however many rows are left of earlier ones, and those of this address are its own", async () => {
    const row = { ...ROW, heartbeat: 1 };
    const keys = Array.from({ length: 1_500 }, () => coordinatorKey(newUlid<IncarnationId>(clock, random)));
    const puts = keys.map((key, at) => ({
      key,
      value: encodeRecord(presenceRecord, key, {
        ...row,
        address: at % 2 === 0 ? "10.0.0.1:1" : `10.0.1.1:${at}`,
      }),
    }));
    await shared.commit(batchOf({ puts }));
    const other = await join("10.0.0.2:1");
    await clock.advance(1);
    const incarnation = newUlid<IncarnationId>(clock, random);
    roster = new Roster({ store, incarnation, address: "10.0.0.1:1", timing: TIMING, clock });
    await beats(2, other);
    expect(present()).to.deep.equal(["10.0.0.2:1"]);
    expect(roster.ownEarlier()).to.have.length(750);
  });

  it("let the heaviest take over first, the others half a heartbeat later by rank", async () => {
    const heavy = await join("10.0.0.2:1", { weight: 5 });
    const heaviest = await join("10.0.0.3:1", { weight: 9 });
    await beats(3, heavy, heaviest);
    expect([0, 999, 1_000].map((openForMs) => mayTry(openForMs))).to.deep.equal([false, false, true]);
    expect(mayTry(0, { ...WILLING, weight: 10 })).to.equal(true);
  });

  it("wait neither for the former leader nor for a coordinator that has just resigned", async () => {
    const leader = await join("10.0.0.2:1", { weight: 5, role: "Leader" });
    const unwilling = await join("10.0.0.3:1", { weight: 5, isWilling: false });
    await beats(3, leader, unwilling);
    expect(mayTry(0)).to.equal(true);
  });

  it("take over again after resigning only if no other one does", async () => {
    const standing = { ...WILLING, isWilling: false };
    await beats(3, await join("10.0.0.2:1"));
    expect([mayTry(TIMING.ttlMs - 1, standing), mayTry(TIMING.ttlMs, standing)]).to.deep.equal([false, true]);
  });

  it("are not judged before live ones could be seen, nor right after the store was away", async () => {
    const other = await join("10.0.0.2:1", { weight: 5 });
    await roster.look();
    expect(mayTry(60_000)).to.equal(false);
    await beats(2, other);
    expect(mayTry(60_000)).to.equal(true);
    store.isReachable = false;
    expect(await roster.look()).to.equal(undefined);
    await clock.advance(60_000);
    store.isReachable = true;
    await roster.look();
    // All rows are old now, and this coordinator is not alone for that.
    expect(present()).to.deep.equal([]);
    expect(mayTry(60_000)).to.equal(false);
    await beats(2, other);
    expect([present(), mayTry(0)]).to.deep.equal([["10.0.0.2:1"], false]);
  });

  it("cause no wait where there are none", async () => {
    await roster.look();
    expect(mayTry(0)).to.equal(true);
  });

  describe("with a quorum", () => {
    const majority: Standing = { ...WILLING, quorum: "majority" };
    const hasQuorum = (standing = majority): boolean => roster.candidacy(standing, 0).hasQuorum;

    it("elect while more than half of the weight is there", async () => {
      const [second, third] = [await join("10.0.0.2:1"), await join("10.0.0.3:1")];
      await beats(3, second, third);
      expect(hasQuorum()).to.equal(true);
      await beats(6, second);
      expect([present(), hasQuorum()]).to.deep.equal([["10.0.0.2:1"], true]);
      await beats(6);
      expect([present(), hasQuorum()]).to.deep.equal([[], false]);
      expect(hasQuorum({ ...majority, quorum: "off" })).to.equal(true);
    });

    it("do not count a leader that was given up, however fresh its row is", async () => {
      const leader = await join("10.0.0.2:1", { role: "Leader" });
      await beats(3, leader);
      expect(hasQuorum()).to.equal(true);
      expect(roster.candidacy(majority, 0, leader.incarnation).hasQuorum).to.equal(false);
    });

    it("count by their weight", async () => {
      const heavy = await join("10.0.0.2:1", { weight: 3 });
      await beats(6, heavy);
      expect([hasQuorum(), hasQuorum({ ...majority, weight: 4 })]).to.deep.equal([true, true]);
      await beats(6);
      expect([
        hasQuorum(),
        hasQuorum({ ...majority, weight: 3 }),
        hasQuorum({ ...majority, weight: 4 }),
      ]).to.deep.equal([false, false, true]);
    });
  });

  describe("and this one's row", () => {
    it("is written over what was there when it last looked, and taken away", async () => {
      const { presence, incarnation, row } = await join("10.0.0.2:1");
      expect(await presence.announce(row)).to.equal(true);
      await shared.commit(
        batchOf({ puts: [{ key: coordinatorKey(incarnation), value: Buffer.from("other") }] }),
      );
      expect(await presence.announce(row)).to.equal(false);
      await presence.withdraw();
      expect(await shared.get(coordinatorKey(incarnation))).to.equal(undefined);
    });

    it("is not written for a leader whose epoch is over (C1)", async () => {
      const { presence, incarnation, row } = await join("10.0.0.2:1");
      const before = await shared.get(coordinatorKey(incarnation));
      const epochRow = { key: EPOCH_KEY, value: Buffer.from("mine") };
      expect(await presence.announce(row, epochRow)).to.equal(false);
      expect(await shared.get(coordinatorKey(incarnation))).to.deep.equal(before);
    });
  });
});
