// A worker as a process: takes up an id and its database, joins, leaves in good order when it is told to.
import type { DrainCause } from "../../machines/spot-drain.ts";
import type { StayLimits } from "../../machines/worker-stay.ts";
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { failure, RolloutError } from "../base/errors.ts";
import { parseUlid } from "../base/ids.ts";
import type { WorkerId } from "../base/ids.ts";
import { bootId } from "../base/process-table.ts";
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
import { drainDeadlineMs, DrainRequests, machineEndsMs } from "../worker/preemption/compute-hint.ts";
import type { Cloud, ComputeHint, Hint } from "../worker/preemption/compute-hint.ts";
import { parseMetadataUrl } from "../worker/preemption/metadata-http.ts";
import type { MetadataAddress } from "../worker/preemption/metadata-http.ts";
import { allocationsIn, claimWorkerState, removeAllocation } from "../worker/life/state-directory.ts";
import type { ClaimedState, ClaimOptions } from "../worker/life/state-directory.ts";
import type { WorkerOptions } from "../worker/worker.ts";
import { Worker } from "../worker/worker.ts";
import { hasUndelivered } from "../worker/work/outbox.ts";
import { openCheckpointStore } from "./checkpoint-store.ts";
import { deliverLeftResults } from "./left-results.ts";
import { Monitor } from "./monitor.ts";
import { holderNameOf } from "./store-holders.ts";
import type { ProcessPorts } from "./process-ports.ts";
import { Downfall } from "./process-ports.ts";
import type { ToldWorker } from "./told-worker.ts";
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

/** The target of a drain when the starter of the worker has died: another start may come soon, and waits for this one. */
const ALONE_TARGET_MS = 5_000;

/** Works until `stop` resolves, or it is told otherwise to leave. Throws the row of what went wrong instead. */
export async function runWorker(
  config: ClientConfig,
  options: WorkerProcessOptions,
  ports: ProcessPorts,
): Promise<void> {
  const manifests = await workerManifests(config);
  // Begun before any database is open, so that no process that it starts has a file of one open.
  const starter = manifests.some(startsProcesses) ? Starter.begin() : new Starter();
  const { monitorAddr: listenAddr } = config.worker;
  try {
    const { log, clock } = ports;
    const about = { listenAddr, setting: "worker.monitor_addr", log, clock, hasNumbers: false };
    const monitor = await Monitor.open(about, "its plugins are being loaded");
    try {
      await work(config, { manifests, starter, monitor }, options, ports);
    } finally {
      await monitor.close();
    }
  } finally {
    await starter.close();
  }
}

interface WorkingParts {
  readonly manifests: readonly Manifest[];
  readonly starter: Starter;
  readonly monitor: Monitor;
}

