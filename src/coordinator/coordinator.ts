// A coordinator from the first claim to the last commit: wins the lease, rebuilds its state, leads until it is stopped or finds
// that it does not lead any more. The chart of its role says what it may do at each moment.
//
// The coordinator's files above all rooms: `before-claim` looks for reasons not to lead, by `ledger-charts` and `rollback` among others; `replay`
// makes the state of a new leader, and `rehearsal` tries that while another leads; `turn-loop` takes inputs and commits, `reactor` is one turn,
// `perform-effect` carries out. This file puts them together, with the parts that `coordinator-options` names.
import type { ConnectRouter } from "@connectrpc/connect";
import type { Candidacy } from "../../machines/coordinator-role.ts";
import { AwaitedValue } from "../base/awaited-value.ts";
import { sleep } from "../base/clock.ts";
import type { Epoch, StoreId } from "../base/ids.ts";
import { turnstile } from "../base/turnstile.ts";
import { LIMITS } from "../config/limits.ts";
import { claimStore } from "../storage/store-identity.ts";
import type { Exposition } from "../observe/metrics/exposition.ts";
import type { CoordinatorOptions } from "./coordinator-options.ts";
import type { LeaderTerm } from "./lead/attendance.ts";
import { StaticElector } from "./lead/elector.ts";
import type { Chance, LeaderElector, Loss } from "./lead/elector.ts";
import { checkBeforeClaim } from "./before-claim.ts";
import { adoptLedgerCharts, checkLedgerCharts } from "./ledger-charts.ts";
import { replay } from "./replay.ts";
import { haltRole, RollbackWatch } from "./rollback.ts";
import { FENCE_PATIENCE } from "./lead/fence-patience.ts";
import type { Leadership, LeaseRow, LeaseRows } from "./lead/lease.ts";
import { StorageLease } from "./lead/lease.ts";
import { Role } from "./lead/role.ts";
import type { StoreRollback } from "./lead/store-memory.ts";
import type { Input } from "./turn/input.ts";
import { performEffect } from "./perform-effect.ts";
import type { EffectPorts } from "./perform-effect.ts";
import { FollowedKeys } from "./rpc/followed-keys.ts";
import type { Leader } from "./rpc/leader.ts";
import { leaderRoutes } from "./rpc/leading.ts";
import { envelopeOf } from "./rpc/messages.ts";
import { keyHealthOf } from "./run/key-operator.ts";
import type { KeyHealth } from "./run/key-operator.ts";
import { addLeaderMetrics } from "./run/leader-metrics.ts";
import type { RunReach } from "./turn/run-terms.ts";
import type { CoordinatorState } from "./turn/state.ts";
import { TurnLoop } from "./turn-loop.ts";
import type { Setback } from "./turn-loop.ts";
import { numbersOf } from "./workers/worker-numbers.ts";
import type { WorkerNumbers } from "./workers/worker-numbers.ts";
import { workersSegment } from "./workers/worker-record.ts";

/** How this coordinator came to lead. */
export interface Takeover {
  /** For how long the lease of the leader before had not been renewed; null when it was free. */
  readonly quietMs: number | null;
  /** How long the ledger was read. */
  readonly replayMs: number;
}

/** For a rehearsal, whose state nobody uses. */
const ANY_EPOCH = 0 as Epoch;

const alwaysElectable = (): Candidacy => ({ weight: 1, isItsTurn: true, hasQuorum: true });

export class Coordinator {
  readonly epoch: Epoch;
  readonly storeId: StoreId;
  readonly takeover: Takeover;
  readonly #options: CoordinatorOptions;
  readonly #elector: LeaderElector;
  readonly #leadership: Leadership;
  readonly #role: Role;
  readonly #state: CoordinatorState;
  readonly #stopping = new AbortController();
  /** How far the run has got. */
  readonly #reach = new AwaitedValue<RunReach>();
  readonly #followedKeys = new FollowedKeys();
  readonly #wonAtMs: number;
  readonly #wonAtWallMs: number;
  #loop: TurnLoop | undefined;
  #loss: Loss | undefined;
  #isAborted = false;

