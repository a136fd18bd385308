// A worker from its start to its goodbye. Where it is in its life is its chart to say, persisted in its own store; its beats
// tell the coordinator, and the coordinator's answers move it on.
import type { MessageInitShape } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { charts } from "../../machines/index.ts";
import type { WorkerEvent } from "../../machines/worker-lifecycle.ts";
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
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
import { ActorSystem } from "../runtime/driver.ts";
import { claimStore } from "../storage/store-identity.ts";
import type { Store } from "../storage/store.ts";
import type { Client, ClientOptions } from "../transport/client.ts";
import { openClient } from "../transport/client.ts";
import type { Credentials } from "../transport/tls/identity.ts";
import { Certificate } from "./life/certificate.ts";
import type { DrainRequest, TrainState } from "./life/drain.ts";
import { Drain, drainAddress } from "./life/drain.ts";
import type { HeartbeatOptions } from "./life/heartbeat.ts";
import { Heartbeat } from "./life/heartbeat.ts";
import { nextIncarnation, readSeenEpochs, writeSeenEpochs } from "./life/worker-records.ts";
import { EpochGuard } from "./link/epoch-guard.ts";
import type { SeenEpoch } from "./link/epoch-guard.ts";
import { NO_WORK, Workload } from "./workload.ts";
import type { WorkSettings } from "./workload.ts";

export interface WorkerOptions {
  readonly runId: RunId;
  readonly workerId: WorkerId;
  /** The worker's own, held by this process alone. */
  readonly store: Store;
  readonly address: string;
  /** How the worker comes by its certificate: asks the coordinator for one, or has one from elsewhere. */
  readonly credentials:
    | { readonly kind: "enrolment"; readonly load: () => Promise<Credentials> }
    | { readonly kind: "own"; readonly credentials: Credentials };
  readonly slots: number;
  /** How it executes items. Without it the worker lives, and asks for no work. */
  readonly work?: WorkSettings;
  readonly trainState?: TrainState;
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
  /**
   * Another way to the coordinator than the network. For a simulation.
   * @internal
   */
  readonly connect?: (options: ClientOptions) => Client;
  /** The worker has to end for a reason that is not its own. */
  readonly onEnded: (error: RolloutError) => void;
}

const WIRE_STATE: Readonly<Record<string, WorkerState>> = {
  Init: WorkerState.INIT,
  Ready: WorkerState.READY,
  Draining: WorkerState.DRAINING,
  Gone: WorkerState.GONE,
};

/** The certificate is refused, or it comes from a CA that is not the coordinator's any more. */
const NEEDS_CERTIFICATE: ReadonlySet<ErrorCode> = new Set(["certificate_refused", "coordinator_not_trusted"]);

/** How long a goodbye may take when nobody answers. */
const GOODBYE_MAX_MS = 3_000;

export class Worker {
  readonly incarnation: IncarnationId;
  readonly #options: WorkerOptions;
  readonly #actors: ActorSystem;
  readonly #guard: EpochGuard;
  readonly #certificate: Certificate | undefined;
  #work: Workload | undefined;
  #drain: Drain | undefined;
  #drainStartedMs = 0;
  #isDrainAsked = false;
  #isAtRisk = false;
  #connection: Client | undefined;
  #heartbeat: Heartbeat | undefined;
  #onAnswer: ((sequence: number) => void) | undefined;
  /** Ends when there is a heartbeat, or the worker was stopped before. Never rejects. */
  #connecting: Promise<void> = Promise.resolve();
  /** The tail of what answers have set going, one after the other. Never rejects. */
  #accepting: Promise<void> = Promise.resolve();

  private constructor(
    options: WorkerOptions,
    incarnation: IncarnationId,
    guard: EpochGuard,
    actors: ActorSystem,
  ) {
    this.#options = options;
    this.incarnation = incarnation;
    this.#guard = guard;
    this.#actors = actors;
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
    const born: { worker?: Worker } = {};
    const actors = await ActorSystem.open({
      store,
      charts: {
        "worker-lifecycle": charts["worker-lifecycle"],
        "spot-drain": charts["spot-drain"],
      },
      clock,
      random,
      log,
      durability: "flush",
      onFatal,
      // Beats say what the worker's own chart announces: the coordinator is the one to tell.
      perform: async ({ address, type }) => {
        const { worker } = born;
        if (worker !== undefined && address === drainAddress(workerId)) await worker.#drain?.perform(type);
      },
    });
    const worker = (born.worker = new Worker(options, incarnation, guard, actors));
    await worker.#certificate?.load();
    const isNew = await actors.spawn(worker.#address, "worker-lifecycle", { incarnation });
    if (!isNew) await worker.#send({ type: "worker.started", incarnation });
    await worker.#takeUpWork();
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
  }

  /** Its machine may be taken away before long: the coordinator is told, and gives work to others first. For good; idempotent. */
  sayAtRisk(): void {
    if (this.#isAtRisk) return;
    this.#isAtRisk = true;
    this.#options.log.info("this machine may be taken away: the coordinator prefers others from now on");
    this.#heartbeat?.beatNow();
  }

  /** Ends at once and without a goodbye; what is on disk stays. */
  async stop(): Promise<void> {
    this.#drain?.stop();
    await this.#certificate?.stop();
    await this.#connecting;
    await this.#work?.stop();
    await this.#heartbeat?.stop();
    this.#connection?.close();
    await this.#accepting;
    await this.#actors.close();
  }

  get #address(): string {
    return `worker/${this.#options.workerId}`;
  }

  #send(event: WorkerEvent): Promise<unknown> {
    return this.#actors.send(this.#address, event);
  }