async function work(
  config: ClientConfig,
  { manifests, starter, monitor }: WorkingParts,
  { isOfLocalRun, workerId, environment, stop }: WorkerProcessOptions,
  ports: ProcessPorts,
): Promise<void> {
  const { clock, random, log, events } = ports;
  const downfall = new Downfall();
  const requests = new DrainRequests();
  let broken: RolloutError | undefined;
  const request = (cause: Exclude<DrainCause, Cloud>, targetMs?: number): void =>
    requests.say({ kind: "request", cause, targetMs, noticedAtMs: clock.monotonicMs() });
  void stop.then((why) => request("sigterm", why === "end-of-input" ? ALONE_TARGET_MS : undefined));
  const asking = { address: metadataAddress(config), clock, random, log };
  const cloud = cloudHints(config.worker.preemption, asking);
  const { credentials, isAllocation, ...claimed } = await claim(config, { isOfLocalRun, workerId }, ports);
  const told = await openTold(config, ports, claimed.workerId);
  const plugins = await openWorkerPlugins({
    ...{ config, manifests, environment, ports, starter, workerId: claimed.workerId },
    onBroken: (error) => {
      broken ??= error;
      request("backend");
    },
  }).catch(async (error: unknown) => {
    told?.close();
    await claimed.store.close();
    throw error;
  });
  let isDone = false;
  try {
    const worker = await Worker.start({
      runId: config.runId,
      ...claimed,
      boot: bootId(),
      ...{ address: config.worker.coordinatorAddr, slots: config.worker.slots },
      credentials,
      work: {
        plugins: plugins.source,
        limits: { maxOutputBytes: config.limits.outputBytes, maxStateBytes: config.limits.stateBytes },
        backlogTimeMs: config.worker.backlogTimeMs,
        onFence: config.worker.onFence,
        checkpointIntervalMs: config.worker.checkpointIntervalMs,
        checkpointStore: await openCheckpointStore(config, environment, claimed.workerId, clock),
      },
      ...timesOf(config),
      ...{ clock, random, events, log },
      onFatal: downfall.because,
      onStep: told?.onStep,
      onDrainAsked: () => request("operator"),
      stay: stayOf(config),
      onLeaving: (cause) => request(cause),
      onEnded: (error: RolloutError) => downfall.because(error),
    });
    reportOn(monitor, { worker, starter, worker_id: claimed.workerId });
    try {
      await untilLeft(worker, [requests, cloud], downfall);
    } finally {
      await worker.stop();
    }
    isDone = isAllocation && !(await hasUndelivered(claimed.store));
  } catch (error) {
    throw ownDamage(error, claimed.store.location);
  } finally {
    told?.close();
    await plugins.close();
    await claimed.store.close();
  }
  if (isDone) await removeAllocation(config.worker.stateDir, claimed.workerId);
  if (broken !== undefined) throw broken;
}

/** The deadlines by which a worker is alive. */
function timesOf({
  liveness,
}: ClientConfig): Pick<WorkerOptions, "heartbeatIntervalMs" | "selfFenceTimeoutMs" | "failureTimeoutMs"> {
  const { heartbeatIntervalMs, workerSelfFenceTimeoutMs, coordinatorFailureTimeoutMs } = liveness;
  return {
    ...{ heartbeatIntervalMs, selfFenceTimeoutMs: workerSelfFenceTimeoutMs },
    failureTimeoutMs: coordinatorFailureTimeoutMs,
  };
}

interface Claim extends ClaimedState {
  readonly credentials: WorkerOptions["credentials"];
  /** It is the worker of an allocation of a fleet. */
  readonly isAllocation: boolean;
}

/** The worker that this process is, with its database. One of a fleet has delivered what others have left here. */
async function claim(
  config: ClientConfig,
  { isOfLocalRun, workerId }: Pick<WorkerProcessOptions, "isOfLocalRun" | "workerId">,
  ports: ProcessPorts,
): Promise<Claim> {
  const { clock } = ports;
  const own = await ownCertificate(config, workerId, clock);
  const bearer = own === undefined ? await bearerOfBundle(config, clock) : undefined;
  // The bundle of an allocation has the id of its worker. It may have expired when a process takes another's place.
  const isAllocation =
    workerId !== undefined &&
    (bearer === workerId || (await allocationsIn(config.worker.stateDir)).includes(workerId));
  const openStore = storeOpener(isOfLocalRun, ports);
  const wanted = { workerId: own?.workerId ?? workerId, isAllocation, openStore };
  const claimed = await claimState(config, wanted, ports);
  const enrolment = (): Promise<Credentials> => enrolmentOf(config, clock);
  if (isAllocation) await deliverLeftResults(config, { ...claimed, openStore, enrolment }, ports);
  return { ...claimed, isAllocation, credentials: own ?? { kind: "enrolment", load: enrolment } };
}

/** Undefined where it stays until it is told to leave. */
function stayOf({ worker }: ClientConfig): StayLimits | undefined {
  const { orphanTimeoutMs: orphanMs = null, leaveAfterMs: lifetimeMs = null } = worker;
  const { idleTimeoutMs: idleMs = null } = worker;
  const isLimited = [orphanMs, lifetimeMs, idleMs].some((limitMs) => limitMs !== null);
  return isLimited ? { orphanMs, lifetimeMs, idleMs } : undefined;
}

