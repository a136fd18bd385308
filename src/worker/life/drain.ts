// A drain, carried out: what the chart decides is done here, and what comes of it goes back to the chart as an event. The
// chart's snapshot is in the worker's own store, under `drain/<worker id>`.
//
// Keeps true: from the moment that a drain is asked for nothing is started (C6), before anything of it is on the disk; what
// the chart of an earlier process still had to do is not done by this one.
import type { DrainCause, DrainContext, DrainEvent } from "../../../machines/spot-drain.ts";
import { assert } from "../../base/assert.ts";
import type { Clock, Timer } from "../../base/clock.ts";
import { describeError } from "../../base/errors.ts";
import type { WorkerId } from "../../base/ids.ts";
import type { Logger } from "../../observe/log.ts";
import type { ActorSystem } from "../../runtime/driver.ts";

export interface DrainRequest {
  readonly cause: DrainCause;
  /** On the monotonic clock: attempts that run then are abandoned. The earliest deadline of several requests counts. */
  readonly deadlineMs: number;
}

/** The state that a worker has learned so far, where it keeps such a thing. Saved between the last item and the goodbye. */
export interface TrainState {
  /** How long the last save took; undefined when none was measured. Then there is none now either. */
  readonly lastCostMs: number | undefined;
  /** Resolves when it is saved. `signal` aborts when there is no time left for it. */
  save(signal: AbortSignal): Promise<void>;
}

/** The worker's items, as far as a drain ends them. */
export interface DrainedWork {
  /**
   * From now on nothing is started, and what has not started is given back; what was started and has not begun does not begin. In
   * effect when this returns. Idempotent.
   */
  stopStarting(): void;
  /** Resolves when nothing executes. After `stopStarting`. */
  whenIdle(): Promise<void>;
  /** Ends what executes, each with a result. After `stopStarting`. */
  abandon(graceMs: number): Promise<void>;
  /** Resolves when every result is on the coordinator's disk. */
  flushed(): Promise<void>;
}

export interface DrainOptions {
  readonly workerId: WorkerId;
  readonly actors: ActorSystem;
  readonly clock: Clock;
  readonly log: Logger;
  readonly trainState: TrainState | undefined;
  readonly work: DrainedWork;
  /** Says Draining, to the coordinator and to readers of the events. */
  readonly onStarted: (request: DrainRequest) => Promise<void>;
  /** The goodbye: resolves when it was heard, or when that has taken too long. */
  readonly onEmpty: () => Promise<void>;
}

/** How long a backend may take to end what is abandoned; it may leave a checkpoint in that time. */
const ABANDON_GRACE_MS = 1_000;

export class Drain {
  readonly #options: DrainOptions;
  readonly #drained = Promise.withResolvers<undefined>();
  /** Abort when the deadline has come. */
  readonly #saving = new AbortController();
  /** Brings the chart's next moment back to it. */
  #due: Timer | undefined;
  #isLive = false;

  private constructor(options: DrainOptions) {
    this.#options = options;
  }

  /** Takes up the chart, in Idle, wherever the process before left it. Its effects come through `perform` from then on. */
  static async take(options: DrainOptions): Promise<Drain> {
    const drain = new Drain(options);
    const isNew = await options.actors.spawn(drain.#address, "spot-drain", undefined);
    if (!isNew) await drain.#send({ type: "worker.started" });
    drain.#isLive = true;
    return drain;
  }

  get #address(): string {
    return drainAddress(this.#options.workerId);
  }

  /**
   * Begins to drain, or tightens the deadline of the drain under way; a later deadline changes nothing. Resolves when the
   * worker has left.
   */
  async request({ cause, deadlineMs }: DrainRequest): Promise<void> {
    this.#options.work.stopStarting();
    await this.#send({ type: "drain.requested", cause, deadlineMs });
    await this.#drained.promise;
  }

  /** Carries out one effect of the chart. Effects come in order: what takes long is awaited only where the next one must wait. */
  async perform(effect: string): Promise<void> {
    if (!this.#isLive) return;
    const { work, onStarted, onEmpty } = this.#options;
    switch (effect) {
      case "handBackBacklog":
        await onStarted(this.#request());
        return this.#tell({ type: "backlog.handedBack" });
      case "awaitRunning":
        return this.#tellAfter(work.whenIdle(), () => ({
          type: "slots.emptied",
          atMs: this.#options.clock.monotonicMs(),
          trainStateCostMs: this.#options.trainState?.lastCostMs ?? null,
        }));
      case "abandonRunning":
        this.#saving.abort();
        return work.abandon(ABANDON_GRACE_MS);
      case "saveTrainState":
        return this.#tellAfter(this.#saveTrainState(), () => ({
          type: "trainState.settled",
          atMs: this.#options.clock.monotonicMs(),
        }));
      case "flushResults":
        return this.#tellAfter(work.flushed(), () => ({ type: "results.flushed" }));
      case "sayGoodbye":
        await onEmpty();
        return this.#drained.resolve(undefined);
      default:
        assert(false, `no effect of a drain: ${effect}`);
    }
  }

  /** The process ends: effects that the chart still wants are not done. */
  stop(): void {
    this.#isLive = false;
    this.#due?.cancel();
  }

  /** The context of its own chart, which nothing else writes. */
  get #context(): DrainContext {
    return this.#options.actors.contextOf(this.#address) as DrainContext;
  }

  #request(): DrainRequest {
    const { cause, deadlineMs } = this.#context;
    assert(cause !== null, "a drain that was asked for has a cause");
    return { cause, deadlineMs };
  }

  async #saveTrainState(): Promise<void> {
    try {
      await this.#options.trainState?.save(this.#saving.signal);
    } catch (err) {
      this.#options.log.error(`the TrainState was not saved: ${describeError(err)}`, { err });
    }
  }

  /** Does not wait: a deadline must be able to come meanwhile. */
  #tellAfter(what: Promise<void>, event: () => DrainEvent): void {
    void what.then(() => this.#tell(event()));
  }

  /** An event that comes too late for the state it was meant for is ignored by the chart. */
  #tell(event: DrainEvent): void {
    // The actor system has reported it, when it fails.
    if (this.#isLive) this.#send(event).catch(() => {});
  }

  async #send(event: DrainEvent): Promise<void> {
    await this.#options.actors.send(this.#address, event);
    this.#awaitMoment();
  }

  /** The moment that the chart waits for now: while results are flushed the end of that, before it the deadline. */
  #awaitMoment(): void {
    this.#due?.cancel();
    const { actors, clock } = this.#options;
    const state = actors.stateOf(this.#address);
    if (!this.#isLive || state?.startsWith("Draining") !== true) return;
    const { deadlineMs, flushUntilMs } = this.#context;
    const event = (): DrainEvent =>
      flushUntilMs === null
        ? { type: "deadline.reached", atMs: clock.monotonicMs() }
        : { type: "flush.expired" };
    const leftMs = (flushUntilMs ?? deadlineMs) - clock.monotonicMs();
    this.#due = clock.after(Math.max(0, leftMs), () => this.#tell(event()));
  }
}

export function drainAddress(workerId: WorkerId): string {
  return `drain/${workerId}`;
}
