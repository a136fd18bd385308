// A worker from its start to its goodbye, put together: its items, its beats and its drain, whose chart says whether it stays. The
// coordinator hears of all that by beats. Above all rooms there are this file and `workload`, which has its items, session and outbox as one.
import type { MessageInitShape } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { showAddresses } from "../base/address.ts";
import type { Clock } from "../base/clock.ts";
import { failure } from "../base/errors.ts";
import type { ErrorCode, RolloutError } from "../base/errors.ts";
import type { IncarnationId, RunId, WorkerId } from "../base/ids.ts";
import { ulidToBytes } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import type { WorkerEnvelopeSchema } from "../gen/rollout/v1/common_pb.ts";
import { WorkerState } from "../gen/rollout/v1/common_pb.ts";
import { HeartbeatService } from "../gen/rollout/v1/heartbeat_pb.ts";
import { WorkService } from "../gen/rollout/v1/work_pb.ts";
import type { EventEmitter } from "../observe/events.ts";
import type { Logger } from "../observe/log.ts";
import type { Exposition } from "../observe/metrics/exposition.ts";
import type { LabelsOf } from "../observe/metrics/metric-table.ts";
import { claimStore } from "../storage/store-identity.ts";
import type { Store } from "../storage/store.ts";
import type { Client, ClientOptions } from "../transport/client.ts";
import { openClient } from "../transport/client.ts";
import type { StayEnd, StayLimits } from "../../machines/worker-stay.ts";
import type { ChartStep } from "../runtime/driver.ts";
import type { Credentials } from "../transport/tls/identity.ts";
import { Certificate } from "./life/certificate.ts";
import type { DrainRequest } from "./life/drain.ts";
import { Drain } from "./life/drain.ts";
import type { HeartbeatOptions } from "./life/heartbeat.ts";
import { Heartbeat } from "./life/heartbeat.ts";
import { Stay } from "./life/stay.ts";
import { nextIncarnation, readSeenEpochs, writeSeenEpochs } from "./life/worker-records.ts";
import { EpochGuard } from "./link/epoch-guard.ts";
import type { SeenEpoch } from "./link/epoch-guard.ts";
import { WorkerMeter } from "./work/worker-meter.ts";
import { Workload } from "./workload.ts";
import type { WorkSettings } from "./workload.ts";

export interface WorkerOptions {
  readonly runId: RunId;
  readonly workerId: WorkerId;
  /** The worker's own, held by this process alone. */
  readonly store: Store;
  /** Where the coordinator is, or several of which one leads. */
  readonly address: string | readonly string[];
  /** How the worker comes by its certificate: asks the coordinator for one, or has one from elsewhere. */
  readonly credentials:
    | { readonly kind: "enrolment"; readonly load: () => Promise<Credentials> }
    | { readonly kind: "own"; readonly credentials: Credentials };
  readonly slots: number;
  /** How it executes items. */
  readonly work: WorkSettings;
  /** This start of the machine. Unless said, a drain that a cloud asked for ends with its process. */
  readonly boot?: string;
  readonly heartbeatIntervalMs: number;
  readonly selfFenceTimeoutMs: number;
  readonly failureTimeoutMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: EventEmitter;
  readonly log: Logger;
  /** The worker's store is broken, or the program is wrong: the process has to end. */
  readonly onFatal: (error: unknown) => void;
  /** An operator wants the worker to drain. Called once. */
  readonly onDrainAsked?: () => void;
  /** How long it stays of its own accord; without end, unless said. */
  readonly stay?: StayLimits | undefined;
  /** It wants to drain of its own accord. Called once. */
  readonly onLeaving?: (cause: StayEnd) => void;
  /** Told of the steps of its charts: of its drain, and of each execution. Total. */
  readonly onStep?: ((step: ChartStep) => void) | undefined;
  /**
   * Another way to the coordinator than the network. For a simulation.
   * @internal
   */
  readonly connect?: (options: ClientOptions) => Client;
  /** The worker has to end for a reason that is not its own. */
  readonly onEnded: (error: RolloutError) => void;
}

/** By the outermost state of the drain; a worker that does not drain is ready as soon as a coordinator knows it. */
const WIRE_STATE: Readonly<Record<string, WorkerState>> = {
  Draining: WorkerState.DRAINING,
  Drained: WorkerState.GONE,
};

/** The innermost state of the drain, as its metric names it. */
const DRAIN_STATES: Readonly<Record<string, LabelsOf<"rollout_worker_drain_state">["state"]>> = {
  Idle: "idle",
  GoingOn: "going_on",
  HandingBack: "handing_back",
  Finishing: "finishing",
  Saving: "saving",
  Flushing: "flushing",
  Drained: "drained",
};

/** The certificate is refused, or it comes from a CA that is not the coordinator's any more. */
const NEEDS_CERTIFICATE: ReadonlySet<ErrorCode> = new Set(["certificate_refused", "coordinator_not_trusted"]);