  private constructor(
    options: CoordinatorOptions,
    won: {
      readonly storeId: StoreId;
      readonly elector: LeaderElector;
      readonly leadership: Leadership;
      readonly role: Role;
      readonly takeover: Takeover;
      readonly state: CoordinatorState;
    },
  ) {
    this.#options = options;
    this.#elector = won.elector;
    this.#leadership = won.leadership;
    this.#role = won.role;
    this.#state = won.state;
    [this.#wonAtMs, this.#wonAtWallMs] = [options.clock.monotonicMs(), options.clock.wallMs()];
    this.takeover = won.takeover;
    this.epoch = won.leadership.epoch;
    this.storeId = won.storeId;
  }

  /**
   * Leads when it resolves, which may be long after another leader has gone. Throws store_… rows when the store is not this
   * run's, is damaged, went back or cannot be written: before it claims the store, where that can be known, and else after it has let go of it.
   */
  static async start(options: CoordinatorOptions): Promise<Coordinator> {
    const { store, clock, random } = options;
    const { storeId } = await claimStore(store, {
      runId: options.runId,
      segments: [workersSegment],
      clock,
      random,
    });
    // One that can never lead does not wait for its turn.
    await checkLedgerCharts(store);
    const role = options.role ?? (await Role.take(options));
    const elector = options.elector ?? new StaticElector(new StorageLease(store, options.incarnation), clock);
    const { signal, onLook, memory, events } = options;
    const { acceptsRollback = false, explainRollback } = options;
    const losing = Promise.withResolvers<Loss>();
    const { candidacy = alwaysElectable } = options;
    let taken: Chance | undefined;
    const { liveness, workersMax, budgets, runLimits: limits = {} } = options;
    const read = (epoch: Epoch): Promise<CoordinatorState> =>
      replay(store, {
        ...{ liveness, workersMax, budgets, limits, random, epoch, nowMs: clock.monotonicMs() },
        steals: options.steals ?? true,
        scrubRows: options.scrubRows,
        enrolmentQuota: options.enrolmentQuota,
        keys: options.keys,
        openFleets: (from) => options.fleets?.open(from, epoch) ?? Promise.resolve(undefined),
      });
    const leadership = await elector.campaign({
      onLost: losing.resolve,
      mayClaim: (chance) => role.claim((taken = chance).opening, candidacy(chance)),
      beforeTake: (rows) => {
        const rehearse = (): Promise<unknown> => read(ANY_EPOCH);
        const onRolledBack = (rollback: StoreRollback): Promise<void> => haltRole(role, rollback);
        const look = (): Promise<LeaseRows> => new StorageLease(store, options.incarnation).read();
        const how = { store, memory, acceptsRollback, explainRollback, events, look, rehearse, onRolledBack };
        return checkBeforeClaim(how, rows);
      },
      onBeaten: () => role.beaten(),
      ...(onLook && { onLook }),
      ...(signal && { signal }),
    });
    try {
      const { epoch, branchedFrom } = leadership;
      memory?.note({ epoch });
      await memory?.keep();
      if (branchedFrom !== undefined)
        events.emit("store_generation_changed", { epoch, from: branchedFrom, to: store.generation });
      await adoptLedgerCharts(store, leadership.epochRow);
      const nowMs = clock.monotonicMs();
      const state = await read(epoch);
      const takeover: Takeover = {
        quietMs: taken?.opening === "quiet" ? Math.round(taken.quietForMs) : null,
        replayMs: Math.round(clock.monotonicMs() - nowMs),
      };
      const coordinator = new Coordinator(options, { storeId, elector, leadership, role, takeover, state });
      await role.lead(epoch, {
        startLeading: () => coordinator.#lead(),
        resignLease: () => elector.resign(),
        abortFenced: (lost) => coordinator.#abort(lost),
      });
      // It may have been lost while the ledger was read.
      void losing.promise.then((loss) => coordinator.#lost(loss));
      return coordinator;
    } catch (error) {
      // Another one may be able to lead it, and does not have to wait.
      await elector.resign().catch(() => undefined);
      throw error;
    }
  }

  /** The services of a leader. */
  readonly routes = (router: ConnectRouter): void => {
    const { workersMax, inboxMax, sign, advertisedAddress: address, log } = this.#options;
    const { store, events, incarnation, onFatal } = this.#options;
    const watch = new RollbackWatch({
      ...{ store, events, log, memory: this.#options.memory, role: this.#role, onRolledBack: onFatal },
      lease: new StorageLease(store, incarnation),
      isLeader: () => this.#elector.isLeader({ doubted: true }),
    });
    const leader: Leader = {
      envelope: envelopeOf(this.epoch, this.storeId),
      workersMax,
      inboxMax,
      limits: this.#options.limits ?? LIMITS,
      address,
      former: this.#role.former,
      push: (input) => this.#loop?.push(input) ?? false,
      reach: this.#reach,
      followedKeys: this.#followedKeys,
      stopping: this.#stopping.signal,
      onHigherEpoch: (epoch) => watch.heard(epoch),
    };
    const { clock, eventFeed: feed, sight, fleets, isOwnBundle = () => false } = this.#options;
    leaderRoutes(router, leader, store, { clock, feed, sight, fleets, sign, isOwnBundle, log });
  };

  /** This leadership as its part among the others has it. */
  get term(): Omit<LeaderTerm, "giveUp"> {
    const { clock } = this.#options;
    return {
      epoch: this.epoch,
      epochRow: this.#leadership.epochRow,
      electedAtWallMs: this.#wonAtWallMs,
      mayAct: () => this.#loss === undefined && this.#elector.mayAct(),
      // With a full inbox the next one will do.
      publish: () => void this.#loop?.push({ kind: "publish" }),
      published: () => this.#state.published,
      unheardForMs: () => clock.monotonicMs() - lastHeardMs(this.#state, this.#wonAtMs),
      holdJudgement: (isHeld) => this.#loop?.holdJudgement(isHeld),
    };
  }

  /** Whether it leads, by the store's word too, which is up to a second old. */
  async isLeading(): Promise<boolean> {
    return this.#loss === undefined && (await this.#elector.isLeader());
  }

  /** The registry in numbers. */
  get workerNumbers(): WorkerNumbers {
    return numbersOf(this.#state.workers.values());
  }

  /** Undefined while the run has no keys. */
  get keyHealth(): KeyHealth | undefined {
    return keyHealthOf(this.#state);
  }

  /** Adds its counts and its state, for monitoring. */
  addMetrics(exposition: Exposition): void {
    const nowMs = this.#options.clock.monotonicMs();
    addLeaderMetrics(this.#state, { waitingInputs: this.#loop?.waiting ?? 0, nowMs }, exposition);
  }

  /** How long ago it has published a snapshot; undefined before its first. */
  get snapshotAgeMs(): number | undefined {
    const { publishedAtMs } = this.#state.ledger.meter;
    return publishedAtMs === undefined ? undefined : this.#options.clock.monotonicMs() - publishedAtMs;
  }

  /** Ends the streams of workers: they look for the next coordinator. Call it before the server closes. */
  endStreams(): void {
    this.#options.sight?.end();
    this.#loop?.stopJudging();
    this.#stopping.abort();
  }

  /** Commits what has arrived and lets go of the lease. The stores stay open: they are the caller's. */
  stop(): Promise<void> {
    return this.#end(() => this.#role.resign());
  }

  /** The same, for a process that goes on and follows. */
  makeRoom(): Promise<void> {
    return this.#end(() => this.#role.makeRoom());
  }

  async #end(letGo: () => Promise<void>): Promise<void> {
    this.endStreams();
    await this.#loop?.stop();
    // C5: who is fenced writes nothing more.
    if (this.#loss === undefined) await letGo();
    await this.#options.memory?.keep();
    if (this.#options.role === undefined) await this.#role.close();
  }

  /**
   * Ends without another commit to the ledger: for one that must not go on, by damage or by a bug. Lets go of the lease if that can
   * still be written, though its own disk may not take that. The stores may be closed when it resolves. Never rejects; idempotent,
   * and harmless after `stop`.
   */
  async halt(): Promise<void> {
    this.endStreams();
    await this.#loop?.halt();
    if (this.#loss === undefined) await this.#letGo().catch(() => undefined);
    await this.#options.memory?.keep();
    if (this.#options.role === undefined) await this.#role.close().catch(() => undefined);
  }

  /** A halted one has nothing to resign by its chart, and holds the lease all the same. */
  async #letGo(): Promise<void> {
    if (this.#role.name === "Halted") return this.#elector.resign();
    await this.#role.resign().catch(() => this.#elector.resign());
  }

  #lead(): void {
    const state = this.#state;
    const { store, clock, inboxMax, events, log, onFatal, inspect } = this.#options;
    const feed = (input: Input): void => this.#loop?.feed(input);
    const { onRevoked, sight } = this.#options;
    onRevoked?.([...state.enrolment.revoked.keys()]);
    const [reach, followedKeys] = [this.#reach, this.#followedKeys];
    const ports: EffectPorts = {
      fleets: this.#options.fleets,
      ...{ store, events, log, reach, followedKeys, sight, onFatal, onRevoked, feed, inTurn: turnstile() },
      isLeader: () => this.#elector.isLeader().catch(() => false),
    };
    this.#loop = new TurnLoop({
      state,
      store,
      clock,
      inboxMax,
      epochRow: this.#leadership.epochRow,
      perform: (effect) => performEffect(effect, ports),
      ...(inspect && { inspect }),
      mayAct: () => this.#elector.mayAct(),
      onSynced: (extent) => this.#options.memory?.note(extent),
      leads: () => this.#leads(),
      onBroken: (why) => this.#broken(why),
    });
    this.#options.fleets?.follow?.((changed) => feed({ kind: "fleetsChanged", changed }));
    sight?.begin({
      state,
      // With a full inbox the next look will do.
      sample: (items, answer) => this.#loop?.push({ kind: "sampleItems", items, answer }) ?? false,
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
    const { clock, fencePatience = FENCE_PATIENCE } = this.#options;
    clock.after(fencePatience.abortMs, () => this.#abort(loss), { background: true });
    void this.#fence(loss);
  }

  /** Never rejects: a role that cannot be written down is fenced all the same. */
  async #fence({ reason, seenEpoch }: Loss): Promise<void> {
    const later = await this.#laterLease();
    const lost = { reason, seenEpoch: later?.epoch ?? seenEpoch, by: later?.holder ?? null };
    await this.#role.lose(lost).catch(() => this.#abort(lost));
  }

  /** The row of a later leader, if it can be read at once. */
  async #laterLease(): Promise<LeaseRow | undefined> {
    const { store, clock, incarnation, fencePatience = FENCE_PATIENCE } = this.#options;
    const patience = new AbortController();
    const rows = await Promise.race([
      new StorageLease(store, incarnation).read().catch(() => undefined),
      sleep(clock, fencePatience.lookMs, patience.signal),
    ]);
    patience.abort();
    const found = rows?.lease;
    return found !== undefined && found.epoch > this.epoch ? found : undefined;
  }

  #abort({ reason, seenEpoch }: { readonly reason: string; readonly seenEpoch: number | null }): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    const { writes, replies } = this.#loop?.refused ?? { writes: 0, replies: 0 };
    const { epoch } = this;
    this.#options.abortFenced({ epoch, seenEpoch, reason, refusedWrites: writes, refusedReplies: replies });
  }
}

/** When a worker was last heard; `sinceMs` where none was since then. */
function lastHeardMs({ workers }: CoordinatorState, sinceMs: number): number {
  let lastMs = sinceMs;
  for (const { lastBeatMs } of workers.values()) lastMs = Math.max(lastMs, lastBeatMs ?? -Infinity);
  return lastMs;
}
