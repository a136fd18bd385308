// The consistent-hash ring: which member's a partition is. A member has many points on a circle of 64 bits, and a partition is the
// member's whose point is the first at or after its own; so whoever joins or leaves moves its own partitions and no others.
//
// Keeps true: the owners are a function of the members alone, in whichever order they came. Kept is how far each member is from each
// partition, one row a member, in place of all points in order: a join then costs as much among a thousand members as among three.
import { hash } from "node:crypto";
import { assert } from "../../base/assert.ts";

export interface RingSize {
  readonly totalPartitions: number;
  /** Points of one member. */
  readonly virtualNodes: number;
}

/** A partition that has another owner than before; undefined where there is no member. */
export interface MovedPartition {
  readonly partition: number;
  readonly from: string | undefined;
  readonly to: string | undefined;
}

interface Member {
  readonly id: string;
  /** By partition, how far its next point is behind the partition's: the upper and the lower half of 64 bits. */
  readonly high: Uint32Array;
  readonly low: Uint32Array;
}

const LOW_BITS = 32n;

export class Ring {
  readonly #virtualNodes: number;
  /** By partition; undefined before a member joins, as in a run without keys. */
  #points: BigUint64Array | undefined;
  readonly #owners: (Member | undefined)[];
  readonly #members = new Map<string, Member>();

  constructor({ totalPartitions, virtualNodes }: RingSize) {
    this.#virtualNodes = virtualNodes;
    this.#owners = Array.from({ length: totalPartitions }, () => undefined);
  }

  get members(): Iterable<string> {
    return this.#members.keys();
  }

  get size(): number {
    return this.#members.size;
  }

  has(id: string): boolean {
    return this.#members.has(id);
  }

  /** Undefined while there is no member. */
  ownerOf(partition: number): string | undefined {
    return this.#owners[partition]?.id;
  }

  /** Partitions that move to the one that joins, in order of partition. A member joins once. */
  join(id: string): MovedPartition[] {
    assert(!this.#members.has(id), `${id} is on the ring`);
    const member = this.#measure(id);
    this.#members.set(id, member);
    const moved: MovedPartition[] = [];
    for (const [partition, owner] of this.#owners.entries()) {
      if (owner !== undefined && !isNearer(member, owner, partition)) continue;
      this.#owners[partition] = member;
      moved.push({ partition, from: owner?.id, to: id });
    }
    return moved;
  }

  /** Partitions that move from the one that leaves, in order; none if it is no member. */
  leave(id: string): MovedPartition[] {
    if (!this.#members.delete(id)) return [];
    const moved: MovedPartition[] = [];
    for (const [partition, owner] of this.#owners.entries()) {
      if (owner?.id !== id) continue;
      const next = this.#members.get(this.firstOf(this.#members.keys(), partition) ?? "");
      this.#owners[partition] = next;
      moved.push({ partition, from: id, to: next?.id });
    }
    return moved;
  }

  /** The first of these that follows the partition; undefined when none of them is a member. */
  firstOf(ids: Iterable<string>, partition: number): string | undefined {
    let first: Member | undefined;
    for (const id of ids) {
      const member = this.#members.get(id);
      if (member !== undefined && (first === undefined || isNearer(member, first, partition))) first = member;
    }
    return first?.id;
  }

  #measure(id: string): Member {
    const nodes = BigUint64Array.from({ length: this.#virtualNodes }, (_, at) =>
      pointOf(`${id}-vnode-${at}`),
    ).sort();
    const { length } = this.#owners;
    const points = (this.#points ??= BigUint64Array.from({ length }, (_, at) => pointOf(`partition-${at}`)));
    const [high, low] = [new Uint32Array(length), new Uint32Array(length)];
    for (const [partition, point] of points.entries()) {
      const distance = BigInt.asUintN(64, firstFrom(nodes, point) - point);
      high[partition] = Number(distance >> LOW_BITS);
      low[partition] = Number(BigInt.asUintN(32, distance));
    }
    return { id, high, low };
  }
}

function pointOf(text: string): bigint {
  return hash("sha256", text, "buffer").readBigUInt64BE(0);
}

/** The first of the sorted points at or after `point`, around if there is none. */
function firstFrom(sorted: BigUint64Array, point: bigint): bigint {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((sorted[middle] ?? 0n) < point) from = middle + 1;
    else to = middle;
  }
  const found = sorted[from] ?? sorted[0];
  assert(found !== undefined, "a member has a point");
  return found;
}

/** The smaller id decides between two that are as near. */
function isNearer(one: Member, other: Member, partition: number): boolean {
  const high = (one.high[partition] ?? 0) - (other.high[partition] ?? 0);
  if (high !== 0) return high < 0;
  const low = (one.low[partition] ?? 0) - (other.low[partition] ?? 0);
  return low !== 0 ? low < 0 : one.id < other.id;
}
