// The records of a worker's own store, beside its charts and its results: which start of it this is, the highest epoch it has seen
// of each store, its certificate with the request that it asks by, and whether it was revoked.
import { epoch, newUlid, parseUlid, ulidFromBytes, ulidTimeMs, ulidToBytes } from "../../base/ids.ts";
import type { IncarnationId, StoreId } from "../../base/ids.ts";
import type { Clock } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import { decodeRecord, encodeRecord, okOrFailure } from "../../storage/codec.ts";
import type { RecordType } from "../../storage/codec.ts";
import {
  RECORD_KIND,
  WORKER_CREDENTIALS_KEY,
  WORKER_EPOCHS_KEY,
  WORKER_INCARNATION_KEY,
  WORKER_REQUEST_KEY,
  WORKER_REVOKED_KEY,
} from "../../storage/keys.ts";
import type { Store } from "../../storage/store.ts";
import type { CertificateRequest } from "../../transport/tls/certificate-request.ts";
import type { Credentials } from "../../transport/tls/identity.ts";
import type { SeenEpoch } from "../link/epoch-guard.ts";

const incarnationRecord: RecordType<IncarnationId> = {
  kind: RECORD_KIND.workerIncarnation,
  name: "incarnation",
  encode: (incarnation) => [incarnation],
  decode: (fields) => parseUlid<IncarnationId>(fields.text(0)) ?? fields.refuse(0, "is no ULID"),
};

const epochsRecord: RecordType<readonly SeenEpoch[]> = {
  kind: RECORD_KIND.workerEpochs,
  name: "seen epochs",
  encode: (seen) => [seen.map(({ storeId, epoch: value }) => [storeId, value])],
  decode: (fields) =>
    fields.tuples(0).map((pair) => ({
      storeId: parseUlid<StoreId>(pair.text(0)) ?? pair.refuse(0, "is no ULID"),
      epoch: epoch(pair.integer(1)),
    })),
};

export interface OwnCredentials {
  readonly credentials: Credentials;
  /** Wall time at which a new certificate is asked for. */
  readonly renewAtWallMs: number;
}

const credentialsRecord: RecordType<OwnCredentials> = {
  kind: RECORD_KIND.workerCredentials,
  name: "worker credentials",
  encode: ({ credentials, renewAtWallMs }) => [
    credentials.certificatePem,
    credentials.keyPem,
    credentials.caPem,
    renewAtWallMs,
  ],
  decode: (fields) => ({
    credentials: { certificatePem: fields.text(0), keyPem: fields.text(1), caPem: fields.text(2) },
    renewAtWallMs: fields.number(3),
  }),
};

/** A bundle may be good for one request alone: the same is made of it as often as it takes. */
const requestRecord: RecordType<CertificateRequest> = {
  kind: RECORD_KIND.workerRequest,
  name: "certificate request",
  encode: ({ csr, keyPem }) => [csr, keyPem],
  decode: (fields) => ({ csr: fields.bytes(0), keyPem: fields.text(1) }),
};

/** When it was said, wall time. */
const revokedRecord: RecordType<number> = {
  kind: RECORD_KIND.workerRevoked,
  name: "revocation of the worker",
  encode: (atWallMs) => [atWallMs],
  decode: (fields) => fields.number(0),
};

/** Coordinators take no process that begins by more ahead of their clocks. */
const AHEAD_MAX_MS = 86_400_000;

/**
 * A new incarnation, on disk, greater than every one before it: also when the wall clock was set back since the last
 * start, for else the coordinator would take this process for the older one. Only one so far ahead that no coordinator can have
 * taken it is left behind: the clock was wrong, and is right now.
 */
export async function nextIncarnation(store: Store, clock: Clock, random: Random): Promise<IncarnationId> {
  const last = await read(store, incarnationRecord, WORKER_INCARNATION_KEY);
  const fresh = newUlid<IncarnationId>(clock, random);
  const isBehind = last !== undefined && ulidTimeMs(last) <= clock.wallMs() + AHEAD_MAX_MS;
  const next = !isBehind || fresh > last ? fresh : successor(last);
  await write(store, incarnationRecord, WORKER_INCARNATION_KEY, next);
  return next;
}

export async function readSeenEpochs(store: Store): Promise<readonly SeenEpoch[]> {
  return (await read(store, epochsRecord, WORKER_EPOCHS_KEY)) ?? [];
}

export async function writeSeenEpochs(store: Store, seen: readonly SeenEpoch[]): Promise<void> {
  await write(store, epochsRecord, WORKER_EPOCHS_KEY, seen);
}

/** The request of this worker, made by `make` when there is none: on disk before anybody sees it. */
export async function keptRequest(
  store: Store,
  make: () => Promise<CertificateRequest>,
): Promise<CertificateRequest> {
  const kept = await read(store, requestRecord, WORKER_REQUEST_KEY);
  if (kept !== undefined) return kept;
  const made = await make();
  await write(store, requestRecord, WORKER_REQUEST_KEY, made);
  return made;
}

export async function readOwnCredentials(store: Store): Promise<OwnCredentials | undefined> {
  return read(store, credentialsRecord, WORKER_CREDENTIALS_KEY);
}

export async function writeOwnCredentials(store: Store, own: OwnCredentials): Promise<void> {
  await write(store, credentialsRecord, WORKER_CREDENTIALS_KEY, own);
}

/** Whether a coordinator has said that this worker is good for nothing any more: for ever. */
export async function wasRevoked(store: Store): Promise<boolean> {
  return (await read(store, revokedRecord, WORKER_REVOKED_KEY)) !== undefined;
}

export async function writeRevoked(store: Store, clock: Clock): Promise<void> {
  await write(store, revokedRecord, WORKER_REVOKED_KEY, clock.wallMs());
}

async function read<T>(store: Store, type: RecordType<T>, key: string): Promise<T | undefined> {
  const bytes = await store.get(key);
  return bytes === undefined ? undefined : okOrFailure(store.location, decodeRecord(type, key, bytes));
}

/** The process is the only writer of its own store, so a commit either stands or the store is broken. */
async function write<T>(store: Store, type: RecordType<T>, key: string, value: T): Promise<void> {
  const puts = [{ key, value: encodeRecord(type, key, value) }];
  const outcome = await store.commit({ puts, deletes: [], expect: [], durability: "sync" });
  if (outcome.kind === "unknown") throw outcome.cause;
}

/** The next id after this one: one more, as a number. */
function successor(id: IncarnationId): IncarnationId {
  const bytes = ulidToBytes(id);
  for (let at = bytes.length - 1; at >= 0; at--) {
    const value = ((bytes[at] ?? 0) + 1) % 256;
    bytes[at] = value;
    if (value !== 0) break;
  }
  return ulidFromBytes<IncarnationId>(bytes);
}
