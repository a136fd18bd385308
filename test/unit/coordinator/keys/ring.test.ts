// The ring against a plain one: all points of all members in order, and for each partition the first that follows.
import { expect } from "chai";
import { partitionOf } from "../../../../src/base/partition.ts";
import { Ring, type MovedPartition } from "../../../../src/coordinator/keys/ring.ts";
import { draw, NODES, PARTITIONS, plainOwners, plainSuccessors } from "./plain-ring.ts";

const MEMBERSHIPS = 1_000;

function ringOf(members: readonly string[]): Ring {
  const ring = new Ring({ totalPartitions: PARTITIONS, virtualNodes: NODES });
  for (const id of members) ring.join(id);
  return ring;
}

function ownersOf(ring: Ring): (string | undefined)[] {
  return Array.from({ length: PARTITIONS }, (_, partition) => ring.ownerOf(partition));
}

/** As text: comparing arrays deeply takes most of the time otherwise. */
function text(moves: readonly MovedPartition[]): string {
  return moves.map(({ partition, from, to }) => `${partition}: ${from} to ${to}`).join("\n");
}

function expectSame(one: readonly unknown[], other: readonly unknown[]): void {
  expect(one.join("\n")).to.equal(other.join("\n"));
}

/** Partitions with another owner, in order. */
function moves(
  before: readonly (string | undefined)[],
  after: readonly (string | undefined)[],
): MovedPartition[] {
  return [...before.keys()]
    .filter((at) => before[at] !== after[at])
    .map((partition) => ({ partition, from: before[partition], to: after[partition] }));
}

describe("the ring of partitions", () => {
  it("ring_moves_one_nth: a fourth member takes about 32 of 128, gives exactly those back, and a failed one only its own", () => {
    let sum = 0;
    for (let round = 0; round < MEMBERSHIPS; round++) {
      const [joiner = "", failed = "", ...others] = draw(4);
      const ring = ringOf([failed, ...others]);
      const before = ownersOf(ring);
      expectSame(before, plainOwners([failed, ...others]));
      const joined = ring.join(joiner);
      expectSame(ownersOf(ring), plainOwners([joiner, failed, ...others]));
      expect(text(joined)).to.equal(text(moves(before, ownersOf(ring))));
      expect(joined.filter(({ to }) => to !== joiner)).to.deep.equal([]);
      sum += joined.length;
      const left = ring.leave(joiner);
      expectSame(ownersOf(ring), before);
      expect(text(left)).to.equal(
        text(joined.map(({ partition, from, to }) => ({ partition, from: to, to: from }))),
      );
      const lost = ring.leave(failed);
      expectSame(ownersOf(ring), plainOwners(others));
      expect(text(lost)).to.equal(text(moves(before, ownersOf(ring))));
      expect(lost.filter(({ from }) => from !== failed)).to.deep.equal([]);
    }
    expect(sum / MEMBERSHIPS).to.be.within(30, 34);
    // Three quarters would move if the number of members decided.
    const byNumber = (members: number): string[] =>
      Array.from({ length: PARTITIONS }, (_, at) => String(at % members));
    expect(moves(byNumber(3), byNumber(4))).to.have.length.within(94, 98);
  });

  it("does not depend on the order of joining, nor on those who have left", () => {
    for (let round = 0; round < MEMBERSHIPS / 10; round++) {
      const members = draw(4);
      const passing = draw(64).filter((id) => !members.includes(id));
      const ring = ringOf([...members.toReversed(), ...passing.slice(0, 2)]);
      for (const id of passing) ring.leave(id);
      expectSame(ownersOf(ring), ownersOf(ringOf(members)));
      expect([...ring.members]).to.have.members(members);
    }
  });

  it("names the first of some members that follows a partition, its owner before all", () => {
    for (let membership = 0; membership < 16; membership++) {
      const members = draw(2 + (membership % 16));
      const [ring, some] = [ringOf(members), members.slice(membership % 2)];
      for (let partition = 0; partition < PARTITIONS; partition++) {
        const first = plainSuccessors(members, partition).find((id) => some.includes(id));
        expect(ring.firstOf(some.toReversed(), partition)).to.equal(first);
      }
    }
    expect(ringOf(["one"]).firstOf(["two"], 0)).to.equal(undefined);
  });

  it("has no owner without a member, and gives all to the first one", () => {
    const ring = ringOf([]);
    expect(new Set(ownersOf(ring))).to.deep.equal(new Set([undefined]));
    expect(ring.leave("nobody")).to.deep.equal([]);
    expect(ring.join("one")).to.deep.equal(
      Array.from({ length: PARTITIONS }, (_, partition) => ({ partition, from: undefined, to: "one" })),
    );
    expect(ring.leave("one")).to.have.length(PARTITIONS);
  });

  it("puts keys into partitions by their text alone, about as many into each", () => {
    const counts = Array.from({ length: PARTITIONS }, () => 0);
    for (let at = 0; at < 12_800; at++) {
      const partition = partitionOf(`customer ${at}`, PARTITIONS);
      counts[partition] = (counts[partition] ?? 0) + 1;
    }
    expect(Math.min(...counts)).to.be.above(50);
    expect(Math.max(...counts)).to.be.below(150);
    // Where keys stand for good: these are stored.
    expect(["17", "order 17", "ü"].map((key) => partitionOf(key, PARTITIONS))).to.deep.equal([11, 125, 35]);
  });
});
