// A real coordinator in this process: its store in memory, its listener on loopback, and everything it says.
import { systemClock } from "../../src/base/clock.ts";
import type { Clock } from "../../src/base/clock.ts";
import { newUlid } from "../../src/base/ids.ts";
import type { IncarnationId, RunId } from "../../src/base/ids.ts";
import { systemRandom } from "../../src/base/random.ts";
import { LIMITS } from "../../src/config/limits.ts";
import type { CoordinatorOptions, Fenced } from "../../src/coordinator/coordinator-options.ts";
import { Coordinator } from "../../src/coordinator/coordinator.ts";
import { ACCESS } from "../../src/coordinator/rpc/leader.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import type { Store } from "../../src/storage/store.ts";
import type { AuditEntry } from "../../src/transport/audit.ts";
import { messageLimits } from "../../src/transport/limits.ts";
import { startServer } from "../../src/transport/server.ts";
import type { RunningServer } from "../../src/transport/server.ts";
import { newIdentity, newRunId, TestAuthority } from "./certificates.ts";
import { freePort } from "./listeners.ts";
import { LIVENESS } from "./world.ts";
import { RecordingEmitter } from "./recording-emitter.ts";
import { RecordingLogger } from "./recording-logger.ts";

/** State that outlives a coordinator: the next one goes on with it. */
export interface TestCluster {
  readonly runId: RunId;
  readonly ca: TestAuthority;
  readonly store: Store;
}

export async function newTestCluster(): Promise<TestCluster> {
  return { runId: newRunId(), ca: await TestAuthority.make(), store: new MemoryStore() };
}

export interface StartedCoordinator {
  readonly coordinator: Coordinator;
  readonly incarnation: IncarnationId;
  readonly ownStore: Store;
  readonly events: RecordingEmitter;
  readonly log: RecordingLogger;
  readonly fenced: readonly Fenced[];
  readonly fatal: readonly unknown[];
}

export type CoordinatorTestOptions = Partial<CoordinatorOptions> & { readonly clock?: Clock };

/** The coordinator alone, without a listener. Certificates are signed by the cluster's CA unless `options.sign` differs. */
export async function startCoordinator(
  { runId, ca, store }: TestCluster,
  options: CoordinatorTestOptions = {},
): Promise<StartedCoordinator> {
  const [fenced, fatal]: [Fenced[], unknown[]] = [[], []];
  const said = {
    incarnation: newUlid<IncarnationId>(systemClock, systemRandom),
    ownStore: new MemoryStore(),
    events: new RecordingEmitter(),
    log: new RecordingLogger(),
  };
  const coordinator = await Coordinator.start({
    runId,
    store,
    liveness: LIVENESS,
    workersMax: 10,
    budgets: { maxAttempts: 3, maxLost: 5 },
    inboxMax: 100,
    clock: systemClock,
    random: systemRandom,
    sign: (csr, workerId) => ca.authority.signWorkerRequest(csr, runId, workerId),
    advertisedAddress: "127.0.0.1:1",
    abortFenced: (why) => void fenced.push(why),
    onFatal: (error) => void fatal.push(error),
    ...said,
    ...options,
  });
  return { ...said, coordinator, fenced, fatal };
}

export interface ListeningCoordinator extends StartedCoordinator, TestCluster {
  readonly server: RunningServer;
  readonly audit: readonly AuditEntry[];
  /** As on SIGTERM: streams end, calls finish, the lease is free. Idempotent. */
  stop(): Promise<void>;
}

/** `port` is the one of a coordinator before. */
export async function startListeningCoordinator(
  cluster: TestCluster,
  options: CoordinatorTestOptions & { readonly port?: number } = {},
): Promise<ListeningCoordinator> {
  const { port = await freePort(), ...coordinatorOptions } = options;
  const audit: AuditEntry[] = [];
  const revoked = new Set<string>();
  const listener: { server?: RunningServer } = {};
  const onRevoked = (ids: readonly string[]): void => {
    for (const id of ids) revoked.add(id);
    listener.server?.revoke(ids);
  };
  const started = await startCoordinator(cluster, { onRevoked, ...coordinatorOptions });
  const server = await startServer({
    listenAddr: `127.0.0.1:${port}`,
    credentials: await cluster.ca.issue(newIdentity(cluster.runId, "coordinator")),
    routes: started.coordinator.routes,
    access: ACCESS,
    revoked,
    limits: messageLimits(options.limits ?? LIMITS),
    log: started.log,
    audit: (entry) => void audit.push(entry),
    clock: systemClock,
  });
  listener.server = server;
  const end = async (): Promise<void> => {
    started.coordinator.endStreams();
    await server.close(1_000);
    await started.coordinator.stop();
  };
  let ended: Promise<void> | undefined;
  return { ...cluster, ...started, server, audit, stop: () => (ended ??= end()) };
}