export class Worker {
  readonly incarnation: IncarnationId;
  readonly #options: WorkerOptions;
  readonly #guard: EpochGuard;
  readonly #certificate: Certificate | undefined;
  readonly #meter = new WorkerMeter();
  #work: Workload | undefined;
  #drain: Drain | undefined;
  #stay: Stay | undefined;
  #isDrainAsked = false;
  #isAtRisk = false;
  #connection: Client | undefined;
  #heartbeat: Heartbeat | undefined;
  /** Ends when there is a heartbeat, or the worker was stopped before. Never rejects. */
  #connecting: Promise<void> = Promise.resolve();

  private constructor(options: WorkerOptions, incarnation: IncarnationId, guard: EpochGuard) {
    this.#options = options;
    this.incarnation = incarnation;
    this.#guard = guard;
    if (options.credentials.kind === "enrolment")
      this.#certificate = new Certificate({
        ...options,
        guard,
        enrolment: options.credentials.load,
        onAbsent: (forMs) => this.#onAbsent(forMs),
        onRenewed: (credentials) => this.#connection?.setCredentials(credentials),
      });
  }

  /** Takes up the worker's life: a new incarnation, on disk before anybody hears of it. */
  static async start(options: WorkerOptions): Promise<Worker> {
    const { store, clock, random, log, runId, workerId, onFatal } = options;
    await claimStore(store, { runId, clock, random });
    const incarnation = await nextIncarnation(store, clock, random);
    const guard = new EpochGuard(await readSeenEpochs(store), (seen) => keepEpochs(options, seen));
    const worker = new Worker(options, incarnation, guard);
    await worker.#certificate?.load();
    await worker.#takeUp();
    log.info("worker starts", { worker_id: workerId, incarnation });
    worker.#connecting = worker.#connect().catch(onFatal);
    return worker;
  }

  /**
   * Leaves: starts nothing more from this call on, hands back, finishes what it can before the deadline, delivers, says
   * goodbye. Resolves when it has left: some seconds after the deadline when nobody answers, and then the coordinator finds
   * out by itself. Called again it only tightens the deadline.
   */
  async drain(request: DrainRequest): Promise<void> {
    await this.#drain?.request(request);
    await this.left();
  }

  /** Resolves when the worker has left: because it was asked to, or the process before it was and its cloud's notice lasts. */
  async left(): Promise<void> {
    await this.#drain?.left;
  }

  /** Its machine may be taken away before long: the coordinator is told, and gives work to others first. For good; idempotent. */
  sayAtRisk(): void {
    if (this.#isAtRisk) return;
    this.#isAtRisk = true;
    this.#options.log.info("this machine may be taken away: the coordinator prefers others from now on");
    this.#heartbeat?.beatNow();
  }

  /** Why it could not execute an item that came now, in words for a person; undefined when it could. */
  get unready(): string | undefined {
    switch (this.#state) {
      case WorkerState.READY:
        if (this.#heartbeat?.isFenced() !== false) return "no coordinator answers";
        return this.#trouble() || undefined;
      case WorkerState.DRAINING:
        return "it drains";
      case WorkerState.GONE:
        return "it has left";
      default:
        return "no coordinator knows it yet";
    }
  }

  /** Adds its counts and its state, for monitoring. */
  addMetrics(exposition: Exposition): void {
    const [outer = "", inner] = (this.#drain?.state ?? "Idle").split(".");
    const drain = DRAIN_STATES[inner ?? outer];
    exposition.add("rollout_worker_slots", this.#options.slots);
    exposition.add("rollout_worker_beats_total", this.#heartbeat?.lastSequence ?? 0);
    exposition.add("rollout_worker_is_fenced", this.#heartbeat?.isFenced() !== false);
    if (drain !== undefined) exposition.addState("rollout_worker_drain_state", "state", drain);
    this.#work?.addMetrics(exposition);
    this.#meter.addTo(exposition);
  }

  /** Ends at once and without a goodbye; what is on disk stays. */
  async stop(): Promise<void> {
    const stopping = Promise.all([this.#drain?.stop(), this.#stay?.stop()]);
    await this.#certificate?.stop();
    await this.#connecting;
    await this.#work?.stop();
    await this.#heartbeat?.stop();
    this.#connection?.close();
    await stopping;
  }

  async #takeUp(): Promise<void> {
    const { work, boot = "" } = this.#options;
    const { incarnation } = this;
    const isFenced = (): boolean => this.#heartbeat?.isFenced() !== false;
    const workload = await Workload.open({
      ...{ ...this.#options, ...work, incarnation, isFenced },
      onAttemptEnded: (finished) => this.#meter.ended(finished),
    });
    this.#work = workload;
    this.#drain = await Drain.open({
      ...{ ...this.#options, incarnation, boot, work: workload },
      learners: () => work.plugins.learners(),
      heartbeat: () => this.#heartbeat,
    });
    const { stay: limits } = this.#options;
    if (limits === undefined) return;
    this.#stay = await Stay.open({
      ...{ ...this.#options, boot, limits },
      idleSinceMs: () => workload.idleSinceMs,
      onLeaving: (cause) => this.#options.onLeaving?.(cause),
    });
  }

  async #connect(): Promise<void> {
    const { random, credentials, connect = openClient } = this.#options;
    const own = credentials.kind === "own" ? credentials.credentials : await this.#certificate?.obtain();
    if (own === undefined) return;
    this.#connection = connect({ ...this.#options, credentials: own });
    this.#heartbeat = new Heartbeat(this.#heartbeatOptions(this.#connection));
    this.#work?.attach({
      client: createClient(WorkService, this.#connection.transport),
      random,
      guard: this.#guard,
      envelope: () => this.#envelope(),
      onFailed: (error) => this.#onFailed(error),
      onSuperseded: () => this.#onSuperseded(),
    });
    this.#heartbeat.start();
  }

  #heartbeatOptions(connection: Client): HeartbeatOptions {
    const { slots, clock, failureTimeoutMs } = this.#options;
    return {
      ...this.#options,
      address: showAddresses(this.#options.address),
      client: createClient(HeartbeatService, connection.transport),
      onDoubt: () => connection.doubt(),
      guard: this.#guard,
      answerTimeoutMs: failureTimeoutMs,
      describe: () => ({
        takesKeys: true,
        worker: this.#envelope(),
        state: this.#state,
        load: this.#work?.load ?? 0,
        sentAtMs: BigInt(Math.round(clock.wallMs())),
        slots,
        atRisk: this.#isAtRisk,
        ...this.#versions(),
        trouble: this.#trouble(),
        drain: this.#drain?.progress,
        ...this.#work?.holdings(),
      }),
      onAccepted: ({ assignmentEpoch }) => {
        this.#accepted();
        this.#work?.sawAssignment(assignmentEpoch);
      },
      onAnswered: (afterMs) => this.#meter.answered(afterMs),
      onFenced: (provenAtMs) => {
        this.#meter.fenced();
        this.#work?.fenced();
        this.#stay?.leaderLost(provenAtMs);
      },
      onFenceLifted: () => {
        this.#work?.distrust();
        this.#stay?.leaderAnswered();
      },
      onDrainAsked: () => {
        if (!this.#isDrainAsked) this.#options.onDrainAsked?.();
        this.#isDrainAsked = true;
      },
      onAbsent: (forMs) => this.#onAbsent(forMs),
      onFailed: (error) => this.#onFailed(error),
      onSuperseded: () => this.#onSuperseded(),
    };
  }

  /** The plugins with their versions, and what each of them runs if that is known of all. */
  #versions(): Pick<ReturnType<HeartbeatOptions["describe"]>, "plugins" | "taskDigests" | "loadedVersions"> {
    const { plugins } = this.#options.work;
    const listed = plugins.list();
    const digests = listed.flatMap(({ taskDigest }) => taskDigest ?? []);
    return {
      plugins: listed.map(({ name, version, stateVersion }) => ({ name, version, stateVersion })),
      taskDigests: digests.length === listed.length ? digests : [],
      loadedVersions: plugins.loadedVersions ?? 0,
    };
  }

  #onAbsent(forMs: number): void {
    const { events, workerId: worker_id } = this.#options;
    const address = showAddresses(this.#options.address);
    events.emit("coordinator_unreachable", { worker_id, address, for_ms: forMs });
  }

  #onFailed(error: RolloutError): void {
    const { code } = error;
    if (NEEDS_CERTIFICATE.has(code)) this.#certificate?.replace();
    // Nothing was given to it yet; the next process begins by a clock that is right, or is told the same.
    if (code === "clock_ahead") this.#options.onEnded(error);
  }

  #onSuperseded(): void {
    this.#options.onEnded(failure("worker_superseded", { worker: this.#options.workerId }));
  }

  #accepted(): void {
    // The coordinator knows this worker, and an answer may have ended its self-fence.
    this.#work?.start();
    this.#work?.wake();
    if (this.#heartbeat?.answers !== 1) return;
    this.#stay?.leaderAnswered();
    const address = showAddresses(this.#options.address);
    this.#options.log.info("a coordinator knows this worker", { address });
    this.#heartbeat.beatNow();
  }

  get #state(): WorkerState {
    const [leaving = ""] = this.#drain?.state.split(".") ?? [];
    const staying = (this.#heartbeat?.answers ?? 0) === 0 ? WorkerState.INIT : WorkerState.READY;
    return WIRE_STATE[leaving] ?? staying;
  }

  /** A worker that has left has no trouble but the one that it has left for. */
  #trouble(): string {
    const { plugins } = this.#options.work;
    return this.#state === WorkerState.GONE ? plugins.broken() : plugins.trouble();
  }

  #envelope(): MessageInitShape<typeof WorkerEnvelopeSchema> {
    const [latest] = this.#guard.seen;
    return {
      workerId: ulidToBytes(this.#options.workerId),
      incarnation: ulidToBytes(this.incarnation),
      ...(latest && { epochSeen: BigInt(latest.epoch), storeId: ulidToBytes(latest.storeId) }),
    };
  }
}

/** A store that cannot keep an epoch is broken: the leader that told of it is not obeyed, and the process ends. */
async function keepEpochs({ store, onFatal }: WorkerOptions, seen: readonly SeenEpoch[]): Promise<void> {
  try {
    await writeSeenEpochs(store, seen);
  } catch (error) {
    onFatal(error);
    throw error;
  }
}
