// The storage port: ordered, atomic, conditional bytes. The core sees nothing else of a database, and every
// implementation passes the one contract suite in test/contract/store.ts.
//
// Keys are printable ASCII without spaces, so that order by byte and order by character are the same and a key can be
// named in a message. Values are opaque bytes; src/storage/codec.ts says what is in them.
import { assert } from "../base/assert.ts";

export interface Store {
  /** How messages name this store: the path of the database, its address, or "memory". */
  readonly location: string;
  /** Abilities that callers ask for before they rely on them. */
  readonly supports: {
    /** Whether several processes may have this store open at once. */
    readonly multiProcess: boolean;
  };
  /** Whether a commit was ever made here. A store that says so and holds nothing has lost it: it is not new. */
  readonly everWritten: boolean;
  /**
   * Names the branch of history that this store is on. It changes when the database may have gone on from an older state: a backup was restored, a
   * standby promoted. After an answer it is the one of the server that answered, so it may change while the store is open. Constant where no
   * copy can be told from another.
   */
  readonly generation: string;
  /** The value that was last committed, or undefined when the key is absent. */
  get(key: string): Promise<Uint8Array | undefined>;
  /** The same of each key, in their order, in one go. A commit meanwhile may be seen for some and not for others. */
  getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]>;
  /** Entries in the range, in ascending order of key, as one consistent view; `limit` at most. */
  scan(range: ScanRange): Promise<Entry[]>;
  /**
   * Applies the whole batch or nothing. Batches take effect, and are answered, in the order of the calls, so that many
   * may be on their way at once; after a crash what is missing is a tail of them, never one from the middle. Batches that
   * concern nothing but the lease keep that order among themselves, and need not wait for the others. Never rejects while the store
   * is open. The bytes in the batch are the store's until the answer: do not change them.
   */
  commit(batch: Batch): Promise<CommitOutcome>;
  /**
   * All of it as it is at this moment, to be read and closed before this store is: only `get`, `getMany`, `scan` and `close` of it may
   * be called. Missing where nobody needs it: in memory.
   */
  freeze?(): Promise<Store>;
  /** Waits for commits in flight, then lets go of the database. Idempotent. Every other call after it is a bug: it throws. */
  close(): Promise<void>;
}

export interface Entry {
  readonly key: string;
  readonly value: Uint8Array;
}

/** `[from, to)`, `limit` at least 1; a page is continued with `from` = `nextKey` of its last key. */
export interface ScanRange {
  readonly from: string;
  readonly to: string;
  readonly limit: number;
  /** The page ends behind the entry that takes it over so many bytes of keys and values: the next one may not fit beside it. */
  readonly bytesMax?: number;
}

/** Deletes apply before puts, and of two puts of one key the later one wins. */
export interface Batch {
  readonly puts: readonly Entry[];
  readonly deletes: readonly string[];
  /** Checked in the same atomic step as the writes. */
  readonly expect: readonly Expectation[];
  readonly durability: Durability;
}

/** The key holds exactly `value`; null means that it is absent. */
export interface Expectation {
  readonly key: string;
  readonly value: Uint8Array | null;
}

/**
 * `sync`: on stable storage before `committed` is said; survives the loss of power.
 * `flush`: handed to the operating system; survives the end of the process, not of the machine. For what can be redone.
 */
export type Durability = "sync" | "flush";

export type CommitOutcome =
  | { readonly kind: "committed" }
  /** An expectation did not hold; nothing was written. */
  | { readonly kind: "conflict"; readonly key: string }
  /** The write failed and may be there or not. Read again before saying anything; if that fails too, end the process. */
  | { readonly kind: "unknown"; readonly cause: Error };

/** The generation of a store that cannot tell a copy of itself from itself. */
export const NO_GENERATION = "";

/** Whether what was found is what is expected: the same bytes, or nothing for null. */
export function isSameValue(found: Uint8Array | null, expected: Uint8Array | null): boolean {
  if (found === null || expected === null) return found === expected;
  return Buffer.compare(found, expected) === 0;
}

/** The smallest key after `key`. */
export function nextKey(key: string): string {
  return `${key}\u0000`;
}

/** The range of all keys that begin with `prefix`, which ends in `/`. */
export function prefixRange(prefix: string): { from: string; to: string } {
  return { from: prefix, to: `${prefix.slice(0, -1)}0` };
}

// Demands of every implementation of the port on its callers. A call that breaks one of these is a bug of the caller
// and fails in the same way on each store, instead of working on one and being lost by another.

const KEY = /^[!-~]+$/;

export function assertKey(key: string): void {
  // Called for every key of every batch: the message is made only when it is needed.
  if (!KEY.test(key)) assert(false, `a key is printable ASCII without spaces: ${JSON.stringify(key)}`);
}

export function assertRange(range: ScanRange): void {
  assert(Number.isSafeInteger(range.limit) && range.limit >= 1, `a scan has a limit: ${range.limit}`);
}

export function assertBatch(batch: Batch): void {
  for (const { key } of batch.puts) assertKey(key);
  for (const key of batch.deletes) assertKey(key);
  for (const { key } of batch.expect) assertKey(key);
}

export function assertOpen(open: boolean, location: string): void {
  assert(open, `the store ${location} was used after it was closed`);
}
