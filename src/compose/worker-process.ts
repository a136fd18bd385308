// A worker as a process: takes up an id and its database, joins, leaves in good order when it is told to.
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import type { RolloutError } from "../base/errors.ts";
import { parseUlid } from "../base/ids.ts";
import type { WorkerId } from "../base/ids.ts";
import type { Manifest } from "../config/manifest.ts";
import type { ClientConfig } from "../config/resolve.ts";
import { openLevelStore } from "../storage/level/level-store.ts";
import type { Store } from "../storage/store.ts";
import { bundleNaming, loadBundle } from "../transport/tls/bundle.ts";
import type { Bundle } from "../transport/tls/bundle.ts";
import { invalid, loadCredentials } from "../transport/tls/credential-files.ts";
import type { Credentials } from "../transport/tls/identity.ts";
import { Starter } from "../worker/children/starter.ts";
import { cloudHints } from "../worker/preemption/cloud.ts";
import { drainDeadlineMs, DrainRequests } from "../worker/preemption/compute-hint.ts";
import type { ComputeHint, DrainHint, Hint } from "../worker/preemption/compute-hint.ts";
import { claimWorkerState } from "../worker/life/state-directory.ts";
import type { ClaimedState } from "../worker/life/state-directory.ts";
import type { WorkerOptions } from "../worker/worker.ts";
import { Worker } from "../worker/worker.ts";
import { holderNameOf } from "./holder-names.ts";
import { metadataAddress } from "./metadata-address.ts";
import type { ProcessPorts } from "./process-ports.ts";
import { Downfall } from "./process-ports.ts";
import { openWorkerPlugins, startsProcesses, workerManifests } from "./worker-plugins.ts";

export interface WorkerProcessOptions {
  /** It is a process of a local run. */
  readonly isOfLocalRun: boolean;
  /** Undefined: take over an id that no live worker has, or make one. */
  readonly workerId: WorkerId | undefined;
  /** The environment of the processes that execute items. */
  readonly environment: Readonly<Record<string, string>>;
  /** Resolves when the worker is to leave; with "end-of-input" when nobody is left who would wait for long. */
  readonly stop: Promise<unknown>;
}

/** For a worker whose starter has died: the next start may come soon, and waits for it. */
const ALONE_TARGET_MS = 5_000;

/** Works until `stop` resolves, or it is told otherwise to leave. Throws the row of what went wrong instead. */
export async function runWorker(
  config: ClientConfig,
  options: WorkerProcessOptions,
  ports: ProcessPorts,
): Promise<void> {
  const manifests = await workerManifests(config);
  // Before any database is open: what it starts has nothing of one.
  const starter = manifests.some(startsProcesses) ? Starter.begin() : new Starter();
  try {
    await work(config, manifests, starter, options, ports);
  } finally {
    await starter.close();
  }
}

async function work(
  config: ClientConfig,
  manifests: readonly Manifest[],
  starter: Starter,
  { isOfLocalRun, workerId, environment, stop }: WorkerProcessOptions,
  ports: ProcessPorts,
): Promise<void> {
  const { clock, random, log, events } = ports;
  const downfall = new Downfall();
  const requests = new DrainRequests();
  let broken: RolloutError | undefined;
  const request = (cause: "sigterm" | "operator" | "backend", targetMs?: number): void =>
    requests.say({ kind: "request", cause, targetMs, noticedAtMs: clock.monotonicMs() });
  void stop.then((why) => request("sigterm", why === "end-of-input" ? ALONE_TARGET_MS : undefined));
  const cloud = cloudHints(config.worker.preemption, {
    address: metadataAddress(config),
    clock,
    random,
    log,
  });
  const own = await ownCertificate(config, workerId, clock);
  if (own === undefined) await refuseForeignBundle(config, clock);
  const claimed = await claimState(config, own?.workerId ?? workerId, isOfLocalRun, ports);
  const plugins = await openWorkerPlugins({
    ...{ config, manifests, environment, ports, starter, workerId: claimed.workerId },
    onBroken: (error) => {
      broken ??= error;
      request("backend");
    },
  }).catch(async (error: unknown) => {
    await claimed.store.close();
    throw error;
  });
  try {
    const worker = await Worker.start({
      runId: config.runId,
      ...claimed,
      address: config.worker.coordinatorAddr,
      credentials: own ?? { kind: "enrolment", load: () => enrolmentOf(config, clock) },
      slots: config.worker.slots,
      work: {
        plugins: plugins.source,
        limits: { maxOutputBytes: config.limits.outputBytes },
        onFence: config.worker.onFence,
        checkpointIntervalMs: config.worker.checkpointIntervalMs,
      },
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
    await plugins.close();
    await claimed.store.close();
  }
  if (broken !== undefined) throw broken;
}

function claimState(
  { worker: { stateDir } }: ClientConfig,
  workerId: WorkerId | undefined,
  isOfLocalRun: boolean,
  { clock, random, log }: ProcessPorts,
): Promise<ClaimedState> {
  const holderName = holderNameOf("worker", isOfLocalRun);
  const openStore = (path: string): Promise<Store> => openLevelStore({ path, holderName, clock, log });
  return claimWorkerState({ stateDir, workerId, clock, random, openStore });
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
      if (hint.kind === "rebalance") worker.sayAtRisk();
      else leave(hint).then(resolve, reject);
    };
    for (const source of sources) source.watch(signal, onHint).catch(reject);
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
