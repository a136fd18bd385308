// Long-lived children that load what they need once and then execute one item after the other, or several at once. There are as
// many as the items that have come at once need, and they stay until the end.
//
// Keeps true: an item waits where no child can take it, and its time does not run meanwhile; no item is charged for a child
// that does not become ready.
import { assert } from "../../../base/assert.ts";
import type { Timer } from "../../../base/clock.ts";
import type { Random } from "../../../base/random.ts";
import type { Backend, ChildBackendOptions, ItemAttempt, ItemReport, Learner, Outcome } from "../backend.ts";
import { FalseStarts } from "../false-starts.ts";
import { Shortage, startPatiently } from "../shortage.ts";
import { forHowLong, loadingWords } from "../trouble-words.ts";
import { ItemProcess } from "./item-process.ts";
import type { Job } from "./item-process.ts";

export interface ProcessBackendOptions extends ChildBackendOptions {
  readonly command: readonly string[];
  /** Absolute. */
  readonly cwd: string;
  /** All of the environment of the children. */
  readonly env: Readonly<Record<string, string>>;
  /** Items that one child has at once, at most. */
  readonly concurrency: number;
  readonly readyTimeoutMs: number;
  /** Between a request to cancel, or SIGTERM, and SIGKILL. */
  readonly killGraceMs: number;
  readonly random: Random;
}

const PREEMPTED: Outcome = { kind: "preempted" };
/** A line's own cost beside its output: the names, the id, the braces. */
const LINE_OVERHEAD_BYTES = 64 * 1_024;

export class ProcessBackend implements Backend {
  readonly #options: ProcessBackendOptions;
  readonly #processes = new Set<ItemProcess>();
  /** In order of arrival. */
  readonly #waiting = new Set<Job>();
  readonly #closing = new AbortController();
  /** Children on their way to being processes. */
  readonly #spawning = new Set<Promise<void>>();
  readonly #falseStarts: FalseStarts;
  readonly #shortage: Shortage;
  #pause: Timer | undefined;
  #isBroken = false;

  constructor(options: ProcessBackendOptions) {
    assert(options.command.length > 0, "a command has a first word");
    this.#options = options;
    this.#falseStarts = new FalseStarts(options);
    this.#shortage = new Shortage(options.clock, options.startTimeoutMs);
  }

  execute(attempt: ItemAttempt, signal: AbortSignal, report: (report: ItemReport) => void): Promise<Outcome> {
    if (signal.aborted) return Promise.resolve(PREEMPTED);
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const taker = this.#waiting.size === 0 && !this.#isClosed ? this.#roomiest() : undefined;
    if (taker === undefined) this.#wait({ attempt, signal, report, settle: resolve });
    else offer(taker, { attempt, signal, report, settle: resolve });
    return promise;
  }

