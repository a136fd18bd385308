// A coordinator from the first claim to the last commit: wins the lease, rebuilds its state, leads until it is stopped or finds
// that it does not lead any more. The chart of its role says what it may do at each moment.
//
// The coordinator's files above all rooms: `reactor` is one turn, `turn-loop` takes inputs and commits, `perform-effect`
// carries out, `replay` makes the state of a new leader, and this file puts them together.
import type { ConnectRouter } from "@connectrpc/connect";
import { charts } from "../../machines/index.ts";
import type { RoleEvent } from "../../machines/coordinator-role.ts";
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import type { Epoch, IncarnationId, RunId, StoreId } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import { turnstile } from "../base/turnstile.ts";
import type { ItemLimits } from "../config/limits.ts";
import { LIMITS } from "../config/limits.ts";
import { EnrolmentService } from "../gen/rollout/v1/enrolment_pb.ts";
import { HeartbeatService } from "../gen/rollout/v1/heartbeat_pb.ts";
import { RunService } from "../gen/rollout/v1/run_pb.ts";
import { WorkService } from "../gen/rollout/v1/work_pb.ts";
import type { EventFeed } from "../observe/event-journal.ts";
import type { EventEmitter } from "../observe/events.ts";
import type { Logger } from "../observe/log.ts";
import type { Perform } from "../runtime/driver.ts";
import { ActorSystem } from "../runtime/driver.ts";
import { claimStore } from "../storage/store-identity.ts";
import type { Store } from "../storage/store.ts";
import { StaticElector } from "./lead/elector-static.ts";
import type { LeaderElector, Loss } from "./lead/elector.ts";
import { checkLedgerCharts } from "./ledger/charts.ts";
import type { Leadership } from "./lead/lease.ts";
import { StorageLease } from "./lead/lease.ts";
import type { ItemBudgets } from "./ledger/ledger.ts";
import type { Input } from "./turn/input.ts";
import type { RunLimits } from "./turn/run-view.ts";
import { performEffect } from "./perform-effect.ts";
import type { EffectPorts } from "./perform-effect.ts";
import { replay } from "./replay.ts";
import type { SignWorkerRequest } from "./rpc/enrolment-service.ts";
import { enrolmentService } from "./rpc/enrolment-service.ts";
import { heartbeatService } from "./rpc/heartbeat-service.ts";
import type { Leader } from "./rpc/leader.ts";
import { envelopeOf } from "./rpc/messages.ts";
import { runService } from "./rpc/run-service.ts";
import { workService } from "./rpc/work-service.ts";
import type { CoordinatorState, LivenessSettings } from "./turn/state.ts";
import { TurnLoop } from "./turn-loop.ts";
import type { Setback } from "./turn-loop.ts";
import { workersSegment } from "./workers/worker-record.ts";

export interface CoordinatorOptions {
  readonly runId: RunId;
  /** This start of the process: the nonce of its claims and the address of its role. */
  readonly incarnation: IncarnationId;
  /** The shared store: the ledger. */
  readonly store: Store;
  /** This process's own: where its role is. Nothing of a fenced coordinator is ever written to the shared one. */
  readonly ownStore: Store;
  readonly liveness: LivenessSettings;
  readonly workersMax: number;
  readonly budgets: ItemBudgets;
  /** Where the run is paused; without them nowhere. */
  readonly runLimits?: RunLimits;
  readonly inboxMax: number;
  /** Limits of payloads and outputs; the configuration's defaults unless given. */
  readonly limits?: ItemLimits;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: EventEmitter;
  /** The events that operators read; without it they read none. */
  readonly eventFeed?: EventFeed;
  readonly log: Logger;
  /** How this process comes to lead. Undefined: it alone has the store, so it leads at once. */
  readonly elector?: LeaderElector;
  /** Ends the wait for the lease; `start` then throws the row `interrupted`. */
  readonly signal?: AbortSignal;
  /** Signs workers' certificates; undefined when this run's certificates come from elsewhere. */
  readonly sign: SignWorkerRequest | undefined;
  /** Workers that one enrolment bundle lets in; as in the configuration's defaults unless said. */
  readonly enrolmentQuota?: number;
  /** Whether this process renews the enrolment bundle of this id by itself. */
  readonly isOwnBundle?: (id: string) => boolean;
  /** Told of bearers whose certificates were revoked: to be kept out, and their sessions ended. First before it leads. Total. */
  readonly onRevoked?: (ids: readonly string[]) => void;
  /** How messages name this coordinator. */
  readonly advertisedAddress: string;
  /** Somebody else leads. Says so synchronously and ends the process; does not return. */
  readonly abortFenced: (fenced: Fenced) => void;
  /** The store cannot be trusted any more, or the program is wrong: the process has to end. */
  readonly onFatal: (error: unknown) => void;
  /**
   * Whether backlogs are stolen. Off only to see what it is worth.
   * @internal
   */
  readonly steals?: boolean;
  /**
   * Rows in one page of the scrub: few of them show what a large ledger would.
   * @internal
   */
  readonly scrubRows?: number;
  /**
   * Looks at the state that each turn has left; see `TurnLoopOptions`.
   * @internal
   */
  readonly inspect?: (state: CoordinatorState) => void;
}

