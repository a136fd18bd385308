// The post of a coordinator process: it listens first, then stands for leadership; it leads, makes room for another when it is asked to,
// and follows again, until it is told to stop.
//
// Keeps true: whoever calls it while it does not lead is refused with who does; nothing of a leadership is answered before it has
// begun, or after it has ended.
import { createClient, createRouterTransport } from "@connectrpc/connect";
import { localAddressOf, parseAddress } from "../base/address.ts";
import type { Address } from "../base/address.ts";
import { assert } from "../base/assert.ts";
import { RolloutError } from "../base/errors.ts";
import type { Epoch, IncarnationId, StoreId } from "../base/ids.ts";
import { statusOf } from "../client/run-status.ts";
import type { RunStatus } from "../client/run-status.ts";
import { LIMITS } from "../config/limits.ts";
import type { ResolvedConfig } from "../config/resolve.ts";
import { Coordinator } from "../coordinator/coordinator.ts";
import { Attendance } from "../coordinator/lead/attendance.ts";
import type { LeaseTiming } from "../coordinator/lead/elector-storage.ts";
import { Role } from "../coordinator/lead/role.ts";
import { rehearse } from "../coordinator/rehearsal.ts";
import { ACCESS } from "../coordinator/rpc/leader.ts";
import { RoleSteps } from "../coordinator/sight/role-steps.ts";
import { Sight } from "../coordinator/sight/sight.ts";
import { workersSegment } from "../coordinator/workers/worker-record.ts";
import { OperatorService } from "../gen/rollout/v1/run_pb.ts";
import type { EventJournal } from "../observe/event-journal.ts";
import type { ChartStep } from "../runtime/driver.ts";
import { claimStore } from "../storage/store-identity.ts";
import type { Store } from "../storage/store.ts";
import { auditTo } from "../transport/audit.ts";
import { messageLimits } from "../transport/limits.ts";
import { startServer } from "../transport/server.ts";
import type { RunningServer } from "../transport/server.ts";
import type { Credentials } from "../transport/tls/identity.ts";
import type { Candidacy } from "./candidacy.ts";
import { stand } from "./candidacy.ts";
import { CoordinatorDesk } from "./coordinator-desk.ts";
import type { CoordinatorMeter } from "./coordinator-meter.ts";
import { ProviderDesk } from "./fleets.ts";
import { KeptOut } from "./kept-out.ts";
import { Leadership } from "./leadership.ts";
import { LeaderEar } from "./leader-ear.ts";
import { refuseFewerThanRecordedIn, settleLocalRun, untilEndIsSeen } from "./local-run/coordinator-of-run.ts";
import type { Downfall, ProcessPorts } from "./process-ports.ts";
import { SeenFile } from "./seen-file.ts";
import type { ServerIdentity } from "./server-identity.ts";
import type { ToldCoordinator } from "./told-coordinator.ts";

/** How long calls in flight may take when the coordinator is told to stop. */
const CLOSE_GRACE_MS = 5_000;
/** A leader stops by itself before another one may begin. */
const DEADLINE_SHARE = 0.8;

/** A person's requests to a coordinator that runs. */
export interface Requests {
  /** It is a process of a local run. */
  readonly isOfLocalRun: boolean;
  /** Resolves when it is to stop. */
  readonly stop: Promise<unknown>;
  /** Told what to call whenever files are to be read again at once. */
  readonly onReload: (reload: () => void) => void;
  /** The configuration as it is now. */
  readonly readConfig: () => Promise<ResolvedConfig>;
}

export interface PostParts {
  readonly incarnation: IncarnationId;
  readonly store: Store;
  readonly ownStore: Store;
  readonly identity: ServerIdentity;
  readonly downfall: Downfall;
  readonly journal: EventJournal;
  readonly requests: Requests;
  readonly meter: CoordinatorMeter;
  /** Where an inspector is told of charts. */
  readonly told: ToldCoordinator | undefined;
}

/** The threshold is the lease's time to live, a heartbeat a renewal. */
export function leaseTiming({ coordinator }: ResolvedConfig): LeaseTiming {
  const { failoverThresholdMs: ttlMs, heartbeatIntervalMs: renewalMs } = coordinator;
  return { ttlMs, renewalMs, deadlineMs: Math.floor(DEADLINE_SHARE * ttlMs) };
}

