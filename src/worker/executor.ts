// Executes what the worker was given: as many at once as there are slots, the best of the backlog next. Says how each one
// ended; whether that is heard of is not its concern.
//
// Keeps true: an attempt is unstarted or running, never both; each start is asked for (C6, self-fence) at the moment of
// the start; an attempt that was dropped leaves no result, every other one leaves exactly one.
import { hash } from "node:crypto";
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { describeError } from "../base/errors.ts";
import type { Logger } from "../observe/log.ts";
import { Backlog } from "./backlog.ts";
import type { Assigned } from "./backlog.ts";
import type { Backend, ItemAttempt, ItemReport, Outcome } from "./backends/backend.ts";

export interface ExecutorOptions {
  readonly backend: Backend;
  readonly slots: number;
  /** How many may wait beside those that run. */
  readonly prefetch: number;
  readonly maxOutputBytes: number;
  readonly maxCheckpointBytes: number;
  /** For every attempt: the run, the worker. */
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Asked before each start. */
  readonly mayStart: () => boolean;
  readonly onFinished: (finished: Finished) => void;
  /** There is room for one more than before. */
  readonly onRoom: () => void;
}

export interface Finished {
  readonly assigned: Assigned;
  readonly outcome: Outcome;
  /** SHA-256 of the output of a success; empty for any other end. */
  readonly outputDigest: Uint8Array;
}

/**
 * What becomes of a running attempt's outcome. `abandoned`: its end was forced, so that it failed is nobody's fault.
 * `settled`: nothing any more.
 */
type Fate = "wanted" | "dropped" | "abandoned" | "settled";

interface Execution {
  readonly assigned: Assigned;
  readonly controller: AbortController;
  fate: Fate;
  checkpoint: Uint8Array;
}

/** Beyond it the message of an error is cut. */
const MESSAGE_MAX_CHARACTERS = 8_192;
const NO_BYTES = new Uint8Array(0);

