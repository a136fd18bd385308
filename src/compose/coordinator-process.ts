// A coordinator as a process: opens the database, holds the CA, listens, leads until it is told to stop.
import { createRouterTransport } from "@connectrpc/connect";
import { relative } from "node:path";
import type { RunId } from "../base/ids.ts";
import { newUlid } from "../base/ids.ts";
import type { IncarnationId } from "../base/ids.ts";
import { readRunStatus } from "../client/run-status.ts";
import { LIMITS } from "../config/limits.ts";
import type { ResolvedConfig } from "../config/resolve.ts";
import { Coordinator } from "../coordinator/coordinator.ts";
import type { LeaseTiming } from "../coordinator/lead/elector-storage.ts";
import { ACCESS } from "../coordinator/rpc/access.ts";
import { auditTo } from "../observe/audit.ts";
import { EventJournal } from "../observe/event-journal.ts";
import { openLevelStore } from "../storage/level/level-store.ts";
import type { Store } from "../storage/store.ts";
import { messageLimits } from "../transport/limits.ts";
import { startServer } from "../transport/server.ts";
import type { RunningServer } from "../transport/server.ts";
import { openAwaited } from "./awaited-store.ts";
import { stand } from "./candidacy.ts";
import { turnOffCoreDumps } from "./fence.ts";
import { holderNameOf } from "./holder-names.ts";
import { forgetFinished } from "./local-run/finished-record.ts";
import { refuseFewerThanRecorded, refuseLostDatabase } from "./local-run/recorded.ts";
import { openOwnStore } from "./own-store.ts";
import type { ProcessPorts } from "./process-ports.ts";
import { Downfall } from "./process-ports.ts";
import { openServerIdentity } from "./server-identity.ts";
import type { ServerIdentity } from "./server-identity.ts";

/** How long calls in flight may take when the coordinator is told to stop. */
const CLOSE_GRACE_MS = 5_000;

/** A person's requests to a coordinator that runs. */
export interface Requests {
  /** It is a process of a local run. */
  readonly isOfLocalRun: boolean;
  /** Resolves when it is to stop. */
  readonly stop: Promise<unknown>;
  /** Told once what to call whenever certificates are to be read again at once. */
  readonly onReload: (reload: () => void) => void;
}

/** Leads until it is asked to stop, then hands over in good order. Throws the row of what went wrong instead. */
export async function runCoordinator(
  config: ResolvedConfig,
  processPorts: ProcessPorts,
  { isOfLocalRun, stop, onReload }: Requests,
): Promise<void> {
  const { clock, random, log } = processPorts;
  const journal = new EventJournal({ events: processPorts.events, runId: config.runId, clock });
  const ports = { ...processPorts, events: journal };
  const downfall = new Downfall();
  await turnOffCoreDumps();
  await refuseLostDatabase(config.storage.path);
  const incarnation = newUlid<IncarnationId>(clock, random);
  const waiting = new AbortController();
  void stop.then(() => waiting.abort());
  const { path } = config.storage;
  const store = await openAwaited(
    () => openLevelStore({ path, holderName: holderNameOf("coordinator", isOfLocalRun), clock, log }),
    { clock, tell: ports.tell, signal: waiting.signal },
  );
  if (store === undefined) return;
  const ownStore = await openOwnStore(config.worker.stateDir, incarnation, clock, log);
  try {
    const identity = await openServerIdentity(config, ports);
    if (identity.createdCaFile !== undefined)
      ports.tell(`Generated dev CA at ./${relative(".", identity.createdCaFile)}`);
    const keptOut = new KeptOut(identity);
    const coordinator = await startCoordinator(config, ports, {
      incarnation,
      store,
      ownStore,
      identity,
      keptOut,
      downfall,
      journal,
      stop,
    });
    await serve(coordinator, config, ports, { identity, keptOut, downfall, stop, onReload });
    ports.events.emit("coordinator_stopped", { epoch: coordinator.epoch });
  } finally {
    await ownStore.close();
    await store.close();
  }
}

