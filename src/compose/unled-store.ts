// A run's tables on a Postgres for a command that looks into them or mends them by itself: only while no coordinator leads there. A
// directory has a lock that says so; here it is the lease, which a leader renews.
import type { Clock } from "../base/clock.ts";
import { isoTime, sleep } from "../base/clock.ts";
import { failure } from "../base/errors.ts";
import { parseUlid } from "../base/ids.ts";
import type { IncarnationId, RunId } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import type { StorageConfig } from "../config/resolve.ts";
import { StorageLease } from "../coordinator/lead/lease.ts";
import type { LeaseRows } from "../coordinator/lead/lease.ts";
import { presenceRecord } from "../coordinator/lead/presence.ts";
import type { Logger } from "../observe/log.ts";
import { decodeRecord } from "../storage/codec.ts";
import { COORDINATOR_LEASE_KEY, coordinatorKey, EPOCH_KEY } from "../storage/keys.ts";
import { isSameValue } from "../storage/store.ts";
import type { Batch, CommitOutcome, Store } from "../storage/store.ts";
import { openExistingLedger } from "./ledger-store.ts";

export interface UnledLook {
  readonly storage: NonNullable<StorageConfig["postgres"]>;
  readonly runId: RunId;
  /** A leader that did not renew its lease for so long leads no more. */
  readonly ttlMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

export type Unled =
  /** There are no tables of this run. */
  | { readonly kind: "absent" }
  | { readonly kind: "led"; readonly holder: string }
  /** To be closed by the caller. Commits there are refused with store_held once somebody leads, or has written the same rows. */
  | { readonly kind: "free"; readonly store: Store };

const LOOK_MS = 250;

/** Takes up to `ttlMs` where a leader has ended without resigning. Throws store_… rows. */
export async function openUnled(look: UnledLook): Promise<Unled> {
  const store = await openExistingLedger(look.storage, look.runId, look);
  if (store === undefined) return { kind: "absent" };
  try {
    const { isQuiet, rows } = await lookAtLease(store, look);
    if (isQuiet) return { kind: "free", store: new GuardedStore(store, rows) };
    const holder = await leaderText(store, rows);
    await store.close();
    return { kind: "led", holder };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** The rows of a lease; it is quiet when nobody holds it, or nobody renews it. */
async function lookAtLease(
  store: Store,
  { ttlMs, clock }: UnledLook,
): Promise<{ readonly isQuiet: boolean; readonly rows: LeaseRows }> {
  const lease = new StorageLease(store, "");
  const first = await lease.read();
  const endMs = clock.monotonicMs() + ttlMs;
  for (let rows = first; ; rows = await lease.read()) {
    if (!isSameValue(first.leaseBytes, rows.leaseBytes)) return { isQuiet: false, rows };
    const isFree = rows.lease === undefined || rows.lease.holder === null;
    if (isFree || clock.monotonicMs() >= endMs) return { isQuiet: true, rows };
    await sleep(clock, LOOK_MS);
  }
}

/** Since when it leads is in the leader's own row, unless an earlier version or a later one has written that. */
async function leaderText(store: Store, { lease }: LeaseRows): Promise<string> {
  const text = "a coordinator, which renews its lease";
  const holder = parseUlid<IncarnationId>(lease?.holder ?? "");
  if (holder === undefined) return text;
  const key = coordinatorKey(holder);
  const value = await store.get(key);
  const decoded = value && decodeRecord(presenceRecord, key, value);
  const sinceMs = decoded?.kind === "ok" ? decoded.value.electedAtWallMs : null;
  return sinceMs === null ? text : `${text} and leads since ${isoTime(sinceMs)}`;
}

class GuardedStore implements Store {
  readonly #inner: Store;
  readonly #guard: Batch["expect"];
  /** As they were read: of two commands at once, the later one does not write over what the other has written. */
  readonly #read = new Map<string, Uint8Array | null>();

  constructor(inner: Store, { leaseBytes, epochBytes }: LeaseRows) {
    this.#inner = inner;
    this.#guard = [
      { key: COORDINATOR_LEASE_KEY, value: leaseBytes },
      { key: EPOCH_KEY, value: epochBytes },
    ];
  }

  get location(): string {
    return this.#inner.location;
  }

  get supports(): Store["supports"] {
    return this.#inner.supports;
  }

  get everWritten(): boolean {
    return this.#inner.everWritten;
  }

  get generation(): string {
    return this.#inner.generation;
  }

  async get(key: string): ReturnType<Store["get"]> {
    const value = await this.#inner.get(key);
    this.#read.set(key, value ?? null);
    return value;
  }

  async getMany(keys: readonly string[]): ReturnType<Store["getMany"]> {
    const values = await this.#inner.getMany(keys);
    for (const [at, key] of keys.entries()) this.#read.set(key, values[at] ?? null);
    return values;
  }

  scan(range: Parameters<Store["scan"]>[0]): ReturnType<Store["scan"]> {
    return this.#inner.scan(range);
  }

  async commit(batch: Batch): Promise<CommitOutcome> {
    const written = [...batch.deletes, ...batch.puts.map(({ key }) => key)];
    const asRead = written.flatMap((key) => {
      const value = this.#read.get(key);
      return value === undefined ? [] : [{ key, value }];
    });
    const outcome = await this.#inner.commit({
      ...batch,
      expect: [...batch.expect, ...this.#guard, ...asRead],
    });
    for (const key of written) this.#read.delete(key);
    if (outcome.kind !== "conflict") return outcome;
    const isLed = this.#guard.some(({ key }) => key === outcome.key);
    const holder = isLed
      ? "a coordinator, which leads now"
      : `another command, which has written ${outcome.key}`;
    throw failure("store_held", { path: this.location, holder });
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}
