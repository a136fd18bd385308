// The actor system for lifecycles that a process has few of: roles, its own life as a worker, drains. An event to an
// address is: load, compute, commit the snapshot, then act (C2).
//
// An address handles one event at a time, in order of arrival. Effects are done in order, each tried again for as long as the
// process lives; those of a process that has died are not done by the next one, which finds the snapshot. A chart that throws is
// reported and goes on from its last snapshot; a store that cannot say what it wrote is the end of the process.
import type { EventObject } from "xstate";
import type { Chart } from "../../machines/migration.ts";
import { assert } from "../base/assert.ts";
import { backoffMs } from "../base/random.ts";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { failure } from "../base/errors.ts";
import type { Random, BackoffRange } from "../base/random.ts";
import type { Logger } from "../observe/log.ts";
import { decodeRecord, encodeRecord, okOrFailure } from "../storage/codec.ts";
import { actorKey, ACTORS_PREFIX } from "../storage/keys.ts";
import type { Durability, Store } from "../storage/store.ts";
import { pagesUnder } from "../storage/records.ts";
import type { ActorRecord } from "./snapshot.ts";
import { actorRecord, stamp, upgrade } from "./snapshot.ts";
import { stateName } from "./chart-structure.ts";
import type { Planned, PlannedAction } from "./transition.ts";
import { TransitionPlanner } from "./transition.ts";

/** Carries out one effect. Called again when it has failed. */
export type Perform = (effect: PlannedAction & { readonly address: string }) => Promise<void> | void;

/** A step of a chart when it is committed, for those who look on. */
export interface ChartStep {
  readonly chart: string;
  readonly address: string;
  /** `xstate.init` when the actor begins, or is restored; `xstate.stop` when it has ended. */
  readonly event: string;
  /** Empty when it begins. */
  readonly from: string;
  /** Empty when it has ended. */
  readonly to: string;
  readonly context: unknown;
}

export interface ActorSystemOptions {
  readonly store: Store;
  readonly charts: Readonly<Record<string, Chart>>;
  /** The beginning of the addresses that are this system's; unless said, all that the store has. */
  readonly under?: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly perform: Perform;
  /** Told of each step that is committed. Total. */
  readonly onStep?: ((step: ChartStep) => void) | undefined;
  /** How safe a committed step is; `sync` where another machine relies on it. */
  readonly durability: Durability;
  /** The store cannot be trusted any more: the process has to end and start again from what is on disk. */
  readonly onFatal: (error: unknown) => void;
}

export type Delivery =
  | { readonly kind: "moved"; readonly state: string }
  /** The chart has nothing to do with this event in this state. */
  | { readonly kind: "ignored"; readonly state: string }
  /** A guard or an assign threw; it was reported and nothing has changed. */
  | { readonly kind: "faulted" };

interface Actor {
  readonly address: string;
  readonly planner: TransitionPlanner;
  record: ActorRecord;
  bytes: Uint8Array | null;
  waiting: number;
  /** The tail of the mailbox; never rejects. */
  mailbox: Promise<void>;
  /** The tail of the effects; never rejects. */
  acting: Promise<void>;
  /** An effect failed while the system was ending: neither it nor those behind it are done. */
  isHeld: boolean;
}

const MAILBOX_MAX = 1024;
const RESTORE_PAGE = 256;
const EFFECT_BACKOFF: BackoffRange = { baseMs: 100, ceilingMs: 10_000 };

export class ActorSystem {
  readonly #options: ActorSystemOptions;
  readonly #actors = new Map<string, Actor>();
  /** By chart id. */
  readonly #planners = new Map<string, TransitionPlanner>();
  readonly #closing = new AbortController();
  /** Set once. After it nothing is computed, committed or done: what is on disk is unknown. */
  #fatal: { readonly error: unknown } | undefined;

  private constructor(options: ActorSystemOptions) {
    this.#options = options;
  }

  /** Restores its actors from the store. Fails with `store_newer` or `store_corrupt`, naming the key. */
  static async open(options: ActorSystemOptions): Promise<ActorSystem> {
    const system = new ActorSystem(options);
    for await (const page of pagesUnder(
      options.store,
      `${ACTORS_PREFIX}${options.under ?? ""}`,
      RESTORE_PAGE,
    ))
      for (const { key, value } of page) system.#restore(key, value);
    return system;
  }

  /**
   * Makes an actor in its initial state. An address that exists is left as it is: false. Either way the actor is in the
   * store when this resolves. Throws what the chart throws; rejects like `send`.
   */
  async spawn(address: string, chartId: string, input: unknown): Promise<boolean> {
    const known = this.#actors.get(address);
    if (known !== undefined) {
      await this.#inTurn(known, () => Promise.resolve());
      return false;
    }
    this.#assertOpen();
    const chart = this.#options.charts[chartId];
    assert(chart !== undefined, `no chart ${chartId}`);
    const planner = this.#planner(chartId, chart);
    const { snapshot, actions } = planner.begin(input);
    const actor = this.#adopt(address, planner, { ...stamp(chart.machine), ...snapshot }, null);
    await this.#inTurn(actor, () => this.#commit(actor, actor.record, actions));
    this.#say(actor, "xstate.init", "");
    return true;
  }