export interface Fenced {
  readonly epoch: number;
  readonly seenEpoch: number | null;
  readonly reason: string;
  /** Batches and effects that were tried and held back after the leadership had ended. */
  readonly refusedWrites: number;
  readonly refusedReplies: number;
}

/** How long the lease is waited for, so that the last event can say who leads now. */
const LAST_LOOK_MS = 200;
/** A fenced leader is gone within 5 s of knowing it, whatever its own disk does. */
const ABORT_WITHIN_MS = 2_000;

export class Coordinator {
  readonly epoch: Epoch;
  readonly storeId: StoreId;
  readonly #options: CoordinatorOptions;
  readonly #elector: LeaderElector;
  readonly #leadership: Leadership;
  readonly #role: ActorSystem;
  readonly #stopping = new AbortController();
  #loop: TurnLoop | undefined;
  #loss: Loss | undefined;
  #isAborted = false;

  private constructor(
    options: CoordinatorOptions,
    won: { storeId: StoreId; elector: LeaderElector; leadership: Leadership; role: ActorSystem },
  ) {
    this.#options = options;
    this.#elector = won.elector;
    this.#leadership = won.leadership;
    this.#role = won.role;
    this.epoch = won.leadership.epoch;
    this.storeId = won.storeId;
  }

  /**
   * Leads when it resolves, which may be long after another leader has gone. Throws store_… rows when the store is not this
   * run's, is damaged or cannot be written.
   */
  static async start(options: CoordinatorOptions): Promise<Coordinator> {
    const { store, clock, random, log, onFatal } = options;
    const { storeId } = await claimStore(store, {
      runId: options.runId,
      segments: [workersSegment],
      clock,
      random,
    });
    const elector = options.elector ?? new StaticElector(new StorageLease(store, options.incarnation), clock);
    const { signal } = options;
    const losing = Promise.withResolvers<Loss>();
    const leadership = await elector.campaign({ onLost: losing.resolve, ...(signal && { signal }) });
    await checkLedgerCharts(store, leadership.epochRow);
    const { liveness, workersMax, budgets, runLimits: limits = {} } = options;
    const { epoch } = leadership;
    const nowMs = clock.monotonicMs();
    const state = await replay(store, {
      ...{ liveness, workersMax, budgets, limits, random, epoch, nowMs },
      steals: options.steals ?? true,
      scrubRows: options.scrubRows,
      enrolmentQuota: options.enrolmentQuota,
    });
    const leading = Promise.withResolvers<Coordinator>();
    const role = await ActorSystem.open({
      store: options.ownStore,
      charts: { "coordinator-role": charts["coordinator-role"] },
      clock,
      random,
      log,
      durability: "flush",
      onFatal,
      perform: Coordinator.#perform(leading.promise, () => {
        const coordinator = new Coordinator(options, { storeId, elector, leadership, role });
        coordinator.#lead(state);
        // It may have been lost while the ledger was read.
        void losing.promise.then((loss) => coordinator.#lost(loss));
        leading.resolve(coordinator);
      }),
    });
    await role.spawn(roleAddress(options), "coordinator-role", {});
    await role.send(roleAddress(options), { type: "lease.won", epoch: leadership.epoch } satisfies RoleEvent);
    return leading.promise;
  }

  /** The services of a leader. */
  readonly routes = (router: ConnectRouter): void => {
    const { workersMax, inboxMax, sign, advertisedAddress: address, log } = this.#options;
    const leader: Leader = {
      envelope: envelopeOf(this.epoch, this.storeId),
      workersMax,
      inboxMax,
      limits: this.#options.limits ?? LIMITS,
      address,
      push: (input) => this.#loop?.push(input) ?? false,
      stopping: this.#stopping.signal,
      onHigherEpoch: () => void this.#elector.isLeader({ doubted: true }),
    };
    router.service(HeartbeatService, heartbeatService(leader));
    router.service(RunService, runService(leader, this.#options.store, this.#options.eventFeed));
    router.service(WorkService, workService(leader, this.#options.clock));
    router.service(
      EnrolmentService,
      enrolmentService(leader, { sign, isOwnBundle: this.#options.isOwnBundle ?? (() => false), log }),
    );
  };

  /** Ends the streams of workers: they look for the next coordinator. Call it before the server closes. */
  endStreams(): void {
    this.#loop?.stopJudging();
    this.#stopping.abort();
  }

  /** Commits what has arrived and lets go of the lease. The stores stay open: they are the caller's. */
  async stop(): Promise<void> {
    this.endStreams();
    await this.#loop?.stop();
    // C5: who is fenced writes nothing more.
    if (this.#loss === undefined) await this.#elector.resign();
    await this.#role.send(roleAddress(this.#options), { type: "lease.resigned" } satisfies RoleEvent);
    await this.#role.close();
  }

  /**
   * Ends without another commit to the ledger: for one that must not go on, by damage or by a bug. Lets go of the lease if that can
   * still be written. The stores may be closed when it resolves. Never rejects; idempotent, and harmless after `stop`.
   */
  async halt(): Promise<void> {
    this.endStreams();
    await this.#loop?.halt();
    if (this.#loss === undefined) await this.#elector.resign().catch(() => undefined);
    await this.#role.close().catch(() => undefined);
  }

  #lead(state: CoordinatorState): void {
    const { store, clock, inboxMax, events, log, onFatal, inspect } = this.#options;
    const feed = (input: Input): void => this.#loop?.feed(input);
    const { onRevoked } = this.#options;
    onRevoked?.([...state.enrolment.revoked.keys()]);
    const ports: EffectPorts = { store, events, log, onFatal, onRevoked, feed, inTurn: turnstile() };
    this.#loop = new TurnLoop({
      state,
      store,
      clock,
      inboxMax,
      epochRow: this.#leadership.epochRow,
      perform: (effect) => performEffect(effect, ports),
      ...(inspect && { inspect }),
      mayAct: () => this.#elector.mayAct(),
      leads: () => this.#leads(),
      onBroken: (why) => this.#broken(why),
    });
  }

  /** Every claim stamps the epoch row, so one that is still as this leader wrote it was not followed when it was read. */
  async #leads(): Promise<boolean> {
    const { key, value } = this.#leadership.epochRow;
    const found = await this.#options.store.get(key).catch(() => undefined);
    return found !== undefined && value !== null && Buffer.compare(found, value) === 0;
  }

  #broken(why: Setback): void {
    switch (why.kind) {
      case "unknown":
        this.endStreams();
        return this.#options.onFatal(why.cause);
      case "conflict":
        return this.#lost({ reason: `another leader wrote ${why.key}`, seenEpoch: null });
      case "expired":
        return this.#lost({ reason: "it acted after its leadership had ended", seenEpoch: null });
    }
  }

  /** The first reason counts. */
  #lost(loss: Loss): void {
    if (this.#loss !== undefined) return;
    this.#loss = loss;
    this.endStreams();
    this.#options.clock.after(ABORT_WITHIN_MS, () => this.#abort(loss), { background: true });
    void this.#fence(loss);
  }

  /** Never rejects: a role that cannot be written down is fenced all the same. */
  async #fence({ reason, seenEpoch }: Loss): Promise<void> {
    const seen = seenEpoch ?? (await this.#higherEpoch());
    const lost: RoleEvent = { type: "lease.lost", reason, seenEpoch: seen };
    await this.#role
      .send(roleAddress(this.#options), lost)
      .catch(() => this.#abort({ reason, seenEpoch: seen }));
  }

  /** The epoch of a later leader, if it can be read at once. */
  async #higherEpoch(): Promise<Epoch | null> {
    const { store, clock, incarnation } = this.#options;
    const patience = new AbortController();
    const rows = await Promise.race([
      new StorageLease(store, incarnation).read().catch(() => undefined),
      sleep(clock, LAST_LOOK_MS, patience.signal),
    ]);
    patience.abort();
    const found = rows?.lease?.epoch;
    return found !== undefined && found > this.epoch ? found : null;
  }

  #abort({ reason, seenEpoch }: { readonly reason: string; readonly seenEpoch: number | null }): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    const { writes, replies } = this.#loop?.refused ?? { writes: 0, replies: 0 };
    const { epoch } = this;
    this.#options.abortFenced({ epoch, seenEpoch, reason, refusedWrites: writes, refusedReplies: replies });
  }

  /** The role's effects. `startLeading` makes the coordinator that the others are for. */
  static #perform(leading: Promise<Coordinator>, startLeading: () => void): Perform {
    return async ({ type, params }) => {
      switch (type) {
        case "startLeading":
          return startLeading();
        case "stopLeading":
          return;
        case "abortFenced":
          return (await leading).#abort(params as Pick<Fenced, "reason" | "seenEpoch">);
        default:
          assert(false, `nothing carries out ${type} of the coordinator's role`);
      }
    };
  }
}

function roleAddress({ incarnation }: CoordinatorOptions): string {
  return `coordinator/${incarnation}`;
}
