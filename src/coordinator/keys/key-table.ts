// All keys of a run, by partition and text. Keeps true: a key is in the partition of its text; no partition has more keys than it may
// when it takes new ones (C8).
import { Key } from "./key.ts";
import { partitionOf } from "../../base/partition.ts";

/** A partition that would have more keys than it may. */
export interface FullPartition {
  readonly key: string;
  readonly partition: number;
  readonly limit: number;
}

export class KeyTable {
  readonly totalPartitions: number;
  readonly #keysMax: number;
  readonly #partitions: (Map<string, Key> | undefined)[];
  /** Lanes in each partition: they are in its map, and no keys. */
  readonly #lanes: number[];
  #size = 0;

  constructor(totalPartitions: number, keysMax: number) {
    this.totalPartitions = totalPartitions;
    this.#keysMax = keysMax;
    this.#partitions = new Array<undefined>(totalPartitions).fill(undefined);
    this.#lanes = new Array<number>(totalPartitions).fill(0);
  }

  /** Keys, without lanes. */
  get size(): number {
    return this.#size;
  }

  get(text: string): Key | undefined {
    return this.#partitions[partitionOf(text, this.totalPartitions)]?.get(text);
  }

  /** A key that is not there is made. */
  ensure(text: string): Key {
    const partition = partitionOf(text, this.totalPartitions);
    const keys = (this.#partitions[partition] ??= new Map<string, Key>());
    const known = keys.get(text);
    if (known !== undefined) return known;
    const key = new Key(text, partition);
    keys.set(text, key);
    this.#count(key, 1);
    return key;
  }

  remove(key: Key): void {
    const keys = this.#partitions[key.partition];
    if (keys?.get(key.text) !== key) return;
    keys.delete(key.text);
    this.#count(key, -1);
  }

  #count({ partition, isLane }: Key, by: 1 | -1): void {
    if (isLane) this.#lanes[partition] = (this.#lanes[partition] ?? 0) + by;
    else this.#size += by;
  }

  /** Undefined when there is room for all of them. */
  findFull(texts: Iterable<string>): FullPartition | undefined {
    const added = new Map<number, Set<string>>();
    for (const text of texts) {
      const partition = partitionOf(text, this.totalPartitions);
      const keys = this.#partitions[partition];
      if (keys?.has(text) === true) continue;
      const fresh = added.get(partition) ?? new Set();
      added.set(partition, fresh.add(text));
      if ((keys?.size ?? 0) - (this.#lanes[partition] ?? 0) + fresh.size > this.#keysMax)
        return { key: text, partition, limit: this.#keysMax };
    }
    return undefined;
  }

  /** With lanes, here and below. */
  keysOf(partition: number): Iterable<Key> {
    return this.#partitions[partition]?.values() ?? [];
  }

  *[Symbol.iterator](): Generator<Key> {
    for (const keys of this.#partitions) if (keys !== undefined) yield* keys.values();
  }
}
