// The lease, which says who leads. One row, `coordinator_lease`, and beside it the ledger's own copy of the epoch that every
// write of a leader expects (C1). A claim expects both rows exactly as they were read, takes one more than the greater epoch,
// and stamps both in one synced commit: before any message of that epoch leaves, and never twice for one number.
//
// A store that goes on from an older state of itself, such as a standby that was promoted, has lost claims that were answered. The row names
// the generation of the store that it was claimed on; a claim on another one leaps over all epochs that the lost branch can have given.
//
// A renewal moves the lease row alone, and never to bytes that stood there before, so that whoever sees the same row
// twice knows that nobody renewed it in between. The row is never deleted: resigning marks it free and keeps its epoch.
import { createHash } from "node:crypto";
import { assert } from "../../base/assert.ts";
import { failure } from "../../base/errors.ts";
import { epoch } from "../../base/ids.ts";
import type { Epoch } from "../../base/ids.ts";
import { decodeRecord, encodeRecord, okOrFailure } from "../../storage/codec.ts";
import type { RecordType } from "../../storage/codec.ts";
import { COORDINATOR_LEASE_KEY, EPOCH_KEY, RECORD_KIND } from "../../storage/keys.ts";
import { NO_GENERATION } from "../../storage/store.ts";
import { readFirstGeneration } from "../../storage/store-identity.ts";
import type { CommitOutcome, Durability, Expectation, Store } from "../../storage/store.ts";
import { NOTHING_SEEN } from "./store-memory.ts";
import type { Remembered } from "./store-memory.ts";

/** The lease as it is stored. */
export interface LeaseRow {
  readonly epoch: Epoch;
  /** A nonce of the process that holds it; null when nobody does. */
  readonly holder: string | null;
  /** Grows with each try of the holder to renew. */
  readonly renewals: number;
  /** Where the holder listens for others; empty when it is not known. */
  readonly address: string;
  /** The store's when it was claimed: a renewal leaves it as it is. */
  readonly generation: string;
  /** Where the store stood when somebody last went on with it after it had gone back, and how often that was. Each claim hands it on. */
  readonly accepted: Remembered;
}

const leaseRecord: RecordType<LeaseRow> = {
  kind: RECORD_KIND.lease,
  name: "lease",
  version: 2,
  // Version 1 was written on stores of one process alone, which have no generations.
  migrations: {
    1: (older) => [
      older.integer(0),
      older.isNull(1) ? null : older.text(1),
      older.integer(2),
      UNKNOWN_ADDRESS,
      NO_GENERATION,
      ...remembered(NOTHING_SEEN),
    ],
  },
  encode: (row) => [
    row.epoch,
    row.holder,
    row.renewals,
    row.address,
    row.generation,
    ...remembered(row.accepted),
  ],
  decode: (fields) => ({
    epoch: epoch(fields.integer(0)),
    holder: fields.isNull(1) ? null : fields.text(1),
    renewals: fields.integer(2),
    address: fields.text(3),
    generation: fields.text(4),
    accepted: {
      accepted: fields.integer(5),
      epoch: fields.integer(6),
      completion: fields.integer(7),
      submitted: fields.integer(8),
      done: fields.integer(9),
    },
  }),
};

function remembered({ accepted, epoch: seenEpoch, completion, submitted, done }: Remembered): number[] {
  return [accepted, seenEpoch, completion, submitted, done];
}

const UNKNOWN_ADDRESS = "";

const epochRecord: RecordType<Epoch> = {
  kind: RECORD_KIND.epoch,
  name: "epoch",
  encode: (value) => [value],
  decode: (fields) => epoch(fields.integer(0)),
};

export interface Leadership {
  readonly epoch: Epoch;
  /** Every batch of this leader expects it (C1). */
  readonly epochRow: Expectation;
  /** The generation that the claim before was made on, where that is another one than the store has now; else undefined. */
  readonly branchedFrom: string | undefined;
}

/** Both rows as one look found them; a claim expects exactly these. */
export interface LeaseRows {
  readonly lease: LeaseRow | undefined;
  readonly leaseBytes: Uint8Array | null;
  readonly epoch: Epoch | undefined;
  readonly epochBytes: Uint8Array | null;
  /** The store's, before it was read. */
  readonly generation: string;
  /** The one that the last claim was made on; before the first claim, the one that the store was made on. */
  readonly claimedOn: string;
}

export interface LeaseOptions {
  /** Where others reach this process; empty when it is not known. */
  readonly address?: string;
}

/** A claim of a store that has lost epochs which are known from elsewhere. */
export interface LostEpochs {
  /** The highest that is known to have been given. */
  readonly highest: Epoch;
  /** Stands in the store from the claim on, so that other hosts go on as well. */
  readonly accepted?: Remembered;
}