  async #connect(): Promise<void> {
    const { address, runId, clock, random, log, credentials, connect = openClient } = this.#options;
    const own = credentials.kind === "own" ? credentials.credentials : await this.#certificate?.obtain();
    if (own === undefined) return;
    this.#connection = connect({ address, runId, credentials: own, clock, random, log });
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

  async #takeUpWork(): Promise<void> {
    const { work, trainState } = this.#options;
    const { incarnation } = this;
    const isFenced = (): boolean => this.#heartbeat?.isFenced() !== false;
    if (work !== undefined)
      this.#work = await Workload.open({ ...this.#options, ...work, incarnation, isFenced });
    this.#drain = await Drain.take({
      ...this.#options,
      actors: this.#actors,
      trainState,
      work: this.#work ?? NO_WORK,
      onStarted: (request) => this.#beginDraining(request),
      onEmpty: () => this.#leave(),
    });
  }

  async #beginDraining({ cause, deadlineMs }: DrainRequest): Promise<void> {
    const { events, clock, workerId: worker_id } = this.#options;
    const { incarnation } = this;
    this.#drainStartedMs = clock.monotonicMs();
    const deadline_ms = Math.max(0, Math.round(deadlineMs - this.#drainStartedMs));
    await this.#send({ type: "worker.drain", incarnation });
    this.#heartbeat?.beatNow();
    events.emit("drain_started", { worker_id, incarnation, cause, deadline_ms });
  }

  async #leave(): Promise<void> {
    const { events, clock, workerId: worker_id, log } = this.#options;
    const { incarnation } = this;
    await this.#send({ type: "worker.left", incarnation });
    if (!(await this.#sayGoodbye())) log.warn("left without an answer: no coordinator heard the goodbye");
    const took_ms = Math.round(clock.monotonicMs() - this.#drainStartedMs);
    events.emit("drain_completed", { worker_id, incarnation, took_ms });
  }

  #heartbeatOptions({ transport }: Client): HeartbeatOptions {
    const { slots, clock, random, log, heartbeatIntervalMs, selfFenceTimeoutMs, failureTimeoutMs } =
      this.#options;
    return {
      client: createClient(HeartbeatService, transport),
      clock,
      random,
      log,
      address: this.#options.address,
      guard: this.#guard,
      heartbeatIntervalMs,
      selfFenceTimeoutMs,
      answerTimeoutMs: failureTimeoutMs,
      describe: () => ({
        worker: this.#envelope(),
        state: this.#wireState(),
        load: this.#work?.load ?? 0,
        sentAtMs: BigInt(Math.round(clock.wallMs())),
        slots,
        atRisk: this.#isAtRisk,
        plugins: [...(this.#options.work?.plugins.list() ?? [])],
        trouble: this.#trouble(),
        ...(this.#work === undefined ? {} : this.#work.holdings()),
      }),
      onAccepted: (answer) => this.#inTurn(() => this.#accepted(answer)),
      onFenced: () => this.#work?.fenced(),
      onFenceLifted: () => this.#work?.distrust(),
      onDrainAsked: () => {
        if (!this.#isDrainAsked) this.#options.onDrainAsked?.();
        this.#isDrainAsked = true;
      },
      onAbsent: (forMs) => this.#onAbsent(forMs),
      onFailed: (error) => this.#onFailed(error),
      onSuperseded: () => this.#onSuperseded(),
    };
  }

  #onAbsent(forMs: number): void {
    const { events, workerId: worker_id, address } = this.#options;
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

  /** One after the other, behind what earlier answers have set going. */
  #inTurn(step: () => Promise<void>): void {
    this.#accepting = this.#accepting.then(step).catch(this.#options.onFatal);
  }

  async #accepted({ sequence }: { sequence: number }): Promise<void> {
    this.#onAnswer?.(sequence);
    // The coordinator knows this worker, and an answer may have ended its self-fence.
    this.#work?.start();
    this.#work?.wake();
    if (this.#lifecycle() !== "Init") return;
    await this.#send({ type: "worker.welcomed", incarnation: this.incarnation });
    this.#heartbeat?.beatNow();
  }

  /** True when the coordinator has answered a beat that says that this worker is gone. */
  async #sayGoodbye(): Promise<boolean> {
    const heartbeat = this.#heartbeat;
    if (heartbeat === undefined) return false;
    const patience = new AbortController();
    const before = heartbeat.lastSequence;
    const answered = new Promise<boolean>((resolve) => {
      this.#onAnswer = (sequence) => sequence > before && resolve(true);
    });
    heartbeat.beatNow();
    const timeout = sleep(this.#options.clock, GOODBYE_MAX_MS, patience.signal).then(() => false);
    const heard = await Promise.race([answered, timeout]);
    patience.abort();
    return heard;
  }

  #lifecycle(): string {
    const [lifecycle] = this.#actors.stateOf(this.#address)?.split("+") ?? [];
    assert(lifecycle !== undefined, "a worker that started has a state");
    return lifecycle;
  }

  /** A worker that has left has no trouble but the one that it has left for. */
  #trouble(): string {
    const plugins = this.#options.work?.plugins;
    return (this.#lifecycle() === "Gone" ? plugins?.broken() : plugins?.trouble()) ?? "";
  }

  #wireState(): WorkerState {
    return WIRE_STATE[this.#lifecycle()] ?? WorkerState.UNSPECIFIED;
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
