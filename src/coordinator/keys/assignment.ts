// The assignment of partitions to workers, by the ring. It says where states are kept warm, never who may execute what. Its epoch is
// raised by each turn that changes the members, and stored with them, so that it never falls.
import type { WorkerId } from "../../base/ids.ts";
import { encodeRecord } from "../../storage/codec.ts";
import type { RecordType } from "../../storage/codec.ts";
import { ASSIGNMENT_KEY, RECORD_KIND } from "../../storage/keys.ts";
import type { Entry } from "../../storage/store.ts";
import { workerFrom } from "../ledger/records.ts";
import { ulidToBytes } from "../../base/ids.ts";
import { Ring } from "./ring.ts";
import type { MovedPartition, RingSize } from "./ring.ts";

export interface AssignmentRecord {
  readonly epoch: number;
  readonly virtualNodes: number;
  readonly members: readonly WorkerId[];
}

export const assignmentRecord: RecordType<AssignmentRecord> = {
  kind: RECORD_KIND.assignment,
  name: "assignment",
  encode: ({ epoch, virtualNodes, members }) => [epoch, virtualNodes, members.map(ulidToBytes)],
  decode: (fields) => {
    const members = fields.tuple(2);
    return {
      epoch: fields.integer(0),
      virtualNodes: fields.integer(1),
      members: Array.from({ length: members.length }, (_, at) => workerFrom(members, at)),
    };
  },
};

/** A change of members. */
export interface Moved {
  readonly epoch: number;
  readonly joined: readonly WorkerId[];
  readonly left: readonly WorkerId[];
  /** Partitions that have another owner than before the turn, once each. */
  readonly moves: readonly MovedPartition[];
}

export class Assignment {
  readonly #size: RingSize;
  readonly #ring: Ring;
  #epoch: number;
  /** The points of members were others when it was stored. */
  #isOutdated: boolean;
  /** The last one that is on disk. */
  committedEpoch: number;

  /** `stored` is undefined before the first. */
  constructor(size: RingSize, stored: AssignmentRecord | undefined) {
    this.#size = size;
    this.#ring = new Ring(size);
    this.#epoch = stored?.epoch ?? 0;
    this.committedEpoch = this.#epoch;
    this.#isOutdated = stored !== undefined && stored.virtualNodes !== size.virtualNodes;
    for (const member of stored?.members ?? []) this.#ring.join(member);
  }

  get epoch(): number {
    return this.#epoch;
  }

  get size(): number {
    return this.#ring.size;
  }

  has(worker: WorkerId): boolean {
    return this.#ring.has(worker);
  }

  ownerOf(partition: number): WorkerId | undefined {
    return this.#ring.ownerOf(partition) as WorkerId | undefined;
  }

  /** The first of these on the ring that follows the partition, its owner before all. */
  firstOf(workers: Iterable<WorkerId>, partition: number): WorkerId | undefined {
    return this.#ring.firstOf(workers, partition) as WorkerId | undefined;
  }

  /** In order of their numbers. */
  partitionsOf(worker: WorkerId): number[] {
    const partitions: number[] = [];
    for (let partition = 0; partition < this.#size.totalPartitions; partition++)
      if (this.#ring.ownerOf(partition) === worker) partitions.push(partition);
    return partitions;
  }

  /** Undefined when the members are those that there were. */
  change(members: ReadonlySet<WorkerId>): Moved | undefined {
    const left = ([...this.#ring.members] as WorkerId[]).filter((id) => !members.has(id));
    const joined = [...members].filter((id) => !this.#ring.has(id));
    if (left.length + joined.length === 0 && !this.#isOutdated) return undefined;
    const first = new Map<number, string | undefined>();
    const note = (moves: readonly MovedPartition[]): void => {
      for (const { partition, from } of moves) if (!first.has(partition)) first.set(partition, from);
    };
    // Joins come first: a partition does not pass through one that stays only to be taken by one that joins.
    for (const id of joined) note(this.#ring.join(id));
    for (const id of left) note(this.#ring.leave(id));
    this.#isOutdated = false;
    this.#epoch++;
    const moves = [...first]
      .map(([partition, from]) => ({ partition, from, to: this.#ring.ownerOf(partition) }))
      .filter(({ from, to }) => from !== to);
    return { epoch: this.#epoch, joined, left, moves };
  }

  entry(): Entry {
    const members = [...this.#ring.members] as WorkerId[];
    const record = { epoch: this.#epoch, virtualNodes: this.#size.virtualNodes, members };
    return { key: ASSIGNMENT_KEY, value: encodeRecord(assignmentRecord, ASSIGNMENT_KEY, record) };
  }
}