/** Looks at a store before it is claimed, and throws where this process cannot lead it: then nothing was written. */
export type BeforeTake = (rows: LeaseRows) => Promise<LostEpochs | undefined>;

export type TakeOutcome =
  | { readonly kind: "taken"; readonly leadership: Leadership }
  /** Somebody else changed a row since it was read, or the store went on as another generation: read again. */
  | { readonly kind: "beaten" }
  /** The store cannot say what it wrote, and the claim is not there; it may still come. */
  | { readonly kind: "unclear"; readonly cause: Error };

export type RenewOutcome =
  | { readonly kind: "renewed" }
  /** Another epoch or another holder stands there. Final. */
  | { readonly kind: "fenced"; readonly seenEpoch: Epoch | null }
  /** Not renewed, as far as anybody can tell, and nobody else's either. */
  | { readonly kind: "unclear"; readonly cause: unknown };

/** More leaderships than one branch of a store ever sees. */
const EPOCHS_PER_BRANCH = 65_536;
/** Bytes of a digest: a leap is up to 2^40, and thousands of them stay exact. */
const LEAP_BYTES = 3;
const CLAIM_TRIES_MAX = 8;
const RENEW_TRIES_MAX = 8;

export class StorageLease {
  readonly #store: Store;
  readonly #holder: string;
  readonly #options: LeaseOptions;
  /** The row as this process last wrote it, or found it written by itself. */
  #held: { readonly row: LeaseRow; readonly bytes: Uint8Array } | undefined;
  #renewals = 0;

  /** `holder` is unique to this process: finding it in the row after an unknown outcome means that the row is ours. */
  constructor(store: Store, holder: string, options: LeaseOptions = {}) {
    this.#store = store;
    this.#holder = holder;
    this.#options = options;
  }

