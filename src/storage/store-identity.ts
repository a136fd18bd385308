// The identity of a store: one record, written in the first commit, that ties a database to its run, gives the scope of its
// epochs, and says which segments are counted in it.
//
// Keeps true: nothing is written to a store of another run, of a newer rollout, or to one whose identity or whose counts
// are damaged or missing. LevelDB can lose a whole table to one flipped bit, so what is missing is not taken for new.
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { failure } from "../base/errors.ts";
import { newUlid, parseUlid } from "../base/ids.ts";
import type { RunId, StoreId } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import { decodeRecord, encodeRecord, okOrFailure } from "./codec.ts";
import type { RecordType } from "./codec.ts";
import { countKey, RECORD_KIND, STORE_IDENTITY_KEY } from "./keys.ts";
import { zeroCount } from "./segment-count.ts";
import type { Segment } from "./segment-count.ts";
import { NO_GENERATION } from "./store.ts";
import type { Store } from "./store.ts";

export interface StoreIdentity {
  /** The scope of epochs: two databases of one run have different ones. */
  readonly storeId: StoreId;
  readonly runId: RunId;
  /** The layout of keys; a rollout that knows only smaller ones does not open the store. */
  readonly formatVersion: number;
  readonly createdAtMs: number;
  /** The store's generation when it was made; empty for one that 0.1 has made. */
  readonly generation: string;
  /** Names of the segments whose counts are in the store, ever since they were first claimed with it. */
  readonly segments: readonly string[];
}

/** Grows when the layout of keys changes in a way that an older rollout would misread. */
const FORMAT_VERSION = 1;

/** @internal */
export const storeIdentityRecord: RecordType<StoreIdentity> = {
  kind: RECORD_KIND.storeIdentity,
  name: "store identity",
  version: 2,
  // Version 1 was written on stores of one process alone, which have no generations.
  migrations: {
    1: (older) => [
      ...[older.integer(0), older.text(1), older.text(2), older.number(3), older.texts(4)],
      NO_GENERATION,
    ],
  },
  encode: (identity) => [
    identity.formatVersion,
    identity.storeId,
    identity.runId,
    identity.createdAtMs,
    identity.segments,
    identity.generation,
  ],
  decode: (fields) => ({
    formatVersion: fields.integer(0),
    storeId: parseUlid<StoreId>(fields.text(1)) ?? fields.refuse(1, "is no ULID"),
    runId: parseUlid<RunId>(fields.text(2)) ?? fields.refuse(2, "is no ULID"),
    createdAtMs: fields.number(3),
    segments: fields.texts(4),
    generation: fields.text(5),
  }),
};

export interface Claim {
  readonly runId: RunId;
  readonly clock: Clock;
  readonly random: Random;
  /** Segments that the caller counts; none unless said. Counts that the store does not have yet start at 0. */
  readonly segments?: readonly Segment[];
}

/**
 * The identity of the store, which is made (synced) when the store is new. Throws store_other_run, store_newer,
 * store_corrupt (damaged, or missing from a store that was written before) or store_write_failed.
 */
export async function claimStore(store: Store, claim: Claim): Promise<StoreIdentity> {
  const found = await store.get(STORE_IDENTITY_KEY);
  if (found === undefined) refuseUnlessNew(store);
  const identity = found === undefined ? newIdentity(store, claim) : readIdentity(store, claim.runId, found);
  await refuseMissingCounts(store, identity);

  const uncounted = (claim.segments ?? []).filter(({ name }) => !identity.segments.includes(name));
  if (found !== undefined && uncounted.length === 0) return identity;
  const segments = [...identity.segments, ...uncounted.map(({ name }) => name)];
  return write(store, claim, found ?? null, { ...identity, segments }, uncounted);
}

/**
 * The identity of the store, if it has one: nothing is written. Undefined for a store that is new. Throws what `claimStore`
 * throws of a store that may not be used.
 */
export async function examineStoreIdentity(store: Store, runId: RunId): Promise<StoreIdentity | undefined> {
  const found = await store.get(STORE_IDENTITY_KEY);
  if (found === undefined) {
    refuseUnlessNew(store);
    return undefined;
  }
  const identity = readIdentity(store, runId, found);
  await refuseMissingCounts(store, identity);
  return identity;
}

/** The generation that a store was made on, as far as it says so: its lease may be missing, because nobody had claimed it yet. */
export async function readFirstGeneration(store: Store): Promise<string | undefined> {
  const found = await store.get(STORE_IDENTITY_KEY);
  if (found === undefined) return undefined;
  return okOrFailure(store.location, decodeRecord(storeIdentityRecord, STORE_IDENTITY_KEY, found)).generation;
}

/** `before`: the bytes that stand there, null when there are none. */
async function write(
  store: Store,
  claim: Claim,
  before: Uint8Array | null,
  identity: StoreIdentity,
  uncounted: readonly Segment[],
): Promise<StoreIdentity> {
  const value = encodeRecord(storeIdentityRecord, STORE_IDENTITY_KEY, identity);
  const outcome = await store.commit({
    puts: [{ key: STORE_IDENTITY_KEY, value }, ...uncounted.map(zeroCount)],
    deletes: [],
    expect: [{ key: STORE_IDENTITY_KEY, value: before }],
    durability: "sync",
  });
  if (outcome.kind === "committed") return identity;
  // Somebody else was first, or the answer was lost: what stands there now decides. A store that cannot be read throws.
  const settled = await store.get(STORE_IDENTITY_KEY);
  if (settled !== undefined && Buffer.compare(settled, before ?? NOTHING) !== 0)
    return claimStore(store, claim);
  assert(outcome.kind === "unknown", "a conflict on the identity means that another one is there");
  throw outcome.cause;
}

const NOTHING = new Uint8Array(0);

function newIdentity({ generation }: Store, claim: Claim): StoreIdentity {
  return {
    generation,
    storeId: newUlid<StoreId>(claim.clock, claim.random),
    runId: claim.runId,
    formatVersion: FORMAT_VERSION,
    createdAtMs: claim.clock.wallMs(),
    segments: [],
  };
}

function readIdentity(store: Store, runId: RunId, bytes: Uint8Array): StoreIdentity {
  const path = store.location;
  const identity = okOrFailure(path, decodeRecord(storeIdentityRecord, STORE_IDENTITY_KEY, bytes));
  if (identity.formatVersion > FORMAT_VERSION) {
    const [found, known] = [identity.formatVersion, FORMAT_VERSION];
    throw failure("store_newer", { path, key: STORE_IDENTITY_KEY, found, known });
  }
  if (identity.runId !== runId) {
    throw failure("store_other_run", { path, found: identity.runId, expected: runId });
  }
  return identity;
}

function refuseUnlessNew(store: Store): void {
  if (!store.everWritten) return;
  const reason = "it is missing, and the store was written before";
  throw failure("store_corrupt", { path: store.location, key: STORE_IDENTITY_KEY, reason });
}

async function refuseMissingCounts(store: Store, identity: StoreIdentity): Promise<void> {
  for (const name of identity.segments) {
    const key = countKey(name);
    if ((await store.get(key)) !== undefined) continue;
    throw failure("store_corrupt", { path: store.location, key, reason: "it is missing" });
  }
}