/** The inspector that is told of its charts; undefined where none is configured, and its code is not loaded then. */
async function openTold(
  { inspect: { stately: url } }: ClientConfig,
  ports: ProcessPorts,
  workerId: WorkerId,
): Promise<ToldWorker | undefined> {
  if (url === undefined) return undefined;
  const { ToldWorker } = await import("./told-worker.ts");
  return new ToldWorker(url, workerId, ports);
}

interface Reported {
  readonly worker: Worker;
  readonly starter: Starter;
  readonly worker_id: WorkerId;
}

/** From now on the monitor says whether the worker executes what it is given, and has its metrics. */
function reportOn(monitor: Monitor, { worker, starter, worker_id }: Reported): void {
  monitor.metrics = (exposition) => {
    worker.addMetrics(exposition);
    starter.addMetrics(exposition);
  };
  monitor.readiness = () => {
    const { unready: reason, incarnation } = worker;
    const ready = reason === undefined;
    return Promise.resolve({ ready, ...(reason !== undefined && { reason }), worker_id, incarnation });
  };
}

/** The advice for a coordinator's database does not help a worker. `location`: the worker's own one, once that is known. */
function ownDamage(error: unknown, location?: string): unknown {
  if (!(error instanceof RolloutError)) return error;
  if (error.code !== "store_corrupt" && error.code !== "store_broken") return error;
  const { path = "", key = "", reason = "" } = error.params;
  if (location !== undefined && path !== location) return error;
  return failure("worker_store_corrupt", { path, key, reason }, error);
}

type OpenWorkerStore = (path: string) => Promise<Store>;

function storeOpener(isOfLocalRun: boolean, { clock, log }: ProcessPorts): OpenWorkerStore {
  const holderName = holderNameOf("worker", isOfLocalRun);
  return (path) => openLevelStore({ path, holderName, clock, log });
}

function claimState(
  { worker: { stateDir } }: ClientConfig,
  wanted: Pick<ClaimOptions, "workerId" | "isAllocation" | "openStore">,
  { clock, random }: ProcessPorts,
): Promise<ClaimedState> {
  return claimWorkerState({ ...wanted, stateDir, clock, random }).catch((error: unknown) => {
    throw ownDamage(error);
  });
}

/** Resolves when the worker has left, which hints make it do. */
async function untilLeft(worker: Worker, sources: readonly ComputeHint[], downfall: Downfall): Promise<void> {
  const watching = new AbortController();
  const onHint = (hint: Hint): void => void obey(worker, hint).catch(downfall.because);
  for (const source of sources) source.watch(watching.signal, onHint).catch(downfall.because);
  await Promise.race([worker.left(), downfall.promise]).finally(() => watching.abort());
}

async function obey(worker: Worker, hint: Hint): Promise<void> {
  if (hint.kind === "rebalance") return worker.sayAtRisk();
  const moments = { deadlineMs: drainDeadlineMs(hint), machineEndsMs: machineEndsMs(hint) };
  await worker.drain({ cause: hint.cause, ...moments });
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

/**
 * The id in the bundle; undefined when it cannot be read. Refuses one of another run before anything is made in the state directory,
 * which a mistyped run would claim for good.
 */
async function bearerOfBundle(config: ClientConfig, clock: Clock): Promise<string | undefined> {
  // One that cannot be read is complained of when it is needed: a worker with a certificate of its own needs none.
  const bundle = await loadBundle(config.worker.enrolment, ["enrolment"], clock).catch(() => undefined);
  if (bundle !== undefined) refuseForeign(bundle, config);
  return bundle?.facts.identity.id;
}

function refuseForeign({ facts }: Bundle, { runId, worker }: ClientConfig): void {
  const { runId: found } = facts.identity;
  if (found === runId) return;
  throw invalid(bundleNaming(worker.enrolment), `it belongs to run ${found}, and this run is ${runId}`);
}

/** The address of the metadata server. Throws config_invalid_value for a host that is not of this machine or its link. */
export function metadataAddress({ source, worker: { metadataAddr } }: ClientConfig): MetadataAddress {
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
