// The room of items at a worker: backlog.ts (not started) and backlog-pace.ts (how many of them), executor.ts and execution.ts
// (running, one attempt each), log-tail.ts (the end of its log), measures.ts (numbers in its output), outbox.ts and outbox-record.ts
// (results until they are acknowledged), checkpoint-uplink.ts (checkpoints that leave before the end), keyed-wire.ts (keys on the wire),
// worker-meter.ts (counts for monitoring).
//
// Here the worker executes what it was given: as many at once as there are slots, the best of the backlog next, none longer than it
// may. Says how each one ended; whether that is heard of is not its concern.
//
// Keeps true: an attempt is unstarted or running, never both; each start is asked for (C6, self-fence) at the moment of
// the start, and again when it begins, which may be long after; an attempt that was dropped leaves no result, every other one that
// started leaves exactly one; a slot is taken for as long as a backend executes in it, whatever has been said of that attempt.
import { assert } from "../../base/assert.ts";
import type { Clock, Timer } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { describeError } from "../../base/errors.ts";
import type { Logger } from "../../observe/log.ts";
import type { ChartStep } from "../../runtime/driver.ts";
import type { ItemAttempt, KeyOfItem, Outcome } from "../backends/backend.ts";
import { isWork } from "../backends/key-asks.ts";
import type { Plugins } from "../backends/plugins.ts";
import type { TakenPlugin } from "../backends/versions.ts";
import { Backlog } from "./backlog.ts";
import type { Assigned } from "./backlog.ts";
import type { BacklogPace } from "./backlog-pace.ts";
import { Execution } from "./execution.ts";
import type { Finished, Saved } from "./execution.ts";

export interface ExecutorOptions {
  readonly plugins: Plugins;
  readonly slots: number;
  /** How many are to wait beside those that run. */
  readonly pace: BacklogPace;
  /** How many can wait at all: more than are wanted, because what was asked for may come late. */
  readonly capacity: number;
  readonly maxOutputBytes: number;
  readonly maxCheckpointBytes: number;
  readonly maxStateBytes: number;
  /** For every attempt: the run, the worker. */
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Asked before each start. */
  readonly mayStart: () => boolean;
  /** Asked when an attempt that was started begins; it may, unless said. One that may not is unstarted again. */
  readonly mayBegin?: () => boolean;
  readonly onFinished: (finished: Finished) => void;
  /** Told of the steps of executions. */
  readonly onStep?: ((step: ChartStep) => void) | undefined;
  /** A running attempt has another checkpoint than before. */
  readonly onCheckpoint?: (saved: Saved) => void;
  /** This worker cannot execute these, or cannot say when: others may. */
  readonly onHandedBack: (unstarted: readonly Assigned[]) => void;
  /** These would wait for too long here, and so would what was asked for and has not come. */
  readonly onSurplus: (unstarted: readonly Assigned[]) => void;
  /** There is room for one more than before. */
  readonly onRoom: () => void;
}

/**
 * How long a backend may take to end an attempt that is over time or not wanted. Longer than what backends give a child
 * between SIGTERM and SIGKILL.
 */
const END_GRACE_MS = 10_000;

