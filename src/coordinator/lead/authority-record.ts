// The CA of the run, as all coordinators over one store know it: its fingerprint, written once. A coordinator with another CA would let
// nobody in who joined under the others, so it does not get as far as listening.
import { assert } from "../../base/assert.ts";
import type { RecordType } from "../../storage/codec.ts";
import { encodeRecord } from "../../storage/codec.ts";
import { AUTHORITY_KEY, RECORD_KIND } from "../../storage/keys.ts";
import { readRecord } from "../../storage/records.ts";
import type { Claim } from "../../storage/store-identity.ts";
import { claimStore } from "../../storage/store-identity.ts";
import type { Store } from "../../storage/store.ts";

export interface AuthorityRecord {
  /** SHA-256 of the CA's certificate. */
  readonly fingerprint: string;
}

export const authorityRecord: RecordType<AuthorityRecord> = {
  kind: RECORD_KIND.authority,
  name: "authority",
  encode: ({ fingerprint }) => [fingerprint],
  decode: (fields) => ({ fingerprint: fields.text(0) }),
};

/** Undefined where none is written yet. Throws store_corrupt. */
export async function readAuthority(store: Store): Promise<string | undefined> {
  return (await readRecord(store, AUTHORITY_KEY, authorityRecord))?.fingerprint;
}

/**
 * Writes the fingerprint, synced, if none is there, and resolves with the one that is there then. It is no write of a leader: as with
 * the store's identity, the first one stands (C1). Throws what `claimStore` throws.
 */
export async function claimAuthority(store: Store, claim: Claim, fingerprint: string): Promise<string> {
  await claimStore(store, claim);
  const value = encodeRecord(authorityRecord, AUTHORITY_KEY, { fingerprint });
  const outcome = await store.commit({
    puts: [{ key: AUTHORITY_KEY, value }],
    deletes: [],
    expect: [{ key: AUTHORITY_KEY, value: null }],
    durability: "sync",
  });
  // Somebody else was first, or the answer was lost: the row that stands there decides.
  const kept = await readAuthority(store);
  if (kept !== undefined) return kept;
  assert(outcome.kind === "unknown", "a conflict on the authority means that one is there");
  throw outcome.cause;
}
