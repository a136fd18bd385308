// A drain, carried out: each effect of the chart is done here, on the worker's items, on what its plugins have learned and on its
// beats, and comes back to the chart as one event. The chart's snapshot is in the worker's own store, under `drain/<worker id>`.
//
// Keeps true: from the moment that a drain is asked for nothing is started (C6), before anything of it is on the disk; effects
// that the chart still owed in an earlier process are not done by this one, which starts nothing while a cloud's notice lasts.
import { charts } from "../../../machines/index.ts";
import type { DrainCause, DrainContext, DrainEvent } from "../../../machines/spot-drain.ts";
import { assert } from "../../base/assert.ts";
import type { Clock, Timer } from "../../base/clock.ts";
import { describeError } from "../../base/errors.ts";
import type { IncarnationId, WorkerId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { EventEmitter } from "../../observe/events.ts";
import type { Logger } from "../../observe/log.ts";
import { ActorSystem } from "../../runtime/driver.ts";
import type { ChartStep } from "../../runtime/driver.ts";
import type { Store } from "../../storage/store.ts";
import type { Learner } from "../backends/backend.ts";
import type { Heartbeat } from "./heartbeat.ts";

export interface DrainRequest {
  readonly cause: DrainCause;
  /** On the monotonic clock: attempts that run then are abandoned. The earliest deadline of several requests counts. */
  readonly deadlineMs: number;
  /** When a cloud takes the machine away, on the monotonic clock: until then a later process on this boot drains as well. */
  readonly machineEndsMs?: number | undefined;
}

/** The worker's items, as far as a drain ends them. */
export interface DrainedWork {
  /**
   * From now on nothing is started, and what has not started is handed back; what was started and has not begun does not begin. In
   * effect when this returns. Idempotent.
   */
  stopStarting(): void;
  /** Resolves when nothing executes. After `stopStarting`. */
  whenIdle(): Promise<void>;
  /** Ends what executes, each with a result. After `stopStarting`. */
  abandon(graceMs: number): Promise<void>;
  /** Resolves when every result is on the coordinator's disk. */
  flushed(): Promise<void>;
  /** Results that the coordinator has not acknowledged. */
  readonly unacknowledged: number;
}

export interface DrainOptions {
  readonly workerId: WorkerId;
  readonly incarnation: IncarnationId;
  /** This start of the machine; empty when nobody knows. */
  readonly boot: string;
  /** The worker's own. */
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: EventEmitter;
  readonly log: Logger;
  readonly work: DrainedWork;
  /** Told of the steps of the drain. */
  readonly onStep?: ((step: ChartStep) => void) | undefined;
  /** All that has something to save between the last item and the goodbye: the worker's TrainState. */
  readonly learners: () => readonly Learner[];
  /** Undefined before the worker has found its way to the coordinator. */
  readonly heartbeat: () => Pick<Heartbeat, "beatNow" | "tell"> | undefined;
  readonly onFatal: (error: unknown) => void;
}

/** How long a backend may take to end what is abandoned; it may leave a checkpoint in that time. */
const ABANDON_GRACE_MS = 1_000;
/** A deadline that is further away is none to who looks on. */
const LEFT_SHOWN_MAX_MS = 7 * 86_400_000;
/** How long a goodbye may take when nobody answers. */
const GOODBYE_MAX_MS = 3_000;

export class Drain {
  readonly #options: DrainOptions;
  readonly #address: string;
  readonly #actors: ActorSystem;
  readonly #left = Promise.withResolvers<undefined>();
  /** Aborts when there is no time left to save in. */
  readonly #saving = new AbortController();
  /** Brings the chart's next moment back to it. */
  #due: Timer | undefined;
  #isStopped = false;

  private constructor(options: DrainOptions, actors: ActorSystem) {
    this.#options = options;
    this.#address = `drain/${options.workerId}`;
    this.#actors = actors;
  }

  /** Takes up the chart where the process before left it. A drain that goes on has begun when this resolves. */
  static async open(options: DrainOptions): Promise<Drain> {
    const born: { drain?: Drain } = {};
    const actors = await ActorSystem.open({
      ...options,
      // All of them: a worker of 0.1 has left the chart of its life here too, which nothing reads.
      charts,
      durability: "flush",
      perform: ({ type }) => (born.drain === undefined ? undefined : born.drain.#perform(type)),
    });
    const drain = (born.drain = new Drain(options, actors));
    await actors.spawn(drain.#address, "spot-drain", undefined);
    await drain.#send({ type: "worker.started", atMs: options.clock.monotonicMs(), boot: options.boot });
    return drain;
  }

  /** Resolves when the worker has left. */
  get left(): Promise<void> {
    return this.#left.promise;
  }

  /** As the chart names it: `Idle`, `Draining.Saving`, `Drained`. */
  get state(): string {
    return this.#actors.stateOf(this.#address) ?? "";
  }

  /** How far it is, for those who look on; undefined unless it drains. */
  get progress(): { readonly state: string; readonly cause: string; readonly leftMs: number } | undefined {
    const { cause, deadlineMs } = this.#context;
    const isUnderWay = cause !== null && this.state.startsWith("Draining");
    if (!isUnderWay) return undefined;
    const leftMs = Math.max(0, Math.round(deadlineMs - this.#options.clock.monotonicMs()));
    return { state: this.state, cause, leftMs: Math.min(leftMs, LEFT_SHOWN_MAX_MS) };
  }

  /** Begins to drain, or tightens the deadline of the drain under way; a later deadline changes nothing. */
  async request({ cause, deadlineMs, machineEndsMs }: DrainRequest): Promise<void> {
    this.#options.work.stopStarting();
    const atMs = this.#options.clock.monotonicMs();
    const machine = { machineEndsMs: machineEndsMs ?? null };
    await this.#send({ type: "drain.requested", cause, atMs, deadlineMs, ...machine });
  }

  /** The process ends: effects that the chart still wants are not done. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#due?.cancel();
    await this.#actors.close();
  }

  /** Carries out one effect of the chart. Effects come in order: what takes long is awaited only where the next one must wait. */
  async #perform(effect: string): Promise<void> {
    if (this.#isStopped) return;
    const { work, clock } = this.#options;
    switch (effect) {
      case "handBackBacklog":
        work.stopStarting();
        this.#sayDraining();
        return this.#tell({ type: "backlog.handedBack" });
      case "awaitRunning":
        return this.#tellAfter(work.whenIdle(), () => ({
          type: "slots.emptied",
          atMs: clock.monotonicMs(),
          hasTrainState: this.#options.learners().length > 0,
        }));
      case "abandonRunning":
        return work.abandon(ABANDON_GRACE_MS);
      case "saveTrainState":
        return this.#tellAfter(this.#saveTrainState(), (tookMs) => ({
          type: "trainState.settled",
          atMs: clock.monotonicMs(),
          tookMs,
        }));
      case "forgoTrainState":
        return this.#forgoTrainState();
      case "flushResults":
        return this.#tellAfter(work.flushed(), () => ({ type: "results.flushed" }));
      case "sayGoodbye":
        await this.#sayGoodbye();
        return this.#left.resolve(undefined);
      default:
        assert(false, `no effect of a drain: ${effect}`);
    }
  }

  #sayDraining(): void {
    const { events, heartbeat, workerId: worker_id, incarnation } = this.#options;
    const { cause, deadlineMs, sinceMs } = this.#context;
    assert(cause !== null, "a drain that was asked for has a cause");
    const deadline_ms = Math.max(0, Math.round(deadlineMs - sinceMs));
    heartbeat()?.beatNow();
    events.emit("drain_started", { worker_id, incarnation, cause, deadline_ms });
  }

  /** Resolves with how long it took; null when not all of it was saved. Never, when something does not answer. */
  async #saveTrainState(): Promise<number | null> {
    const { clock, log, learners } = this.#options;
    const startedMs = clock.monotonicMs();
    const timeLeftMs = Math.max(0, this.#context.untilMs - startedMs);
    const saves = learners().map((learner) => learner.save(timeLeftMs, this.#saving.signal));
    // Its process may have died since the chart asked; that was no save, and costs nothing that is worth knowing.
    if (saves.length === 0) {
      log.warn("the TrainState was not saved: what had it has ended");
      return null;
    }
    const ends = await Promise.allSettled(saves);
    const tookMs = clock.monotonicMs() - startedMs;
    const failures = ends.flatMap((end) => (end.status === "rejected" ? [end.reason as unknown] : []));
    if (!this.#saving.signal.aborted)
      for (const err of failures) log.error(`the TrainState was not saved: ${describeError(err)}`, { err });
    if (failures.length > 0) return null;
    log.info("the TrainState is saved", { took_ms: Math.round(tookMs) });
    return tookMs;
  }

  #forgoTrainState(): void {
    this.#saving.abort();
    if (this.#options.learners().length > 0)
      this.#options.log.warn("the TrainState was not saved: there is no time left for it");
  }

  async #sayGoodbye(): Promise<void> {
    const { events, heartbeat, clock, log, work, workerId: worker_id, incarnation } = this.#options;
    const isHeard = await heartbeat()?.tell(GOODBYE_MAX_MS);
    if (isHeard !== true) log.warn("left without an answer: no coordinator heard the goodbye");
    const took_ms = Math.round(clock.monotonicMs() - this.#context.sinceMs);
    const unacknowledged_results = work.unacknowledged;
    events.emit("drain_completed", { worker_id, incarnation, took_ms, unacknowledged_results });
  }

  /** The context of its own chart, which nothing else writes. */
  get #context(): DrainContext {
    return this.#actors.contextOf(this.#address) as DrainContext;
  }

  /** Does not wait: a deadline must be able to come meanwhile. */
  #tellAfter<Result>(work: Promise<Result>, event: (result: Result) => DrainEvent): void {
    void work.then((result) => this.#tell(event(result)));
  }

  /** An event that comes too late for the state it was meant for is ignored by the chart. */
  #tell(event: DrainEvent): void {
    // The actor system has reported it, when it fails.
    if (!this.#isStopped) this.#send(event).catch(() => {});
  }

  async #send(event: DrainEvent): Promise<void> {
    await this.#actors.send(this.#address, event);
    this.#due?.cancel();
    if (this.#isStopped || !this.state.startsWith("Draining")) return;
    const { clock } = this.#options;
    const leftMs = Math.max(0, this.#context.untilMs - clock.monotonicMs());
    this.#due = clock.after(leftMs, () => this.#tell({ type: "time.isUp", atMs: clock.monotonicMs() }));
  }
}
