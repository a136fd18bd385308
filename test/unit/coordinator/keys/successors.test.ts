// Heads that any worker may have, against a plain ring: each goes to the first worker behind its owner that has a free slot left.
import { expect } from "chai";
import { seededRandom } from "../../../../src/base/random.ts";
import type { WorkerId } from "../../../../src/base/ids.ts";
import { Assignment } from "../../../../src/coordinator/keys/assignment.ts";
import { Key } from "../../../../src/coordinator/keys/key.ts";
import { KeyQueue } from "../../../../src/coordinator/keys/key-queue.ts";
import type { PendingItem } from "../../../../src/coordinator/ledger/ledger.ts";
import { keyedPlaceOf, type Place } from "../../../../src/coordinator/ledger/place.ts";
import { Shelf } from "../../../../src/coordinator/ledger/shelf.ts";
import { draw, NODES, PARTITIONS, plainOwners, plainSuccessors } from "./plain-ring.ts";

const ROUNDS = 200;
const SPILL_MS = 250;
const random = seededRandom(1310);

interface Fleet {
  readonly members: readonly WorkerId[];
  readonly free: ReadonlyMap<WorkerId, number>;
}

function below(limit: number): number {
  return Math.floor(random.unit() * limit);
}

function drawFleet(): Fleet {
  const members = draw(1 + below(12)) as WorkerId[];
  return { members, free: new Map(members.map((id) => [id, below(3)])) };
}

function slotsOf({ free }: Fleet): number {
  return [...free.values()].reduce((sum, slots) => sum + slots, 0);
}

function drawHeads(): Key[] {
  return Array.from({ length: 1 + below(20) }, (_, at) => {
    const key = new Key(`k${at}`, below(PARTITIONS));
    key.head = { place: keyedPlaceOf(0, at), item: undefined };
    return key;
  });
}

function itemAt(key: Place): PendingItem {
  return { key, weight: 1, id: Buffer.from(key), payload: Buffer.of(), checkpoint: null, returned: null };
}

/** A queue with these heads, in order; the first `due` have waited for their owners for long enough. */
function queueOf({ members }: Fleet, heads: readonly Key[], due: number): KeyQueue {
  const assignment = new Assignment({ totalPartitions: PARTITIONS, virtualNodes: NODES }, undefined);
  assignment.change(new Set(members));
  const queue = new KeyQueue(SPILL_MS, { shelf: new Shelf(), alone: new Shelf() });
  queue.reassign(assignment, 0);
  for (const [at, key] of heads.entries()) {
    const item = itemAt(key.head?.place ?? keyedPlaceOf(0, at));
    key.head = { place: item.key, item };
    queue.put(key, item, at < due ? 0 : SPILL_MS);
  }
  queue.turnBegins(SPILL_MS);
  return queue;
}

/** The worker of each head that has spilled, by the plain ring. */
function expected({ members, free }: Fleet, heads: readonly Key[], spilled: number): Map<Key, string> {
  const owners = plainOwners(members);
  const left = new Map<string, number>(free);
  const use = (id: string): void => void left.set(id, (left.get(id) ?? 0) - 1);
  // Slots that a worker's own heads will take are not free.
  for (const { partition } of heads.slice(spilled)) use(owners[partition] ?? "");
  const found = new Map<Key, string>();
  for (const key of heads.slice(0, spilled)) {
    const first = plainSuccessors(members, key.partition).find((id) => (left.get(id) ?? 0) > 0);
    if (first === undefined) return found;
    found.set(key, first);
    use(first);
  }
  return found;
}

describe("a head that its owner has not taken in time", () => {
  it("goes to the first worker behind it on the ring that has a free slot left, in order of submission", () => {
    let moved = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const [fleet, heads] = [drawFleet(), drawHeads()];
      const due = below(heads.length + 1);
      const queue = queueOf(fleet, heads, due);
      // No more of them leave their owners than there are slots for.
      const spilled = Math.min(due, slotsOf(fleet));
      const wanted = expected(fleet, heads, spilled);
      const takeBack = queue.lend(() => new Map(fleet.free));
      const found = new Map<Key, string>();
      // One takes nothing, so what was lent to it is left.
      const [, ...takers] = [...fleet.members].sort(() => random.unit() - 0.5);
      for (const worker of takers)
        for (let slots = fleet.free.get(worker) ?? 0; slots > 0; slots--) {
          const item = queue.next({ worker, isOnlyOne: false, nowMs: SPILL_MS });
          const key = heads.find(({ head }) => head?.item === item);
          // Those for whom no slot is free are for anybody still.
          if (item === undefined || key === undefined) break;
          queue.remove(key);
          if (wanted.has(key)) found.set(key, worker);
        }
      for (const [key, worker] of found) expect(worker).to.equal(wanted.get(key));
      moved += found.size;
      takeBack?.();
      // Heads that are left can be taken by anybody who has a slot.
      const [somebody] = fleet.members;
      let left = heads.slice(0, spilled).filter(({ queue: where }) => where !== undefined).length;
      for (; left > 0; left--) {
        const item = queue.next({ worker: somebody ?? ("" as WorkerId), isOnlyOne: false, nowMs: SPILL_MS });
        const key = heads.find(({ head }) => head?.item === item);
        expect(key, "a head that was lent and not taken is for anybody again").not.to.equal(undefined);
        if (key !== undefined) queue.remove(key);
      }
    }
    expect(moved).to.be.above(ROUNDS);
  });
});