export class Executor {
  readonly #options: ExecutorOptions;
  readonly #backlog: Backlog;
  readonly #running = new Map<string, Execution>();
  /** The backend has not ended them though it was told to; what there is to say of them has been said. */
  readonly #lingering = new Set<Execution>();
  /** Plugins and versions that items have named and that are not here, in words. */
  readonly #missing = new Set<string>();
  /** The attempt in each slot: the lowest that is free is the next. */
  readonly #slots: (Execution | undefined)[];
  /** Armed while more than one waits. */
  #nextLook: Timer | undefined;
  /** It starts nothing any more, for good. */
  #isClosed = false;
  #whenIdle: PromiseWithResolvers<void> | undefined;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#slots = Array.from({ length: options.slots });
    this.#backlog = new Backlog(options.capacity);
    options.plugins.whenRoom(() => this.pump());
  }

  /** How many more attempts may be given; none while it drains, or while nothing could start. */
  get room(): number {
    const { slots, pace } = this.#options;
    return this.#isClosed || this.#isStuck
      ? 0
      : Math.max(0, slots + pace.wanted - this.#backlog.size - this.#taken);
  }

  /** Less room than this is asked for only when nothing waits: half of the backlog is enough until the rest has come. */
  get worthwhileRoom(): number {
    return Math.max(1, Math.floor(this.#options.pace.wanted / 2));
  }

  /** Whether nothing waits: a coordinator that has work may give it at once. */
  get isHungry(): boolean {
    return this.#backlog.size === 0;
  }

  /** The share of the slots that execute, 0 to 1. */
  get load(): number {
    return this.#taken / this.#options.slots;
  }

  /** Slots in which something executes, and how many items wait for one. */
  get counts(): { readonly executing: number; readonly waiting: number } {
    return { executing: this.#taken, waiting: this.#backlog.size };
  }

  get unstarted(): Iterable<Assigned> {
    return this.#backlog;
  }

  /** The checkpoints of running attempts. */
  get saved(): readonly Saved[] {
    return [...this.#running.values()].filter(({ isDropped }) => !isDropped);
  }

  /** Attempts that are abandoned belong to it until they have ended. */
  get running(): readonly Assigned[] {
    return [...this.#running.values()].filter(({ isDropped }) => !isDropped).map((one) => one.assigned);
  }

  isRunning(key: string): boolean {
    return this.#running.has(key);
  }

  /** False when it drains or is full: the caller has to hand it back. An attempt that is here already stays as it is. */
  take(assigned: Assigned): boolean {
    if (this.#isClosed) return false;
    const { key } = assigned;
    if (this.#backlog.has(key) || this.#running.has(key)) return true;
    if (this.#backlog.size >= this.#options.capacity) return false;
    this.#backlog.add(assigned);
    this.#watch();
    return true;
  }

  /** Starts what can be started now. To be called whenever the answer of `mayStart` may have changed. */
  pump(): void {
    const { slots, mayStart, plugins } = this.#options;
    if (this.#isStuck) return this.#handBackAll();
    while (this.#taken < slots) {
      const first = this.#backlog.peek();
      if (first === undefined || !this.#mayRunBeside(first) || !mayStart()) return;
      // A lingering attempt may linger for good; another worker has nothing beside it.
      const plugin = first.alone && this.#taken > 0 ? undefined : plugins.take(first.plugin, first.version);
      // Others end first, and all that stand behind it wait with it; `whenRoom` tells that another version is closed.
      if (plugin === "closing" || (plugin === "held" && this.#running.size > 0)) return;
      this.#backlog.next();
      if (plugin === undefined || plugin === "held") this.#handBack(first);
      else this.#start(first, plugin);
    }
  }

  /** The attempt that is to be handed back, which then never starts; undefined when it has started, or is not here. */
  recall(key: string): Assigned | undefined {
    return this.#backlog.remove(key);
  }

  /** Nobody wants it any more: it is forgotten or killed, and leaves no result. Unknown ones are ignored. */
  drop(key: string): void {
    this.#backlog.remove(key);
    const execution = this.#running.get(key);
    if (execution?.drop() === true) this.#awaitEnd(execution);
  }

  /**
   * The coordinator may give away what runs: it is killed, and each attempt leaves a result, `fenced` unless it succeeds at
   * this moment. Unstarted attempts stay. Idempotent.
   */
  fence(): void {
    for (const execution of this.#running.values()) if (execution.fence()) this.#awaitEnd(execution);
  }

  /** Starts nothing any more, for good, and returns what has not started, to be handed back. Idempotent. */
  drain(): Assigned[] {
    this.#isClosed = true;
    this.#nextLook?.cancel();
    const unstarted = [...this.#backlog];
    for (const { key } of unstarted) this.#backlog.remove(key);
    return unstarted;
  }

  /** Resolves when nothing runs that has not been told of. For one that drains. */
  whenIdle(): Promise<void> {
    assert(this.#isClosed, "only what starts nothing more becomes idle for good");
    this.#whenIdle ??= Promise.withResolvers();
    if (this.#running.size === 0) this.#whenIdle.resolve();
    return this.#whenIdle.promise;
  }

  /**
   * Ends what runs: each attempt leaves a result, `preempted` with its last checkpoint unless it succeeds at this moment.
   * A backend that has not ended it within `graceMs` is not waited for.
   */
  async abandon(graceMs: number): Promise<void> {
    for (const execution of this.#running.values()) execution.abandon();
    const waited = new AbortController();
    await Promise.race([this.whenIdle(), sleep(this.#options.clock, graceMs, waited.signal)]);
    waited.abort();
    for (const execution of [...this.#running.values()]) this.#giveUp(execution);
  }

  /** Kills what runs, without results: the process ends. */
  kill(): void {
    this.drain();
    for (const { assigned } of this.#running.values()) this.drop(assigned.key);
  }

  /** How many slots something executes in. */
  get #taken(): number {
    return this.#running.size + this.#lingering.size;
  }

  /** Nothing can start until what lingers has ended, which may be never. */
  get #isStuck(): boolean {
    if (this.#lingering.size === 0) return false;
    if (this.#lingering.size >= this.#options.slots) return true;
    return [...this.#lingering].some(({ assigned }) => assigned.alone);
  }

  /** One that has to be alone waits until nothing runs, and all that stand behind it wait with it. */
  #mayRunBeside({ alone }: Assigned): boolean {
    const running = this.#running.values().next().value;
    return running === undefined || !(alone || running.assigned.alone);
  }

  #handBackAll(): void {
    const unstarted = [...this.#backlog];
    for (const { key } of unstarted) this.#backlog.remove(key);
    if (unstarted.length > 0) this.#options.onHandedBack(unstarted);
  }

  /** Looks now and then, as long as something may be too much: items that do not end tell nothing by themselves. */
  #watch(): void {
    const { clock, pace } = this.#options;
    if (this.#nextLook !== undefined || this.#backlog.size <= 1) return;
    const look = (): void => {
      this.#nextLook = undefined;
      this.#look();
      this.#watch();
    };
    this.#nextLook = clock.after(pace.lookIntervalMs, look, { background: true });
  }

  #look(): void {
    const { clock, pace, onSurplus } = this.#options;
    const surplus = pace.surplus(clock.monotonicMs(), this.#backlog.size, this.#taken > 0);
    if (surplus === 0) return;
    const last = [...this.#backlog].slice(-surplus);
    for (const { key } of last) this.#backlog.remove(key);
    onSurplus(last);
  }

  #handBack(assigned: Assigned): void {
    const { log, onHandedBack } = this.#options;
    const { plugin, version } = assigned;
    const named = version === "" ? `plugin ${plugin}` : `version ${version} of plugin ${plugin}`;
    if (!assigned.alone && !this.#missing.has(named)) {
      this.#missing.add(named);
      log.warn(`items of ${named}, which this worker does not have, are handed back`);
    }
    onHandedBack([assigned]);
  }

  #start(assigned: Assigned, plugin: TakenPlugin): void {
    const execution = new Execution(assigned, plugin, this.#options, () => this.#awaitEnd(execution));
    const { signal, report } = execution;
    if (this.#taken === 0) this.#options.pace.resume(execution.startedMs);
    const slot = this.#slots.indexOf(undefined);
    assert(slot >= 0, "no more execute than there are slots");
    this.#slots[slot] = execution;
    this.#running.set(assigned.key, execution);
    let executing: Promise<Outcome>;
    try {
      const offered = new OfferedAttempt(
        assigned,
        slot,
        this.#options.env,
        () => !this.#isClosed && execution.mayBegin(),
      );
      executing = plugin.backend.execute(offered, signal, report);
    } catch (error) {
      executing = Promise.resolve(thrown(error));
    }
    executing.then(
      (outcome) => this.#settle(execution, outcome),
      (error: unknown) => this.#settle(execution, thrown(error)),
    );
  }

  /** It was told to end. */
  #awaitEnd(execution: Execution): void {
    execution.after(END_GRACE_MS, () => this.#giveUp(execution));
  }

  /** The backend has ended it. */
  #settle(execution: Execution, outcome: Outcome): void {
    execution.end();
    this.#slots[this.#slots.indexOf(execution)] = undefined;
    if (!this.#lingering.delete(execution)) {
      this.#running.delete(execution.assigned.key);
      if (execution.isWithheld && !this.#isClosed) this.#backlog.putBack(execution.assigned);
      else this.#tell(execution, outcome);
    }
    this.#options.pace.end(this.#options.clock.monotonicMs());
    this.pump();
    this.#options.onRoom();
    this.#noticeIdle();
  }

  /** The backend has not ended it though it was told to: that is said now, and its slot is not used until it has. */
  #giveUp(execution: Execution): void {
    const { attempt, plugin } = execution.assigned;
    this.#options.log.warn("an attempt did not end when it was told to; its slot stays taken until it does", {
      attempt,
      plugin,
    });
    this.#running.delete(execution.assigned.key);
    this.#lingering.add(execution);
    this.#tell(execution, { kind: "preempted" });
    this.pump();
    this.#noticeIdle();
  }

  #tell(execution: Execution, outcome: Outcome): void {
    const finished = execution.finish(outcome);
    if (finished !== undefined) this.#options.onFinished(finished);
  }

  #noticeIdle(): void {
    if (this.#running.size === 0) this.#whenIdle?.resolve();
  }
}

/** That of the actor whose work it is, where the item's own is none that anybody knows. */
function actorKeyOf({ key, origin }: KeyOfItem): string {
  return isWork(origin) ? origin.key : key;
}

function thrown(error: unknown): Outcome {
  return { kind: "error", message: describeError(error) };
}

/** The environment is text that most backends never look at: it is made when it is asked for. */
class OfferedAttempt implements ItemAttempt {
  readonly itemId: Uint8Array;
  readonly attempt: number;
  readonly payload: Uint8Array;
  readonly checkpoint: Uint8Array;
  readonly alone: boolean;
  readonly keyed: KeyOfItem | undefined;
  readonly mayBegin: () => boolean;
  readonly #slot: number;
  readonly #env: Readonly<Record<string, string>>;

  constructor(
    { itemId, attempt, payload, checkpoint, alone, keyed }: Assigned,
    slot: number,
    env: Readonly<Record<string, string>>,
    mayBegin: () => boolean,
  ) {
    this.mayBegin = mayBegin;
    this.itemId = itemId;
    this.attempt = attempt;
    this.payload = payload;
    this.checkpoint = checkpoint;
    this.alone = alone;
    this.#slot = slot;
    this.keyed = keyed;
    this.#env = env;
  }

  get env(): Readonly<Record<string, string>> {
    return {
      ...this.#env,
      ROLLOUT_ITEM_ID: Buffer.from(this.itemId).toString("hex"),
      ROLLOUT_ATTEMPT: String(this.attempt),
      ROLLOUT_SLOT: String(this.#slot),
      ...(this.keyed && { ROLLOUT_KEY: actorKeyOf(this.keyed) }),
    };
  }
}