  /** While items wait: what is started for items that are gone by now is nobody's trouble. */
  trouble(): string | undefined {
    if (this.#waiting.size === 0 || this.#closing.signal.aborted) return undefined;
    const shortage = this.#shortage.trouble();
    if (shortage !== undefined) return shortage;
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#falseStarts.last !== undefined) {
      const { reason, sinceMs } = this.#falseStarts.last;
      return `starting it again, ${forHowLong(nowMs - sinceMs)}: it ended before it was ready: ${reason}`;
    }
    const all = [...this.#processes];
    const [sinceMs] = all.filter((one) => one.isStarting).map(({ startedAtMs }) => startedAtMs);
    const ready = all.filter((one) => one.isReady).length;
    return loadingWords({ sinceMs, ready, all: all.length, timeoutMs: this.#options.readyTimeoutMs }, nowMs);
  }

  learners(): readonly Learner[] {
    return [...this.#processes].filter((one) => one.isLearned);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#pause?.cancel();
    for (const job of this.#waiting) job.settle({ kind: "preempted" });
    this.#waiting.clear();
    while (this.#spawning.size > 0) await Promise.all(this.#spawning);
    await Promise.all([...this.#processes].map((one) => one.close()));
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted || this.#isBroken;
  }

  /** Until a process can take it, or it is not wanted any more. */
  #wait({ attempt, signal, report, settle: resolve }: Job): void {
    const onAbort = (): void => {
      if (this.#waiting.delete(job)) resolve(PREEMPTED);
    };
    const settle = (outcome: Outcome): void => {
      signal.removeEventListener("abort", onAbort);
      resolve(outcome);
    };
    const job: Job = { attempt, signal, report, settle };
    signal.addEventListener("abort", onAbort, { once: true });
    report({ kind: "waiting" });
    this.#waiting.add(job);
    this.#pump();
  }

  /** Gives waiting items to processes that have room, and starts another process when none has. */
  #pump(): void {
    if (this.#waiting.size === 0 || this.#isClosed) return;
    for (const job of this.#waiting) {
      const taker = this.#roomiest();
      if (taker === undefined) break;
      this.#waiting.delete(job);
      if (offer(taker, job)) job.report({ kind: "executing" });
    }
    if (this.#waiting.size === 0) return;
    const { concurrency } = this.#options;
    const starting = [...this.#processes].filter((one) => one.isStarting).length;
    const coming = this.#spawning.size + starting;
    // After a false start one at a time: they would all fail alike.
    const most = this.#falseStarts.inRow > 0 ? 1 : Infinity;
    const needed = Math.min(most, Math.ceil(this.#waiting.size / concurrency)) - coming;
    if (this.#pause === undefined) for (let more = 0; more < needed; more++) this.#spawn();
  }

  /** The one with the least to do among the processes that have room. */
  #roomiest(): ItemProcess | undefined {
    let found: ItemProcess | undefined;
    for (const one of this.#processes)
      if (one.hasRoom && (found === undefined || one.load < found.load)) found = one;
    return found;
  }

  #spawn(): void {
    const spawning = this.#start().finally(() => {
      this.#spawning.delete(spawning);
      this.#pump();
    });
    this.#spawning.add(spawning);
  }

  async #start(): Promise<void> {
    const { children, command, cwd, env } = this.#options;
    const patience = { ...this.#options, shortage: this.#shortage };
    const start = await startPatiently(children, { command, cwd, env }, this.#closing.signal, patience);
    if (start.kind === "aborted") return;
    if (start.kind === "failed") return this.#breakDown(start.failure.reason);
    const started: ItemProcess = new ItemProcess(start.child, {
      ...this.#options,
      maxLineBytes: this.#maxLineBytes,
      onReady: () => {
        this.#falseStarts.over();
        this.#pump();
      },
      onRoom: () => this.#pump(),
      onGone: (wasReady, reason) => {
        this.#processes.delete(started);
        if (!wasReady) this.#startedInVain(reason, started.startedAtMs);
        this.#pump();
      },
    });
    this.#processes.add(started);
  }

  /** Text may take six bytes for one when it is escaped. */
  get #maxLineBytes(): number {
    const { maxOutputBytes, maxCheckpointBytes, maxStateBytes } = this.#options;
    const resultBytes = 6 * (maxOutputBytes + maxStateBytes);
    return Math.max(resultBytes, 2 * maxCheckpointBytes) + LINE_OVERHEAD_BYTES;
  }

  #startedInVain(reason: string, startedAtMs: number): void {
    if (this.#closing.signal.aborted) return;
    const { clock, log } = this.#options;
    const works = [...this.#processes].some((one) => one.isReady);
    const waitMs = this.#falseStarts.count({ reason, startedAtMs }, works);
    if (waitMs === undefined) return this.#breakDown(reason);
    log.warn("a process ended before it was ready", { reason, falseStarts: this.#falseStarts.inRow });
    this.#pause ??= clock.after(
      waitMs,
      () => {
        this.#pause = undefined;
        this.#pump();
      },
      { background: true },
    );
  }

  /** Waiting items go on waiting: the worker ends, and is asked to end them. */
  #breakDown(reason: string): void {
    if (this.#isBroken) return;
    this.#isBroken = true;
    this.#options.onBroken(reason);
  }
}

/** False when it may not begin. */
function offer(taker: ItemProcess, job: Job): boolean {
  if (job.attempt.mayBegin?.() === false) {
    job.settle(PREEMPTED);
    return false;
  }
  taker.give(job);
  return true;
}