  /** Throws what the store throws; store_corrupt or store_newer for a row that cannot be understood. */
  async read(): Promise<LeaseRows> {
    const { generation } = this.#store;
    const [lease, leaseBytes] = await this.#readRow(leaseRecord, COORDINATOR_LEASE_KEY);
    const [ledgerEpoch, epochBytes] = await this.#readRow(epochRecord, EPOCH_KEY);
    const claimedOn = lease?.generation ?? (await readFirstGeneration(this.#store)) ?? generation;
    return { lease, leaseBytes, epoch: ledgerEpoch, epochBytes, generation, claimedOn };
  }

  /** Whether there is nobody to wait for. A row of one's own is a claim or a leadership that came to nothing. */
  isFree({ lease }: LeaseRows): boolean {
    return lease === undefined || lease.holder === null || lease.holder === this.#holder;
  }

  /**
   * Takes the lease from whoever had it in `rows`, with the next epoch; with one above all that a lost branch may have given where the store
   * is of another generation than the row, or `lost` says so. Throws when the store cannot be read again.
   */
  async take(rows: LeaseRows, lost?: LostEpochs): Promise<TakeOutcome> {
    const { generation, claimedOn } = rows;
    const branchedFrom = claimedOn === generation ? undefined : claimedOn;
    const highest = Math.max(rows.lease?.epoch ?? -1, rows.epoch ?? -1, lost?.highest ?? -1);
    const hasLost = branchedFrom !== undefined || lost !== undefined;
    const next = epoch(highest + (hasLost ? this.#leap(generation) : 1));
    const row: LeaseRow = {
      epoch: next,
      holder: this.#holder,
      renewals: ++this.#renewals,
      address: this.#options.address ?? UNKNOWN_ADDRESS,
      generation,
      accepted: lost?.accepted ?? rows.lease?.accepted ?? NOTHING_SEEN,
    };
    const { outcome, leaseBytes, epochBytes } = await this.#stamp(rows, row);
    if (outcome.kind === "conflict") return { kind: "beaten" };
    this.#held = { row, bytes: leaseBytes };
    if (outcome.kind === "unknown") {
      const { lease } = await this.read();
      if (lease?.epoch !== next || lease.holder !== this.#holder)
        return { kind: "unclear", cause: outcome.cause };
      // The row that is seen may be one that a standby does not have yet. A later commit that is synced has it behind it.
      const renewed = await this.#renew("sync");
      if (renewed.kind === "fenced") return { kind: "beaten" };
      if (renewed.kind === "unclear") return { kind: "unclear", cause: outcome.cause };
    }
    // It stands on another branch than the one that it was reckoned for, where its epoch may have been given.
    if (this.#store.generation !== generation) return { kind: "beaten" };
    const epochRow = { key: EPOCH_KEY, value: epochBytes };
    return { kind: "taken", leadership: { epoch: next, epochRow, branchedFrom } };
  }

  /**
   * Takes the lease whoever holds it: for a store that only one process can have open, where holding the store proves that
   * no other leader lives. Throws what the store and `beforeTake` throw.
   */
  async claim(beforeTake?: BeforeTake): Promise<Leadership> {
    for (let attempt = 1; attempt <= CLAIM_TRIES_MAX; attempt++) {
      const rows = await this.read();
      const outcome = await this.take(rows, await beforeTake?.(rows));
      if (outcome.kind === "taken") return outcome.leadership;
      if (outcome.kind === "unclear") throw outcome.cause;
    }
    throw failure("internal", { detail: "the lease changed under every claim" });
  }

  /** Moves the row of a lease that was taken. Never throws. */
  renew(): Promise<RenewOutcome> {
    return this.#renew("flush");
  }

  async #renew(durability: Durability): Promise<RenewOutcome> {
    for (let attempt = 1; attempt <= RENEW_TRIES_MAX; attempt++) {
      assert(this.#held !== undefined, "who renews a lease has taken it");
      const row: LeaseRow = { ...this.#held.row, renewals: ++this.#renewals };
      const bytes = encodeRecord(leaseRecord, COORDINATOR_LEASE_KEY, row);
      const outcome = await this.#store.commit({
        puts: [{ key: COORDINATOR_LEASE_KEY, value: bytes }],
        deletes: [],
        expect: [{ key: COORDINATOR_LEASE_KEY, value: this.#held.bytes }],
        durability,
      });
      if (outcome.kind === "committed") {
        this.#held = { row, bytes };
        return { kind: "renewed" };
      }
      const found = await this.read().then(
        (rows) => ({ kind: "read", rows }) as const,
        (cause: unknown) => ({ kind: "unclear", cause }) as const,
      );
      if (found.kind === "unclear") return found;
      const { lease, leaseBytes } = found.rows;
      if (lease?.holder !== this.#holder || lease.epoch !== row.epoch || leaseBytes === null)
        return { kind: "fenced", seenEpoch: lease?.epoch ?? null };
      this.#held = { row: lease, bytes: leaseBytes };
      if (outcome.kind === "conflict") continue;
      if (lease.renewals !== row.renewals) return { kind: "unclear", cause: outcome.cause };
      if (durability === "flush") return { kind: "renewed" };
      // It is there, and perhaps on this server alone. Only an answer says that it is on stable storage.
    }
    return { kind: "unclear", cause: failure("internal", { detail: "no renewal was answered" }) };
  }

  /** Marks the lease free if it is still ours. Failing to is harmless: the next claim takes a higher epoch. */
  async resign(): Promise<void> {
    const rows = await this.read();
    const { lease } = rows;
    if (lease?.holder !== this.#holder || lease.epoch !== this.#held?.row.epoch) return;
    await this.#stamp(rows, { ...lease, holder: null });
  }

  /**
   * Over the epochs of one lost branch at least. How far beyond differs by branch and process: two branches that begin at the same old
   * state, one after the other, do not leap to the same epoch.
   */
  #leap(generation: string): number {
    const digest = createHash("sha256").update(`${generation} ${this.#holder}`).digest();
    return EPOCHS_PER_BRANCH * (1 + digest.readUIntBE(0, LEAP_BYTES));
  }

  async #stamp(
    rows: LeaseRows,
    row: LeaseRow,
  ): Promise<{ outcome: CommitOutcome; leaseBytes: Uint8Array; epochBytes: Uint8Array }> {
    const epochBytes = encodeRecord(epochRecord, EPOCH_KEY, row.epoch);
    const leaseBytes = encodeRecord(leaseRecord, COORDINATOR_LEASE_KEY, row);
    const outcome = await this.#store.commit({
      puts: [
        { key: COORDINATOR_LEASE_KEY, value: leaseBytes },
        { key: EPOCH_KEY, value: epochBytes },
      ],
      deletes: [],
      expect: [
        { key: COORDINATOR_LEASE_KEY, value: rows.leaseBytes },
        { key: EPOCH_KEY, value: rows.epochBytes },
      ],
      durability: "sync",
    });
    return { outcome, leaseBytes, epochBytes };
  }

  async #readRow<T>(type: RecordType<T>, key: string): Promise<[T | undefined, Uint8Array | null]> {
    const bytes = await this.#store.get(key);
    if (bytes === undefined) return [undefined, null];
    return [okOrFailure(this.#store.location, decodeRecord(type, key, bytes)), bytes];
  }
}
