// A revocation, wherever the truth of it is within reach: it stands in the run's database, so the coordinator that leads is asked;
// when nothing listens, and nobody leads with the database that is configured, it is written there, for the next start to read.
import { stat } from "node:fs/promises";
import { systemClock } from "../base/clock.ts";
import { failure, RolloutError } from "../base/errors.ts";
import { createClient } from "@connectrpc/connect";
import { parseUlid } from "../base/ids.ts";
import type { RunId, WorkerId } from "../base/ids.ts";
import { systemRandom } from "../base/random.ts";
import { plainOf } from "../client/operator-message.ts";
import type { Revocation, RevocationRequest } from "../client/run-control.ts";
import { LIMITS } from "../config/limits.ts";
import type { ClientConfig, ResolvedConfig } from "../config/resolve.ts";
import { addRevoked, readEnrolled, readRevoked, revocationsEntry } from "../coordinator/workers/enrolment.ts";
import { OperatorService, RevokeResponseSchema } from "../gen/rollout/v1/run_pb.ts";
import type { Logger } from "../observe/log.ts";
import { EPOCH_KEY, workerKey } from "../storage/keys.ts";
import { openLevelStore } from "../storage/level/level-store.ts";
import { examineStoreIdentity } from "../storage/store-identity.ts";
import type { Store } from "../storage/store.ts";
import { readCertificatePem } from "../transport/tls/certificate-reading.ts";
import { readThere } from "../transport/tls/credential-files.ts";
import { openOperatorClient } from "./operator-client.ts";
import { openUnled } from "./unled-store.ts";

export interface Revoked extends Revocation {
  /** Whether a coordinator has done it; else its next start will. */
  readonly isInForce: boolean;
}

/** Errors after which the database itself is asked whether a coordinator leads. */
const NOBODY_LEADS: ReadonlySet<string> = new Set(["coordinator_refused_connection", "no_leader_found"]);

/** `local` is the coordinator's configuration, if this machine has it. Throws the rows of certificates, transport and storage. */
export async function revoke(
  config: ClientConfig,
  local: () => Promise<ResolvedConfig>,
  request: RevocationRequest,
  log: Logger,
): Promise<Revoked> {
  const client = await openOperatorClient(config, log);
  try {
    const { id: bearerId, withWorkers } = request;
    const answer = await createClient(OperatorService, client.transport).revoke({ bearerId, withWorkers });
    return { ...plainOf(RevokeResponseSchema, answer), isInForce: true };
  } catch (error) {
    const isAway = error instanceof RolloutError && NOBODY_LEADS.has(error.code);
    const here = isAway ? await local().catch(() => undefined) : undefined;
    const store = here && (await openUnused(here, log));
    if (here === undefined || store === undefined) throw error;
    return { ...(await revokeInStore(store, here.runId, request)), isInForce: false };
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

/** Undefined where there is no database, or a coordinator leads with it from elsewhere. Throws store_… rows. */
async function openUnused(
  { storage, runId, coordinator }: ResolvedConfig,
  log: Logger,
): Promise<Store | undefined> {
  const clock = systemClock;
  if (storage.postgres !== undefined) {
    const ttlMs = coordinator.failoverThresholdMs;
    const place = { storage: storage.postgres, runId, ttlMs };
    const found = await openUnled({ ...place, clock, random: systemRandom, log });
    return found.kind === "free" ? found.store : undefined;
  }
  const { path } = storage;
  if (!(await isThere(path))) return undefined;
  return openLevelStore({ path, holderName: "rollout ca revoke", clock, log });
}

/** Nobody leads meanwhile. */
async function revokeInStore(
  store: Store,
  runId: RunId,
  { id, withWorkers }: RevocationRequest,
): Promise<Revocation> {
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