  /**
   * Delivers after what was sent before, and resolves when the step is committed. Rejects when the store failed (after
   * `onFatal`); a full mailbox, a closed system and an address that does not exist are bugs of the caller.
   */
  async send<Event extends EventObject>(address: string, event: Event): Promise<Delivery> {
    this.#assertOpen();
    const actor = this.#actor(address);
    assert(actor.waiting < MAILBOX_MAX, `C8: the mailbox of ${actor.address} is full`);
    actor.waiting++;
    return this.#inTurn(actor, () => {
      actor.waiting--;
      return this.#deliver(actor, event);
    });
  }

  /** The committed state; undefined for an address that does not exist. */
  stateOf(address: string): string | undefined {
    const actor = this.#actors.get(address);
    return actor && stateName(actor.record.value);
  }

  contextOf(address: string): unknown {
    return this.#actors.get(address)?.record.context;
  }

  /** Ends after the events and effects under way; an effect that fails now is not tried again. Idempotent. */
  async close(): Promise<void> {
    this.#closing.abort();
    for (const actor of this.#actors.values()) {
      await actor.mailbox;
      await actor.acting;
    }
  }

  #actor(address: string): Actor {
    const actor = this.#actors.get(address);
    assert(actor !== undefined, `no actor at ${address}`);
    return actor;
  }

  #planner(id: string, { machine }: Chart): TransitionPlanner {
    const planner = this.#planners.get(id) ?? new TransitionPlanner(machine);
    this.#planners.set(id, planner);
    return planner;
  }

  #adopt(address: string, planner: TransitionPlanner, record: ActorRecord, bytes: Uint8Array | null): Actor {
    const idle = Promise.resolve();
    const actor: Actor = {
      address,
      planner,
      record,
      bytes,
      waiting: 0,
      mailbox: idle,
      acting: idle,
      isHeld: false,
    };
    this.#actors.set(address, actor);
    return actor;
  }

  #restore(key: string, value: Uint8Array): void {
    const where = { path: this.#options.store.location, key };
    const stored = okOrFailure(where.path, decodeRecord(actorRecord, key, value));
    const chart = this.#options.charts[stored.chart];
    if (chart === undefined)
      throw failure("store_newer", { ...where, found: stored.chart, known: "no such chart" });
    const record = upgrade(stored, chart, where);
    const address = key.slice(ACTORS_PREFIX.length);
    this.#say(this.#adopt(address, this.#planner(stored.chart, chart), record, value), "xstate.init", "");
  }

  #assertOpen(): void {
    assert(!this.#closing.signal.aborted, "the actor system is closed");
  }

  /** Runs `work` after all that is in the mailbox. A failure in it is the end of the process. */
  #inTurn<Result>(actor: Actor, work: () => Promise<Result>): Promise<Result> {
    const result = actor.mailbox.then(() => {
      if (this.#fatal !== undefined) throw this.#fatal.error;
      return work();
    });
    actor.mailbox = result.then(
      () => undefined,
      (error: unknown) => this.#fail(error),
    );
    return result;
  }

  #fail(error: unknown): void {
    if (this.#fatal !== undefined) return;
    this.#fatal = { error };
    this.#options.onFatal(error);
  }

  async #deliver(actor: Actor, event: EventObject): Promise<Delivery> {
    const { record, address } = actor;
    const { log } = this.#options;
    const from = stateName(record.value);
    let planned: Planned;
    try {
      planned = actor.planner.plan(record, event);
    } catch (err) {
      log.error("actor failed; it goes on from its last snapshot", { address, event: event.type, err });
      return { kind: "faulted" };
    }
    if (planned.kind === "ignored") {
      log.debug("event ignored", { address, event: event.type, state: from });
      return { kind: "ignored", state: from };
    }
    await this.#commit(actor, { ...record, ...planned.snapshot }, planned.actions);
    const state = stateName(actor.record.value);
    log.info("transition", { address, event: event.type, from, to: state });
    this.#say(actor, event.type, from);
    return { kind: "moved", state };
  }

  #say({ address, record: { chart, value, context } }: Actor, event: string, from: string): void {
    this.#options.onStep?.({ chart, address, event, from, to: stateName(value), context });
  }

  async #commit(actor: Actor, next: ActorRecord, effects: readonly PlannedAction[]): Promise<void> {
    const key = actorKey(actor.address);
    const value = encodeRecord(actorRecord, key, next);
    const outcome = await this.#options.store.commit({
      puts: [{ key, value }],
      deletes: [],
      expect: [{ key, value: actor.bytes }],
      durability: this.#options.durability,
    });
    if (outcome.kind === "unknown") throw outcome.cause;
    assert(outcome.kind === "committed", `C3: somebody else wrote ${key}`);
    [actor.record, actor.bytes] = [next, value];
    this.#act(actor, effects);
  }

  /** Does the effects in order, behind those of earlier steps. */
  #act(actor: Actor, effects: readonly PlannedAction[]): void {
    if (effects.length === 0) return;
    actor.acting = actor.acting.then(async () => {
      for (const effect of effects) actor.isHeld ||= !(await this.#perform(actor.address, effect));
    });
  }

  /** True when the effect was done; false only when it failed, or was not tried, and the system is ending. */
  async #perform(address: string, effect: PlannedAction): Promise<boolean> {
    const { clock, random, log, perform } = this.#options;
    for (let attempt = 1; ; attempt++) {
      if (this.#fatal !== undefined) return false;
      try {
        await perform({ ...effect, address });
        return true;
      } catch (err) {
        log.error("effect failed; it is tried again", { address, effect: effect.type, attempt, err });
        if (this.#closing.signal.aborted) return false;
        await sleep(clock, backoffMs(EFFECT_BACKOFF, attempt, random), this.#closing.signal);
      }
    }
  }
}