export class CoordinatorPost {
  readonly #config: ResolvedConfig;
  readonly #ports: ProcessPorts;
  readonly #parts: PostParts;
  readonly #role: Role;
  readonly #candidacy: Candidacy;
  readonly #keptOut: KeptOut;
  readonly #memory: SeenFile;
  /** Its answers about the coordinators of the run. */
  readonly desk: CoordinatorDesk;
  /** Aborts when it is told to stop, or cannot go on. */
  readonly #over = new AbortController();
  #server: RunningServer | undefined;
  /** Where the store is shared, as soon as it listens. */
  #attendance: Attendance | undefined;
  #ear: LeaderEar | undefined;
  /** The sight of the leadership that begins or goes on. */
  #sight: Sight | undefined;
  readonly #roleSteps: RoleSteps;
  #leadership: Leadership | undefined;
  #lastEpoch: Epoch | null = null;
  readonly #fleets: ProviderDesk;

  private constructor(
    config: ResolvedConfig,
    ports: ProcessPorts,
    parts: PostParts,
    held: {
      readonly storeId: StoreId;
      readonly role: Role;
      readonly roleSteps: RoleSteps;
      readonly candidacy: Candidacy;
    },
  ) {
    this.#config = config;
    this.#ports = ports;
    this.#parts = parts;
    const { storeId, role } = held;
    this.#role = role;
    this.#roleSteps = held.roleSteps;
    this.#candidacy = held.candidacy;
    this.#keptOut = new KeptOut(parts.identity);
    const { weight, heartbeatIntervalMs } = config.coordinator;
    this.desk = new CoordinatorDesk({
      ...{ incarnation: parts.incarnation, storeId, role, weight, heartbeatIntervalMs },
      address: () => this.#server?.address ?? "",
      leadership: () => this.#leadership,
      attendance: () => this.#attendance,
      intakeBytes: () => this.#server?.intakeBytes() ?? 0,
    });
    this.#fleets = this.#openFleets(storeId);
    const { clock, log } = ports;
    this.#memory = new SeenFile({ stateDir: config.worker.stateDir, storeId, clock, log });
    const { downfall, requests } = parts;
    void Promise.race([requests.stop, downfall.promise.catch(() => undefined)]).then(() =>
      this.#over.abort(),
    );
  }

  /** Throws store_… rows when the store is not this run's. */
  static async take(config: ResolvedConfig, ports: ProcessPorts, parts: PostParts): Promise<CoordinatorPost> {
    const { clock, random, events, log } = ports;
    const { runId } = config;
    const { incarnation, store, ownStore, downfall, meter, told } = parts;
    const { storeId } = await claimStore(store, { runId, segments: [workersSegment], clock, random });
    const onFatal = downfall.because;
    const roleSteps = new RoleSteps(clock);
    const onStep = (step: ChartStep): void => {
      roleSteps.note(step);
      told?.onStep(step);
    };
    const role = await Role.take({ ownStore, incarnation, clock, random, log, onFatal, onStep });
    const candidacy = await stand({
      ...{ runId, incarnation, store, clock, events, log },
      isShared: store.supports.multiProcess,
      timing: leaseTiming(config),
      onRenewal: meter.onRenewal,
    });
    return new CoordinatorPost(config, ports, parts, { storeId, role, roleSteps, candidacy });
  }

