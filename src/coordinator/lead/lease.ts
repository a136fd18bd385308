// The lease, which says who leads. One row, `coordinator_lease`, and beside it the ledger's own copy of the epoch that every
// write of a leader expects (C1). A claim expects both rows exactly as they were read, takes one more than the greater epoch,
// and stamps both in one synced commit: before any message of that epoch leaves, and never twice for one number.
//
// A renewal moves the lease row alone, and never to bytes that stood there before, so that whoever sees the same row
// twice knows that nobody renewed it in between. The row is never deleted: resigning marks it free and keeps its epoch.
import { assert } from "../../base/assert.ts";
import { failure } from "../../base/errors.ts";
import { epoch } from "../../base/ids.ts";
import type { Epoch } from "../../base/ids.ts";
import { decodeRecord, encodeRecord, okOrFailure } from "../../storage/codec.ts";
import type { RecordType } from "../../storage/codec.ts";
import { COORDINATOR_LEASE_KEY, EPOCH_KEY, RECORD_KIND } from "../../storage/keys.ts";
import type { CommitOutcome, Expectation, Store } from "../../storage/store.ts";

interface LeaseRow {
  readonly epoch: Epoch;
  /** A nonce of the process that holds it; null when nobody does. */
  readonly holder: string | null;
  /** Grows with each try of the holder to renew. */
  readonly renewals: number;
}

const leaseRecord: RecordType<LeaseRow> = {
  kind: RECORD_KIND.lease,
  name: "lease",
  version: 1,
  migrations: {},
  encode: (row) => [row.epoch, row.holder, row.renewals],
  decode: (fields) => ({
    epoch: epoch(fields.integer(0)),
    holder: fields.isNull(1) ? null : fields.text(1),
    renewals: fields.integer(2),
  }),
};

const epochRecord: RecordType<Epoch> = {
  kind: RECORD_KIND.epoch,
  name: "epoch",
  version: 1,
  migrations: {},
  encode: (value) => [value],
  decode: (fields) => epoch(fields.integer(0)),
};

export interface Leadership {
  readonly epoch: Epoch;
  /** Every batch of this leader expects it (C1). */
  readonly epochRow: Expectation;
}

/** Both rows as one look found them; a claim expects exactly these. */
export interface LeaseRows {
  readonly lease: LeaseRow | undefined;
  readonly leaseBytes: Uint8Array | null;
  readonly epoch: Epoch | undefined;
  readonly epochBytes: Uint8Array | null;
}

export type TakeOutcome =
  | { readonly kind: "taken"; readonly leadership: Leadership }
  /** Somebody else changed a row since it was read. */
  | { readonly kind: "beaten" }
  /** The store cannot say what it wrote, and the claim is not there; it may still come. */
  | { readonly kind: "unclear"; readonly cause: Error };

export type RenewOutcome =
  | { readonly kind: "renewed" }
  /** Another epoch or another holder stands there. Final. */
  | { readonly kind: "fenced"; readonly seenEpoch: Epoch | null }
  /** Not renewed, as far as anybody can tell, and nobody else's either. */
  | { readonly kind: "unclear"; readonly cause: unknown };

const CLAIM_TRIES_MAX = 8;
const RENEW_TRIES_MAX = 8;

export class StorageLease {
  readonly #store: Store;
  readonly #holder: string;
  /** The row as this process last wrote it, or found it written by itself. */
  #held: { readonly row: LeaseRow; readonly bytes: Uint8Array } | undefined;
  #renewals = 0;

  /** `holder` is unique to this process: finding it in the row after an unknown outcome means that the row is ours. */
  constructor(store: Store, holder: string) {
    this.#store = store;
    this.#holder = holder;
  }

  /** Throws what the store throws; store_corrupt or store_newer for a row that cannot be understood. */
  async read(): Promise<LeaseRows> {
    const [lease, leaseBytes] = await this.#readRow(leaseRecord, COORDINATOR_LEASE_KEY);
    const [ledgerEpoch, epochBytes] = await this.#readRow(epochRecord, EPOCH_KEY);
    return { lease, leaseBytes, epoch: ledgerEpoch, epochBytes };
  }

  /** Whether there is nobody to wait for. A row of one's own is a claim or a leadership that came to nothing. */
  isFree({ lease }: LeaseRows): boolean {
    return lease === undefined || lease.holder === null || lease.holder === this.#holder;
  }

  /** Takes the lease from whoever had it in `rows`, with the next epoch. Throws when the store cannot be read again. */
  async take(rows: LeaseRows): Promise<TakeOutcome> {
    const next = epoch(Math.max(rows.lease?.epoch ?? -1, rows.epoch ?? -1) + 1);
    const row: LeaseRow = { epoch: next, holder: this.#holder, renewals: ++this.#renewals };
    const { outcome, leaseBytes, epochBytes } = await this.#stamp(rows, row);
    if (outcome.kind === "conflict") return { kind: "beaten" };
    if (outcome.kind === "unknown") {
      const { lease } = await this.read();
      if (lease?.epoch !== next || lease.holder !== this.#holder)
        return { kind: "unclear", cause: outcome.cause };
    }
    this.#held = { row, bytes: leaseBytes };
    const epochRow = { key: EPOCH_KEY, value: epochBytes };
    return { kind: "taken", leadership: { epoch: next, epochRow } };
  }

  /**
   * Takes the lease whoever holds it: for a store that only one process can have open, where holding the store proves that
   * no other leader lives. Throws what the store throws.
   */
  async claim(): Promise<Leadership> {
    for (let attempt = 1; attempt <= CLAIM_TRIES_MAX; attempt++) {
      const outcome = await this.take(await this.read());
      if (outcome.kind === "taken") return outcome.leadership;
      if (outcome.kind === "unclear") throw outcome.cause;
    }
    throw failure("internal", { detail: "the lease changed under every claim" });
  }

  /** Moves the row of a lease that was taken. Never throws. */
  async renew(): Promise<RenewOutcome> {
    for (let attempt = 1; attempt <= RENEW_TRIES_MAX; attempt++) {
      assert(this.#held !== undefined, "who renews a lease has taken it");
      const row: LeaseRow = { ...this.#held.row, renewals: ++this.#renewals };
      const bytes = encodeRecord(leaseRecord, COORDINATOR_LEASE_KEY, row);
      const outcome = await this.#store.commit({
        puts: [{ key: COORDINATOR_LEASE_KEY, value: bytes }],
        deletes: [],
        expect: [{ key: COORDINATOR_LEASE_KEY, value: this.#held.bytes }],
        durability: "flush",
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
      return lease.renewals === row.renewals
        ? { kind: "renewed" }
        : { kind: "unclear", cause: outcome.cause };
    }
    return {
      kind: "unclear",
      cause: failure("internal", { detail: "the lease changed under every renewal" }),
    };
  }

  /** Marks the lease free if it is still ours. Failing to is harmless: the next claim takes a higher epoch. */
  async resign(): Promise<void> {
    const rows = await this.read();
    const { lease } = rows;
    if (lease?.holder !== this.#holder || lease.epoch !== this.#held?.row.epoch) return;
    await this.#stamp(rows, { ...lease, holder: null });
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
