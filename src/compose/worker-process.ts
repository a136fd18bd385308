// A worker as a process: takes up an id and its database, joins, leaves in good order when it is told to.
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { failure } from "../base/errors.ts";
import type { RolloutError } from "../base/errors.ts";
import { parseUlid } from "../base/ids.ts";
import type { WorkerId } from "../base/ids.ts";
import type { ClientConfig } from "../config/resolve.ts";
import { openLevelStore } from "../storage/level/level-store.ts";
import { bundleNaming, loadBundle } from "../transport/tls/bundle.ts";
import type { Bundle } from "../transport/tls/bundle.ts";
import { invalid, loadCredentials } from "../transport/tls/credential-files.ts";
import type { Credentials } from "../transport/tls/identity.ts";
import { cloudHints } from "../worker/preemption/cloud.ts";
import { drainDeadlineMs } from "../worker/preemption/compute-hint.ts";
import type { ComputeHint, DrainHint, Hint } from "../worker/preemption/compute-hint.ts";
import { DrainRequests } from "../worker/preemption/drain-requests.ts";
import { parseMetadataUrl } from "../worker/preemption/metadata-http.ts";
import type { MetadataAddress } from "../worker/preemption/metadata-http.ts";
import { claimWorkerState } from "../worker/state-directory.ts";
import type { WorkerOptions } from "../worker/worker.ts";
import { Worker } from "../worker/worker.ts";
import { mockBackend } from "./mock-work.ts";
import type { ProcessPorts } from "./process-ports.ts";
import { Downfall } from "./process-ports.ts";

/** Works until `stop` resolves, or it is told otherwise to leave. Throws the row of what went wrong instead. */
export async function runWorker(
  config: ClientConfig,
  workerId: WorkerId | undefined,
  ports: ProcessPorts,
  stop: Promise<unknown>,
): Promise<void> {
  const { clock, random, log, events } = ports;
  const downfall = new Downfall();
  const requests = new DrainRequests();
  const request = (cause: "sigterm" | "operator"): void =>
    requests.say({ kind: "request", cause, targetMs: undefined, noticedAtMs: clock.monotonicMs() });
  void stop.then(() => request("sigterm"));
  const cloud = cloudHints(config.worker.preemption, {
    address: metadataAddress(config),
    clock,
    random,
    log,
  });
  const own = await ownCertificate(config, workerId, clock);
  if (own === undefined) await refuseForeignBundle(config, clock);
  const claimed = await claimWorkerState({
    stateDir: config.worker.stateDir,
    workerId: own?.workerId ?? workerId,
    clock,
    random,
    openStore: (path) => openLevelStore({ path, holderName: "rollout worker run", clock, log }),
  });
  try {
    const worker = await Worker.start({
      runId: config.runId,
      ...claimed,
      address: config.worker.coordinatorAddr,
      credentials: own ?? { kind: "enrolment", load: () => enrolmentOf(config, clock) },
      slots: config.worker.slots,
      work: { backend: mockBackend(config.mock, claimed.workerId, ports) },
      heartbeatIntervalMs: config.liveness.heartbeatIntervalMs,
      selfFenceTimeoutMs: config.liveness.workerSelfFenceTimeoutMs,
      failureTimeoutMs: config.liveness.coordinatorFailureTimeoutMs,
      clock,
      random,
      events,
      log,
      onFatal: downfall.because,
      onDrainAsked: () => request("operator"),
      onEnded: (error: RolloutError) => downfall.because(error),
    });
    const watching = new AbortController();
    try {
      await Promise.race([leaveWhenHinted(worker, [requests, cloud], watching.signal), downfall.promise]);
    } finally {
      watching.abort();
      await worker.stop();
    }
  } finally {
    await claimed.store.close();
  }
}

/** Resolves when a hint has made the worker leave; a later hint makes it hurry. */
function leaveWhenHinted(
  worker: Worker,
  sources: readonly ComputeHint[],
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (hint: DrainHint): Promise<void> =>
      worker.drain({ cause: hint.cause, deadlineMs: drainDeadlineMs(hint) });
    const onHint = (hint: Hint): void => {
      // There is no preference among workers yet that a rebalance could lower.
      if (hint.kind !== "rebalance") leave(hint).then(resolve, reject);
    };
    for (const source of sources) source.watch(signal, onHint).catch(reject);
  });
}

/** Throws config_invalid_value for a host that is not of this machine or its link. */
function metadataAddress({ source, worker: { metadataAddr } }: ClientConfig): MetadataAddress {
  const address = parseMetadataUrl(`http://${metadataAddr}`);
  if (address !== undefined) return address;
  const allowed =
    "an address of this machine (127.…) or of its link (169.254.…), or metadata.google.internal";
  throw failure("config_invalid_value", {
    source,
    key: "worker.metadata_addr",
    value: metadataAddr,
    allowed,
  });
}

type OwnCertificate = WorkerOptions["credentials"] & { readonly kind: "own" };

/** The certificate of a CA of the user's own, and so the worker that this is; undefined when the coordinator makes them. */
async function ownCertificate(
  config: ClientConfig,
  workerId: WorkerId | undefined,
  clock: Clock,
): Promise<(OwnCertificate & { readonly workerId: WorkerId }) | undefined> {
  const { runId } = config;
  const { certificates } = config.transport;
  if (certificates === undefined) return undefined;
  const { credentials, facts } = await loadCredentials(certificates, { runId, roles: ["worker"] }, clock);
  const named = parseUlid<WorkerId>(facts.identity.id);
  assert(named !== undefined, "the id in a certificate that was read is a ULID");
  if (workerId === undefined || workerId === named) return { kind: "own", credentials, workerId: named };
  const advice = `start the worker with --worker-id ${named}, or without the flag`;
  const naming = { file: certificates.certFile, what: "the certificate", advice };
  throw invalid(naming, `it is for worker ${named}, and this is worker ${workerId}`);
}

async function enrolmentOf(config: ClientConfig, clock: Clock): Promise<Credentials> {
  const bundle = await loadBundle(config.worker.enrolment, ["enrolment"], clock);
  refuseForeign(bundle, config);
  return bundle.credentials;
}

/** Before anything is made in the state directory, which a mistyped run would claim for good. */
async function refuseForeignBundle(config: ClientConfig, clock: Clock): Promise<void> {
  // One that cannot be read is complained of when it is needed: a worker with a certificate of its own needs none.
  const bundle = await loadBundle(config.worker.enrolment, ["enrolment"], clock).catch(() => undefined);
  if (bundle !== undefined) refuseForeign(bundle, config);
}

function refuseForeign({ facts }: Bundle, { runId, worker }: ClientConfig): void {
  const { runId: found } = facts.identity;
  if (found === runId) return;
  throw invalid(bundleNaming(worker.enrolment), `it belongs to run ${found}, and this run is ${runId}`);
}