export class Executor {
  readonly #options: ExecutorOptions;
  readonly #backlog: Backlog;
  readonly #running = new Map<string, Execution>();
  #draining = false;
  #whenIdle: PromiseWithResolvers<void> | undefined;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#backlog = new Backlog(options.slots + options.prefetch);
  }

  /** How many more attempts may be given; none while it drains. */
  get room(): number {
    const { slots, prefetch } = this.#options;
    return this.#draining ? 0 : Math.max(0, slots + prefetch - this.#backlog.size - this.#running.size);
  }

  get isDraining(): boolean {
    return this.#draining;
  }

  /** Whether nothing waits: whoever has work may give it at once. */
  get isHungry(): boolean {
    return this.#backlog.size === 0;
  }

  /** The share of the slots that execute, 0 to 1. */
  get load(): number {
    return this.#running.size / this.#options.slots;
  }

  get unstarted(): Iterable<Assigned> {
    return this.#backlog;
  }

  /** What is abandoned belongs to it until it has ended. */
  get running(): readonly Assigned[] {
    return [...this.#running.values()].filter(({ fate }) => fate !== "dropped").map((one) => one.assigned);
  }

  /** False when it drains: the caller has to hand it back. What is here already stays as it is. */
  take(assigned: Assigned): boolean {
    if (this.#draining) return false;
    const { key } = assigned;
    if (!this.#backlog.has(key) && !this.#running.has(key)) this.#backlog.add(assigned);
    return true;
  }

  /** Starts what can be started now. To be called whenever the answer of `mayStart` may have changed. */
  pump(): void {
    const { slots, mayStart } = this.#options;
    while (this.#running.size < slots && this.#backlog.size > 0 && mayStart()) {
      const assigned = this.#backlog.next();
      assert(assigned !== undefined, "a backlog that is not empty has a next one");
      this.#start(assigned);
    }
  }

  /** Takes it back if it has not started; then it never will. */
  release(key: string): Assigned | undefined {
    return this.#backlog.remove(key);
  }

  /** Nobody wants it any more: it is forgotten or killed, and leaves no result. Unknown ones are ignored. */
  drop(key: string): void {
    this.#backlog.remove(key);
    const execution = this.#running.get(key);
    if (execution?.fate !== "wanted") return;
    execution.fate = "dropped";
    execution.controller.abort();
  }

  /** Starts nothing any more, for good, and gives back what has not started. Idempotent. */
  drain(): Assigned[] {
    this.#draining = true;
    const unstarted = [...this.#backlog];
    for (const { key } of unstarted) this.#backlog.remove(key);
    return unstarted;
  }

  /** Resolves when nothing runs. For one that drains. */
  whenIdle(): Promise<void> {
    assert(this.#draining, "only what starts nothing more becomes idle for good");
    this.#whenIdle ??= Promise.withResolvers();
    if (this.#running.size === 0) this.#whenIdle.resolve();
    return this.#whenIdle.promise;
  }

  /**
   * Ends what runs: each attempt leaves a result, `preempted` with its last checkpoint unless it succeeds at this moment.
   * A backend that has not ended it within `graceMs` is not waited for.
   */
  async abandon(graceMs: number): Promise<void> {
    for (const execution of this.#running.values()) {
      if (execution.fate === "wanted") execution.fate = "abandoned";
      execution.controller.abort();
    }
    const waited = new AbortController();
    await Promise.race([this.whenIdle(), sleep(this.#options.clock, graceMs, waited.signal)]);
    waited.abort();
    for (const execution of [...this.#running.values()]) {
      const { attempt } = execution.assigned;
      this.#options.log.warn("an abandoned attempt did not end in time", { attempt });
      this.#settle(execution, { kind: "preempted" });
    }
  }

  /** Kills what runs, without results: the process ends. */
  kill(): void {
    this.drain();
    for (const { assigned } of this.#running.values()) this.drop(assigned.key);
  }

  #start(assigned: Assigned): void {
    const { backend, env } = this.#options;
    const controller = new AbortController();
    const execution: Execution = { assigned, controller, fate: "wanted", checkpoint: assigned.checkpoint };
    this.#running.set(assigned.key, execution);
    const report = (news: ItemReport): void => this.#keepCheckpoint(execution, news.checkpoint);
    let executing: Promise<Outcome>;
    try {
      executing = backend.execute(new OfferedAttempt(assigned, env), controller.signal, report);
    } catch (error) {
      executing = Promise.resolve(thrown(error));
    }
    executing.then(
      (outcome) => this.#settle(execution, outcome),
      (error: unknown) => this.#settle(execution, thrown(error)),
    );
  }

  #settle(execution: Execution, outcome: Outcome): void {
    const { fate, assigned } = execution;
    if (fate === "settled") return;
    execution.fate = "settled";
    this.#running.delete(assigned.key);
    if (fate !== "dropped") this.#options.onFinished(this.#finish(execution, outcome, fate === "abandoned"));
    this.pump();
    this.#options.onRoom();
    if (this.#running.size === 0) this.#whenIdle?.resolve();
  }

  #finish(execution: Execution, outcome: Outcome, wasAbandoned: boolean): Finished {
    const { assigned } = execution;
    if (outcome.kind === "success" && outcome.output.length <= this.#options.maxOutputBytes)
      return { assigned, outcome, outputDigest: hash("sha256", outcome.output, "buffer") };
    return {
      assigned,
      outcome: this.#endingOf(execution, outcome, wasAbandoned),
      outputDigest: NO_BYTES,
    };
  }

  #endingOf(execution: Execution, outcome: Outcome, wasAbandoned: boolean): Outcome {
    if (outcome.kind === "success" || outcome.kind === "too_large") return { kind: "too_large" };
    // It was killed: how it died of that says nothing of the item.
    if (outcome.kind === "preempted" || wasAbandoned) {
      if (outcome.kind === "preempted" && outcome.checkpoint !== undefined)
        this.#keepCheckpoint(execution, outcome.checkpoint);
      return { kind: "preempted", checkpoint: execution.checkpoint };
    }
    if (outcome.kind === "timeout") return outcome;
    return { kind: outcome.kind, message: outcome.message.slice(0, MESSAGE_MAX_CHARACTERS).toWellFormed() };
  }

  #keepCheckpoint(execution: Execution, checkpoint: Uint8Array): void {
    const { maxCheckpointBytes, log } = this.#options;
    if (checkpoint.length <= maxCheckpointBytes) execution.checkpoint = checkpoint;
    else
      log.warn("a checkpoint over the limit was left out", {
        bytes: checkpoint.length,
        limit: maxCheckpointBytes,
      });
  }
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
  readonly #env: Readonly<Record<string, string>>;

  constructor({ itemId, attempt, payload, checkpoint }: Assigned, env: Readonly<Record<string, string>>) {
    this.itemId = itemId;
    this.attempt = attempt;
    this.payload = payload;
    this.checkpoint = checkpoint;
    this.#env = env;
  }

  get env(): Readonly<Record<string, string>> {
    return {
      ...this.#env,
      ROLLOUT_ITEM_ID: Buffer.from(this.itemId).toString("hex"),
      ROLLOUT_ATTEMPT: String(this.attempt),
    };
  }
}
