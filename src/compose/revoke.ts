// A revocation, wherever the truth of it is within reach: it stands in the run's database, so the coordinator that leads is asked;
// when nothing listens, and this machine has the database, it is written there, for the next start to read.
import { stat } from "node:fs/promises";
import { systemClock } from "../base/clock.ts";
import { failure, RolloutError } from "../base/errors.ts";
import { parseUlid } from "../base/ids.ts";
import type { WorkerId } from "../base/ids.ts";
import type { Revocation, RevocationRequest } from "../client/run-control.ts";
import { revokeBearer } from "../client/run-control.ts";
import { LIMITS } from "../config/limits.ts";
import type { ClientConfig, ResolvedConfig } from "../config/resolve.ts";
import {
  addRevoked,
  readEnrolled,
  readRevoked,
  revocationsEntry,
} from "../coordinator/workers/enrolment-record.ts";
import type { Logger } from "../observe/log.ts";
import { EPOCH_KEY, workerKey } from "../storage/keys.ts";
import { openLevelStore } from "../storage/level/level-store.ts";
import { examineStoreIdentity } from "../storage/store-identity.ts";
import type { Store } from "../storage/store.ts";
import { readCertificatePem } from "../transport/tls/certificate-reading.ts";
import { readThere } from "../transport/tls/credential-files.ts";
import { openOperatorClient } from "./operator-client.ts";

export interface Revoked extends Revocation {
  /** Whether a coordinator has done it; else its next start will. */
  readonly isInForce: boolean;
}

/** `local` is the coordinator's configuration, if this machine has it. Throws the rows of certificates, transport and storage. */
export async function revoke(
  config: ClientConfig,
  local: () => Promise<ResolvedConfig>,
  request: RevocationRequest,
  log: Logger,
): Promise<Revoked> {
  const client = await openOperatorClient(config, log);
  try {
    return { ...(await revokeBearer(client.transport, request)), isInForce: true };
  } catch (error) {
    const isAway = error instanceof RolloutError && error.code === "coordinator_refused_connection";
    const here = isAway ? await local().catch(() => undefined) : undefined;
    if (here === undefined || !(await isThere(here.storage.path))) throw error;
    return { ...(await revokeInStore(here, request, log)), isInForce: false };
  } finally {
    client.close();
  }
}

/** The id of the bearer that a person means: the id itself, or a file with its certificate. Undefined when it is neither. */
export async function bearerNamed(word: string): Promise<WorkerId | undefined> {
  const id = parseUlid<WorkerId>(word.toUpperCase());
  if (id !== undefined || !(await isThere(word))) return id;
  const text = await readThere({ file: word, what: "the certificate", advice: "name the bearer by its id" });
  const reading = readCertificatePem(text);
  return reading.kind === "identified" ? parseUlid<WorkerId>(reading.facts.identity.id) : undefined;
}

/** The holder of the database leads alone, and this process holds it. */
async function revokeInStore(
  { runId, storage: { path } }: ResolvedConfig,
  { id, withWorkers }: RevocationRequest,
  log: Logger,
): Promise<Revocation> {
  const store = await openLevelStore({ path, holderName: "rollout ca revoke", clock: systemClock, log });
  try {
    await examineStoreIdentity(store, runId);
    const workers: string[] = [];
    for await (const { workerId } of readEnrolled(store, id)) workers.push(workerId);
    const revoked = await readRevoked(store);
    const alongside = withWorkers ? workers : [];
    if (!addRevoked(revoked, [id, ...alongside], systemClock.wallMs()))
      throw failure("overloaded", { what: "the list of revoked certificates", limit: LIMITS.revocations });
    await write(store, revocationsEntry(revoked));
    const isWorker = (await store.get(workerKey(id))) !== undefined;
    return { isWorker, enrolled: workers.length, workersRevoked: alongside.length };
  } finally {
    await store.close();
  }
}

/** C1: the epoch is the one that was read. */
async function write(store: Store, entry: { key: string; value: Uint8Array }): Promise<void> {
  const epochRow = { key: EPOCH_KEY, value: (await store.get(EPOCH_KEY)) ?? null };
  const outcome = await store.commit({ puts: [entry], deletes: [], expect: [epochRow], durability: "sync" });
  if (outcome.kind === "unknown") throw outcome.cause;
  if (outcome.kind === "conflict")
    throw failure("internal", {
      detail: `somebody wrote ${outcome.key} into a database that this process holds`,
    });
}

function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