  /** Resolves with the last epoch that it led under, when it has stopped as it was asked to; null when it never led. */
  async hold(): Promise<Epoch | null> {
    const { identity, downfall, requests } = this.#parts;
    try {
      const server = (this.#server = await this.#listen());
      this.#keptOut.server = server;
      requests.onReload(identity.keepFresh(server.setCredentials));
      requests.onReload(() => void this.#reloadFleets());
      await this.#attend(server);
      while (!this.#over.signal.aborted) if ((await this.#stand(server)) === "stopped") break;
      // The reason why it is over, unless it was told to stop.
      await Promise.race([downfall.promise, Promise.resolve()]);
      identity.stop();
      this.#ear?.close();
      await this.#attendance?.stop();
      await server.close(CLOSE_GRACE_MS);
      await this.#role.close();
      return this.#lastEpoch;
    } catch (error) {
      identity.stop();
      this.#ear?.close();
      await this.#attendance?.stop();
      await this.#server?.close(0);
      await this.#role.close().catch(() => undefined);
      throw error;
    }
  }

  /** Takes up the fleets of the file, and nothing else of it. Never rejects. */
  async #reloadFleets(): Promise<void> {
    const { log } = this.#ports;
    try {
      const { fleets } = await this.#parts.requests.readConfig();
      await this.#fleets.change(fleets);
    } catch (err) {
      log.error("the configuration cannot be read again; the fleets stay as they are", { err });
    }
  }

  #openFleets(storeId: StoreId): ProviderDesk {
    const { clock, random, log } = this.#ports;
    const { runId, fleets: settings, worker, transport } = this.#config;
    // Which port 0 became is known when it listens.
    const coordinators = (): readonly string[] =>
      transport.listenAddr.endsWith(":0") ? [this.#server?.address ?? ""] : worker.coordinatorAddr;
    const ownAddress = (): Address => {
      const listening = parseAddress(this.#server?.address ?? "");
      assert(listening !== undefined, "who leads listens");
      return localAddressOf(listening);
    };
    const { issueEnrolment: bundleFor } = this.#parts.identity;
    const parts = { runId, storeId, settings, coordinators, ownAddress, bundleFor, clock, random, log };
    return new ProviderDesk(parts);
  }

  #listen(): Promise<RunningServer> {
    const { log, clock } = this.#ports;
    return startServer({
      listenAddr: this.#config.transport.listenAddr,
      credentials: this.#parts.identity.credentials,
      routes: this.desk.routesOfCandidate,
      access: ACCESS,
      revoked: this.#keptOut.ids,
      limits: messageLimits(this.#config.limits),
      ...{ log, audit: auditTo(log), clock },
    });
  }

  async #attend({ address }: RunningServer): Promise<void> {
    const { incarnation, store } = this.#parts;
    if (!store.supports.multiProcess) return;
    const { clock, random, log, events } = this.#ports;
    const { coordinator, liveness, run, runId } = this.#config;
    const { heartbeatIntervalMs } = coordinator;
    const credentials = (): Credentials => this.#parts.identity.credentials;
    this.#ear = new LeaderEar({ runId, credentials, heartbeatIntervalMs, clock, log });
    this.#attendance = new Attendance({
      ...{ store, incarnation, clock, log, events, role: this.#role },
      term: () => this.#leadership?.term,
      address: this.#addressOf(address),
      timing: leaseTiming(this.#config),
      standing: { weight: coordinator.weight, quorum: coordinator.electionQuorum },
      removeAfterMs: liveness.removeAfterMs,
      failureTimeoutMs: liveness.coordinatorFailureTimeoutMs,
      hears: this.#ear.hears,
      onPublished: (epoch) => this.#memory.note({ epoch }),
      keepUp: () => this.#keptOut.readFrom(store),
      rehearse: () =>
        rehearse(store, {
          ...{ liveness, random, clock, limits: run, workersMax: LIMITS.workers },
          budgets: { maxAttempts: run.maxAttempts, maxLost: run.maxLost },
        }),
    });
    await this.#attendance.start();
  }

  /** One campaign, and the leadership that it ends with. */
  async #stand(server: RunningServer): Promise<"stopped" | "madeRoom"> {
    const { downfall, requests, told } = this.#parts;
    const started = this.#start();
    const coordinator = await Promise.race([started, downfall.promise]).catch(async (error: unknown) => {
      // It may have come to lead in the very moment.
      await started.then(
        (late) => late?.halt(),
        () => undefined,
      );
      throw error;
    });
    if (coordinator === undefined) return "stopped";
    this.#lastEpoch = coordinator.epoch;
    const endTelling = told?.lead(coordinator.routes);
    try {
      const within = createClient(OperatorService, createRouterTransport(coordinator.routes));
      const status = async (): Promise<RunStatus> => statusOf(await within.getRun({}));
      const { path } = this.#config.storage;
      if (path !== undefined) await settleLocalRun(path, status);
      const leadership = this.#lead(coordinator, server);
      const end = await Promise.race([requests.stop.then(() => "stop"), leadership.asked, downfall.promise]);
      if (end === "makeRoom") {
        server.setRoutes(this.desk.routesOfCandidate);
        await leadership.makeRoom();
        this.#leadership = undefined;
        this.#attendance?.turned();
        return "madeRoom";
      }
      leadership.neverLeft(this.desk.refusal());
      if (requests.isOfLocalRun)
        await Promise.race([untilEndIsSeen(server, status, this.#ports.clock), downfall.promise]);
      coordinator.endStreams();
      await this.#attendance?.stop();
      await server.close(CLOSE_GRACE_MS);
      await coordinator.stop();
      return "stopped";
    } catch (error) {
      this.#leadership?.neverLeft(error);
      this.#leadership = undefined;
      await coordinator.halt();
      throw error;
    } finally {
      endTelling?.();
      await this.#fleets.rest();
    }
  }

  /** Undefined when it was told to stop before it led. */
  async #start(): Promise<Coordinator | undefined> {
    const { clock, random, events, log } = this.#ports;
    const { incarnation, store, ownStore, identity, downfall, journal } = this.#parts;
    const config = this.#config;
    const attendance = this.#attendance;
    const sight = (this.#sight = new Sight(clock));
    this.#roleSteps.showTo(sight, this.#addressOf(this.#server?.address ?? ""));
    try {
      return await Coordinator.start({
        runId: config.runId,
        ...{ incarnation, store, ownStore, clock, random, events, log },
        role: this.#role,
        liveness: config.liveness,
        workersMax: LIMITS.workers,
        budgets: { maxAttempts: config.run.maxAttempts, maxLost: config.run.maxLost },
        runLimits: config.run,
        inboxMax: LIMITS.inboxInputs,
        limits: config.limits,
        eventFeed: journal,
        sight,
        sign: identity.signWorkerRequest,
        enrolmentQuota: config.enrolment.quota,
        fleets: this.#fleets,
        keys: {
          totalPartitions: config.keys.totalPartitions,
          virtualNodes: config.keys.virtualNodes,
          maxKeysPerPartition: config.keys.maxKeysPerPartition,
          spillAfterMs: config.keys.spillAfterMs,
          maxMail: config.limits.mail,
          skipsFailed: config.keys.onFailed === "skip",
          checkpointIntervalMs:
            config.keys.checkpointStore === undefined ? undefined : config.keys.checkpointIntervalMs,
        },
        isOwnBundle: identity.isOwnBundle,
        onRevoked: this.#keptOut.add,
        advertisedAddress: config.transport.advertisedAddr,
        elector: this.#candidacy.newElector(this.#addressOf(this.#server?.address ?? "")),
        memory: this.#memory,
        acceptsRollback: config.storage.onRollback === "accept",
        explainRollback: ({ done }) => refuseFewerThanRecordedIn(config.storage.path, done),
        abortFenced: this.#candidacy.abortFenced,
        ...(attendance && {
          onLook: (lease) => attendance.see(lease),
          candidacy: (chance) => attendance.candidacy(chance),
        }),
        signal: this.#over.signal,
        onFatal: downfall.because,
      });
    } catch (error) {
      if (error instanceof RolloutError && error.code === "interrupted") return undefined;
      throw error;
    }
  }

  /** From here on calls are answered. */
  #lead(coordinator: Coordinator, server: RunningServer): Leadership {
    const { events, log } = this.#ports;
    const { epoch, storeId, takeover } = coordinator;
    this.#parts.meter.took(takeover);
    const leadership = (this.#leadership = new Leadership(coordinator, log));
    server.setRoutes((router) => {
      coordinator.routes(router);
      this.desk.routes(router);
    });
    this.#attendance?.turned();
    const { address } = server;
    const { quietMs: quiet_ms, replayMs: replay_ms } = takeover;
    const payload = { epoch, store_id: storeId, address, quiet_ms, replay_ms };
    this.#sight?.event({ topic: "coordinator_leading", payload });
    events.emit("coordinator_leading", payload);
    log.info("the coordinator leads", { epoch, store_id: storeId, address });
    return leadership;
  }

  /** As others reach it; a port that was free is known when it listens. */
  #addressOf(listening: string): string {
    const { listenAddr, advertisedAddr } = this.#config.transport;
    return listenAddr.endsWith(":0") ? listening : advertisedAddr;
  }
}
