// The storage port: ordered, atomic, conditional bytes. The core sees nothing else of a database, and every
// implementation passes the one contract suite in test/contract/store.ts.
//
// Keys are printable ASCII without spaces, so that order by byte and order by character are the same and a key can be
// named in a message. Values are opaque bytes; src/storage/codec.ts says what is in them.

export interface Store {
  /** How messages name this store: the path of the database, or "memory". */
  readonly location: string;
  /** Abilities that callers ask for before they rely on them. */
  readonly supports: {
    /** Whether several processes may have this store open at once. */
    readonly multiProcess: boolean;
  };
  /** Whether a commit was ever made here. A store that says so and holds nothing has lost it: it is not new. */
  readonly everWritten: boolean;
  /** The value that was last committed, or undefined when the key is absent. */
  get(key: string): Promise<Uint8Array | undefined>;
  /** The same of each key, in their order, in one go. A commit meanwhile may be seen for some and not for others. */
  getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]>;
  /** Entries in the range, in ascending order of key, as one consistent view; `limit` at most. */
  scan(range: ScanRange): Promise<Entry[]>;
  /**
   * Applies the whole batch or nothing. Batches take effect, and are answered, in the order of the calls, so that many
   * may be on their way at once; after a crash what is missing is a tail of them, never one from the middle. Never
   * rejects while the store is open. The bytes in the batch are the store's until the answer: do not change them.
   */
  commit(batch: Batch): Promise<CommitOutcome>;
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

/** The smallest key after `key`. */
export function nextKey(key: string): string {
  return `${key}\u0000`;
}

/** The range of all keys that begin with `prefix`, which ends in `/`. */
export function prefixRange(prefix: string): { from: string; to: string } {
  return { from: prefix, to: `${prefix.slice(0, -1)}0` };
}