/** Until it is asked to stop. When it fails, the coordinator has ended first: the stores are closed after it. */
async function serve(
  coordinator: Coordinator,
  config: ResolvedConfig,
  { log, clock, events }: ProcessPorts,
  {
    identity,
    keptOut,
    downfall,
    stop,
    onReload,
  }: Pick<Parts, "identity" | "keptOut" | "downfall"> & Omit<Requests, "isOfLocalRun">,
): Promise<void> {
  let server: RunningServer | undefined;
  try {
    await refuseFewerThanRecorded(config.storage.path, async () => {
      const { done, setAside } = await readRunStatus(createRouterTransport(coordinator.routes));
      return done + setAside;
    });
    // Once it listens, anybody may change what was recorded.
    await forgetFinished(config.storage.path);
    server = await startServer({
      listenAddr: config.transport.listenAddr,
      credentials: identity.credentials,
      routes: coordinator.routes,
      access: ACCESS,
      revoked: keptOut.ids,
      limits: messageLimits(config.limits),
      log,
      audit: auditTo(log),
      clock,
    });
    keptOut.server = server;
    onReload(identity.keepFresh(server.setCredentials));
    announce(coordinator, server, { events, log });
    await Promise.race([stop, downfall.promise]);
    identity.stop();
    coordinator.endStreams();
    await server.close(CLOSE_GRACE_MS);
    await coordinator.stop();
  } catch (error) {
    identity.stop();
    await coordinator.halt();
    await server?.close(0);
    throw error;
  }
}

/** Bearers of revoked certificates, as the coordinator names them: its listener keeps them out, this host replaces its own. */
class KeptOut {
  readonly ids = new Set<string>();
  /** As soon as it listens. */
  server: RunningServer | undefined;
  readonly #identity: ServerIdentity;

  constructor(identity: ServerIdentity) {
    this.#identity = identity;
  }

  readonly add = (ids: readonly string[]): void => {
    for (const id of ids) this.ids.add(id);
    this.server?.revoke(ids);
    this.#identity.replace(ids);
  };
}

interface Parts {
  readonly incarnation: IncarnationId;
  readonly store: Store;
  readonly ownStore: Store;
  readonly identity: ServerIdentity;
  readonly keptOut: KeptOut;
  readonly downfall: Downfall;
  readonly journal: EventJournal;
  readonly stop: Promise<unknown>;
}

async function startCoordinator(
  config: ResolvedConfig,
  ports: ProcessPorts,
  parts: Parts,
): Promise<Coordinator> {
  const { clock, random, events, log } = ports;
  const { incarnation, store } = parts;
  const candidacy = await stand({
    runId: config.runId,
    incarnation,
    store,
    isShared: store.supports.multiProcess,
    timing: leaseTiming(config),
    ...{ clock, events, log },
  });
  const waiting = new AbortController();
  void parts.stop.then(() => waiting.abort());
  return Coordinator.start({
    runId: config.runId satisfies RunId,
    incarnation,
    store,
    ownStore: parts.ownStore,
    liveness: config.liveness,
    workersMax: LIMITS.workers,
    budgets: { maxAttempts: config.run.maxAttempts, maxLost: config.run.maxLost },
    runLimits: config.run,
    inboxMax: LIMITS.inboxInputs,
    limits: config.limits,
    clock,
    random,
    events,
    eventFeed: parts.journal,
    log,
    sign: parts.identity.signWorkerRequest,
    enrolmentQuota: config.enrolment.quota,
    isOwnBundle: parts.identity.isOwnBundle,
    onRevoked: parts.keptOut.add,
    advertisedAddress: config.worker.coordinatorAddr,
    ...candidacy,
    signal: waiting.signal,
    onFatal: parts.downfall.because,
  });
}

/** The failure timeout of a coordinator is its lease's time to live. */
export function leaseTiming({ liveness, lease }: ResolvedConfig): LeaseTiming {
  return { ttlMs: liveness.coordinatorFailureTimeoutMs, ...lease };
}

function announce(
  coordinator: Coordinator,
  { address }: RunningServer,
  { events, log }: Pick<ProcessPorts, "events" | "log">,
): void {
  const { epoch, storeId } = coordinator;
  events.emit("coordinator_leading", { epoch, store_id: storeId, address });
  log.info("the coordinator leads", { epoch, store_id: storeId, address });
}
