// Identities in the store: a row for each worker that a bundle has let in, so that its quota outlives a restart, and one record
// with the bearers whose certificates were revoked.
import { parseUlid } from "../../base/ids.ts";
import type { WorkerId } from "../../base/ids.ts";
import { LIMITS } from "../../config/limits.ts";
import { encodeRecord } from "../../storage/codec.ts";
import type { RecordType } from "../../storage/codec.ts";
import { ENROLLED_PREFIX, RECORD_KIND, REVOCATIONS_KEY } from "../../storage/keys.ts";
import { readRecord, recordsUnder } from "../../storage/records.ts";
import type { Entry, Store } from "../../storage/store.ts";
import type { BundleTimes } from "../turn/input.ts";

interface Enrolled extends BundleTimes {
  readonly enrolledAtWallMs: number;
}

export const enrolledRecord: RecordType<Enrolled> = {
  kind: RECORD_KIND.enrolled,
  name: "enrolled worker",
  version: 1,
  migrations: {},
  encode: ({ enrolledAtWallMs, endsAtWallMs, warnFromWallMs }) => [
    enrolledAtWallMs,
    endsAtWallMs,
    warnFromWallMs,
  ],
  decode: (fields) => ({
    enrolledAtWallMs: fields.number(0),
    endsAtWallMs: fields.number(1),
    warnFromWallMs: fields.number(2),
  }),
};

/** Id of the bearer → when it was revoked, wall time. */
export type Revoked = ReadonlyMap<string, number>;

export const revocationsRecord: RecordType<Revoked> = {
  kind: RECORD_KIND.revocations,
  name: "revocations",
  version: 1,
  migrations: {},
  encode: (revoked) => [[...revoked].map(([id, atWallMs]) => [id, atWallMs])],
  decode: (fields) =>
    new Map(
      fields
        .tuples(0)
        .map((pair) => [parseUlid(pair.text(0)) ?? pair.refuse(0, "is no ULID"), pair.number(1)] as const),
    ),
};

export function enrolledEntry(bundleId: string, workerId: WorkerId, enrolled: Enrolled): Entry {
  const key = `${ENROLLED_PREFIX}${bundleId}/${workerId}`;
  return { key, value: encodeRecord(enrolledRecord, key, enrolled) };
}

export function revocationsEntry(revoked: Revoked): Entry {
  return { key: REVOCATIONS_KEY, value: encodeRecord(revocationsRecord, REVOCATIONS_KEY, revoked) };
}

/** Throws store_corrupt or store_newer. */
export async function readRevoked(store: Store): Promise<Map<string, number>> {
  return new Map(await readRecord(store, REVOCATIONS_KEY, revocationsRecord));
}

const PAGE = 1_000;

/** Every worker that a bundle has let in: of one bundle, or of all. Throws store_corrupt or store_newer. */
export async function* readEnrolled(
  store: Store,
  bundleId?: string,
): AsyncGenerator<BundleTimes & { readonly bundleId: string; readonly workerId: WorkerId }, void, undefined> {
  const prefix = bundleId === undefined ? ENROLLED_PREFIX : `${ENROLLED_PREFIX}${bundleId}/`;
  for await (const { key, record: times } of recordsUnder(store, prefix, enrolledRecord, PAGE)) {
    const [bundle = "", worker = ""] = key.slice(ENROLLED_PREFIX.length).split("/");
    const workerId = parseUlid<WorkerId>(worker);
    // The checksum covers the key, so a record that was read stands under one that was written.
    if (workerId !== undefined) yield { bundleId: bundle, workerId, ...times };
  }
}

/** Adds these bearers, those that are there already left as they are. False when the list would be too long. */
export function addRevoked(revoked: Map<string, number>, ids: Iterable<string>, nowWallMs: number): boolean {
  const fresh = [...new Set(ids)].filter((id) => !revoked.has(id));
  if (revoked.size + fresh.length > LIMITS.revocations) return false;
  for (const id of fresh) revoked.set(id, nowWallMs);
  return true;
}
