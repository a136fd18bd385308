// Partitions that are warm: whose worker has said that it has their states in memory, so that assignments of their keys come without. It is
// said anew in each session, and forgotten with the leader: a mark that is missing costs bytes, and one that is wrong a refusal by the
// worker, which has no state of that commit.
//
// Keeps true: a state is left out only if the worker was sent it, or has reported it and is told of its commit, in the session of now.
import type { WorkerId } from "../../base/ids.ts";
import type { Key } from "./key.ts";
import type { PartitionRecord } from "./partition-record.ts";

/** The session of a worker; nothing is known of it but which one it is. */
type Holder = object;

interface Warm {
  readonly worker: WorkerId;
  readonly incarnation: string;
  readonly holder: Holder;
  /** Keys whose states are to be sent still, and how many of them are. */
  readonly unsent: readonly Key[];
  sent: number;
  isReading: boolean;
  /** With all of `unsent` the worker has all states up to this commit. */
  readonly upTo: number;
  /** The worker has said that it has them. */
  isLoaded: boolean;
  /** Keys whose states it does not have: others have reported them, or it has said so. */
  readonly strays: Set<Key>;
}

export interface Opening {
  readonly worker: WorkerId;
  readonly incarnation: string;
  readonly holder: Holder;
  /** The worker has all states up to this commit. */
  readonly offset: number;
  /** The last commit of the run. */
  readonly upTo: number;
  /** All keys of the partition. */
  readonly keys: Iterable<Key>;
}

/** States that go to the worker next. */
export interface Unsent {
  readonly keys: readonly Key[];
  readonly upTo: number;
}

export class Warmth {
  readonly #partitions = new Map<number, Warm>();
  /** Partitions of workers, whatever their sessions. */
  readonly #ofWorker = new Map<WorkerId, Set<number>>();
  /** Keys whose states are missing in the last checkpoint of their partition, as far as this leader knows. */
  readonly #unwritten = new Map<number, ReadonlySet<Key>>();
  readonly checkpoints = new Map<number, PartitionRecord>();
  /** Assignments with the state of their key, and those without because the worker had it. */
  statesSent = 0;
  statesSaved = 0;
  /** The number of the last request for checkpoints, and when it was made; monotonic. */
  request = 0;
  requestedAtMs = -Infinity;

  /** A worker has read what it could of a partition, and is to be sent the rest. */
  open(partition: number, { worker, incarnation, holder, offset, upTo, keys }: Opening): void {
    const before = this.#partitions.get(partition);
    const isItsOwn = before?.worker === worker && before.incarnation === incarnation;
    // States on their way on a stream that broke off may not have come.
    const unsure = isItsOwn ? [...before.strays, ...before.unsent.slice(before.sent)] : [];
    const wanted = new Set([...unsure, ...(this.#unwritten.get(partition) ?? [])]);
    for (const key of keys) if (key.commit > offset) wanted.add(key);
    this.close(partition);
    const begun = { unsent: [...wanted], sent: 0, isReading: false, upTo, isLoaded: false };
    this.#partitions.set(partition, { worker, incarnation, holder, ...begun, strays: new Set() });
    const known = this.#ofWorker.get(worker) ?? new Set();
    this.#ofWorker.set(worker, known.add(partition));
  }

  /** Whether it is sent states, or has them. */
  isOpen(partition: number, holder: Holder): boolean {
    return this.#partitions.get(partition)?.holder === holder;
  }

  /** The next states of the partition, once for each frame; undefined when they are being read, or nobody waits for them. */
  next(partition: number, holder: Holder, max: number): Unsent | undefined {
    const warm = this.#partitions.get(partition);
    if (warm?.holder !== holder || warm.isReading || warm.isLoaded) return undefined;
    warm.isReading = true;
    return { keys: warm.unsent.slice(warm.sent, warm.sent + max), upTo: warm.upTo };
  }

  /** So many of the next ones were read, and are sent now. Returns the commit of the last frame, or how many follow; undefined when nobody waits. */
  sent(partition: number, holder: Holder, count: number): { readonly last: number | undefined } | undefined {
    const warm = this.#partitions.get(partition);
    if (warm?.holder !== holder || !warm.isReading) return undefined;
    warm.isReading = false;
    warm.sent += count;
    return { last: warm.sent >= warm.unsent.length ? warm.upTo : undefined };
  }

  /** The worker has all that it was sent. False when that cannot be. */
  loaded(partition: number, holder: Holder, offset: number): boolean {
    const warm = this.#partitions.get(partition);
    const isAll = warm?.holder === holder && !warm.isReading && warm.sent >= warm.unsent.length;
    if (!isAll || warm.isLoaded || offset < warm.upTo) return false;
    return (warm.isLoaded = true);
  }

  close(partition: number): void {
    const warm = this.#partitions.get(partition);
    if (warm === undefined) return;
    this.#partitions.delete(partition);
    const known = this.#ofWorker.get(warm.worker);
    known?.delete(partition);
    if (known?.size === 0) this.#ofWorker.delete(warm.worker);
  }

  /** Partitions have other owners: those of others are warm no longer. */
  retain(ownerOf: (partition: number) => WorkerId | undefined): void {
    for (const [partition, { worker }] of this.#partitions)
      if (ownerOf(partition) !== worker) this.close(partition);
  }

  /** Whether any partition of the worker is open in its session of now, so that it wants to know of its commits. */
  hears(worker: WorkerId, holder: Holder): boolean {
    for (const partition of this.#ofWorker.get(worker) ?? [])
      if (this.#partitions.get(partition)?.holder === holder) return true;
    return false;
  }

  /** Whether the worker has the state of the key. */
  has(key: Key, holder: Holder): boolean {
    const warm = this.#partitions.get(key.partition);
    return warm?.holder === holder && warm.isLoaded && !warm.strays.has(key);
  }

  /** Another state of the key is committed. `heardBy`: the session that is told of the commit, and of which the state came. */
  committed(key: Key, heardBy: Holder | undefined): void {
    const warm = this.#partitions.get(key.partition);
    if (warm === undefined) return;
    if (warm.holder === heardBy) warm.strays.delete(key);
    else warm.strays.add(key);
  }

  /** No worker has any states. */
  get isCold(): boolean {
    return this.#partitions.size === 0;
  }

  /** The state with which an item of the key is given to a worker: null where the worker has it. */
  give<Given extends { readonly state: Uint8Array | null }>(
    key: Key | undefined,
    given: Given,
    holder: Holder,
  ): Given {
    if (key !== undefined && this.has(key, holder)) {
      this.statesSaved++;
      return { ...given, state: null };
    }
    this.statesSent++;
    const warm = key && this.#partitions.get(key.partition);
    if (key !== undefined && warm?.holder === holder) warm.strays.delete(key);
    return given;
  }

  /** The worker has said that it does not have the state: the next assignment brings it. */
  missed(key: Key): void {
    this.#partitions.get(key.partition)?.strays.add(key);
  }

  /** The key is not there any more. */
  forget(key: Key): void {
    this.#partitions.get(key.partition)?.strays.delete(key);
  }

  /** The worker of a warm partition has written a checkpoint of it. False when it is not warm there. */
  written(record: PartitionRecord, holder: Holder): boolean {
    const { partition } = record;
    const warm = this.#partitions.get(partition);
    if (warm?.holder !== holder || !warm.isLoaded) return false;
    this.checkpoints.set(partition, record);
    this.#unwritten.set(partition, new Set(warm.strays));
    return true;
  }
}
