// Attempts that a worker was given and has not started, in the order in which it will: priority, then arrival. Each can be
// taken back out of it, by a steal or by a verdict.
//
// Keeps true: an attempt is in it once.
import { assert } from "../../base/assert.ts";
import type { KeyOfItem } from "../backends/backend.ts";
import type { NumberPointer } from "./measures.ts";

/** An attempt that this worker was given. */
export interface Assigned {
  /** Names (item, attempt) within this process. */
  readonly key: string;
  readonly itemId: Uint8Array;
  readonly attempt: number;
  /** The leadership that assigned it. */
  readonly epoch: bigint;
  readonly payload: Uint8Array;
  readonly checkpoint: Uint8Array;
  readonly priority: number;
  /** Nothing else may execute beside it. */
  readonly alone: boolean;
  /** Name of the plugin that executes it. */
  readonly plugin: string;
  /** The version of it, and no other; empty: the worker's own. */
  readonly version: string;
  /** How long it may take; 0: as long as it likes. */
  readonly timeoutMs: number;
  /** Undefined for an item without a key. */
  readonly keyed?: GivenState | undefined;
  /** Numbers to read in its output; undefined when there are none. */
  readonly pointers?: readonly NumberPointer[] | undefined;
}

/** The key of an item, and the state with which the attempt begins. */
export interface GivenState extends KeyOfItem {
  /** The commit of the state; 0: the key has none. */
  readonly commit: bigint;
}

/** An attempt that has ended, and whose result is on its way. */
export interface Executed extends Assigned {
  /** The incarnation that executed it, in bytes; this process unless said. */
  readonly incarnation?: Uint8Array;
}

/**
 * The name of an attempt, for maps: a tenth of the cost of hexadecimal. The epoch is part of it: a coordinator that lost an
 * assignment with its power gives the same number out again.
 */
export function attemptKey(itemId: Uint8Array, attempt: number, epoch: bigint): string {
  const id = Buffer.from(itemId.buffer, itemId.byteOffset, itemId.byteLength).toString("latin1");
  return `${id}${attempt}@${epoch}`;
}

type Level = Map<string, Assigned>;

export class Backlog {
  readonly #capacity: number;
  readonly #priorityOf = new Map<string, number>();
  /** A level for each priority, in order of arrival; none is empty. */
  readonly #levels = new Map<number, Level>();
  /** The keys of the levels, highest first. */
  #priorities: readonly number[] = [];

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#priorityOf.size;
  }

  has(key: string): boolean {
    return this.#priorityOf.has(key);
  }

  add(assigned: Assigned): void {
    assert(this.size < this.#capacity, "C8: no more is given than was asked for");
    assert(!this.has(assigned.key), "an attempt is in the backlog once");
    const { key, priority } = assigned;
    this.#priorityOf.set(key, priority);
    const level = this.#levels.get(priority);
    if (level !== undefined) return void level.set(key, assigned);
    this.#levels.set(priority, new Map([[key, assigned]]));
    this.#sortLevels();
  }

  /** One that was taken out to be started, and has not begun: it is the first of its priority. */
  putBack(assigned: Assigned): void {
    const behind = [...(this.#levels.get(assigned.priority)?.values() ?? [])];
    for (const { key } of behind) this.remove(key);
    for (const one of [assigned, ...behind]) this.add(one);
  }

  /** The next one, which stays; undefined when there is none. */
  peek(): Assigned | undefined {
    const [highest] = this.#priorities;
    const level = highest === undefined ? undefined : this.#levels.get(highest);
    return level?.values().next().value;
  }

  /** Takes the next one out; undefined when there is none. */
  next(): Assigned | undefined {
    const first = this.peek();
    return first === undefined ? undefined : this.remove(first.key);
  }

  /** Takes this one out; undefined when it is not here. */
  remove(key: string): Assigned | undefined {
    const priority = this.#priorityOf.get(key);
    if (priority === undefined) return undefined;
    const level = this.#levels.get(priority);
    const assigned = level?.get(key);
    assert(level !== undefined && assigned !== undefined, "what has a priority stands in its level");
    this.#priorityOf.delete(key);
    level.delete(key);
    if (level.size === 0) {
      this.#levels.delete(priority);
      this.#sortLevels();
    }
    return assigned;
  }

  /** All of them, in order. */
  *[Symbol.iterator](): Generator<Assigned, void, undefined> {
    for (const priority of this.#priorities) yield* this.#levels.get(priority)?.values() ?? [];
  }

  #sortLevels(): void {
    this.#priorities = [...this.#levels.keys()].sort((left, right) => right - left);
  }
}
