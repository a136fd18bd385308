// Looks at a run each time there is news of it and shows what it sees. Keeps true: what is shown was read; while the coordinator does not
// answer, that is said, and the counts are the last that were read.
import type { Clock, Timer } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { RolloutError } from "../../base/errors.ts";
import type { ProgressView } from "../../cli/render/progress.ts";
import type { ProgressDisplay } from "../../cli/render/progress-display.ts";
import { releaseLine } from "../../cli/render/release.ts";
import { troubleLines } from "../../cli/render/workers.ts";
import { PaceMeter } from "../../client/progress.ts";
import type { WorkerSummary } from "../../client/workers.ts";
import { standsStill } from "../../client/run-status.ts";
import type { RunStatus, WorkerNumbers } from "../../client/run-status.ts";
import type { RolloutClient } from "../rollout-client.ts";

export interface WatchOptions {
  readonly client: RolloutClient;
  readonly display: ProgressDisplay;
  readonly clock: Clock;
  /** All workers' together. */
  readonly slots: number;
  /** Items of the input, as far as it is known. */
  readonly expected: () => number;
}

/** Items that wait, and the keys behind which they do. */
interface Parked {
  readonly items: number;
  readonly keys: number;
}

const LOOK_MS = 400;
const SHOW_MS = 250;
/** A coordinator that is started again is back by then, and nobody has to hear of it. */
const SILENCE_MS = 3_000;
/** One that was killed and started again is back by then, and was told of by its end. */
const LASTING_MS = 3_000;

export class ProgressWatch {
  readonly #options: WatchOptions;
  readonly #lost = new LostWorkers();
  #meter = new PaceMeter();
  readonly #startedAtMs: number;
  readonly #stopping = new AbortController();
  readonly #paused = Promise.withResolvers<string>();
  readonly #parked = Promise.withResolvers<Parked>();
  #status: RunStatus | undefined;
  #answeredAtMs: number;
  #submitted: number | undefined = 0;
  #hasAll = false;
  #readyMost = 0;
  #situation: string | undefined;
  /** Why nothing finishes, where a worker has said so. */
  #trouble: string | undefined;
  #reassigned = { earlier: 0, last: 0 };
  #showing: Timer | undefined;
  #looking: Promise<void> | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#startedAtMs = options.clock.monotonicMs();
    this.#answeredAtMs = this.#startedAtMs;
  }

  /** Resolves with the reason when the run is paused. */
  get paused(): Promise<string> {
    return this.#paused.promise;
  }

  /** Resolves when everything is submitted, and all that is left stands in keys that are parked. */
  get parked(): Promise<Parked> {
    return this.#parked.promise;
  }

  get reassigned(): number {
    return this.#reassigned.earlier + this.#reassigned.last;
  }

  get elapsedMs(): number {
    return this.#options.clock.monotonicMs() - this.#startedAtMs;
  }

  start(): void {
    this.#looking ??= this.#look();
    this.#keepShowing();
  }

  /** Lines that were submitted; undefined when all were. */
  submitted(lines: number | undefined): void {
    // The counts that were read last do not have all of them yet.
    if (lines === undefined) this.#hasAll = true;
    else this.#submitted = lines;
  }

  /** Shows what is going on, in place of how fast it goes. */
  say(situation: string): void {
    this.#situation = situation;
    this.#show();
  }

  /** Shows what was read last, here or elsewhere, and says no more. Undefined when nothing ever was. */
  async last(situation: string | undefined, status: RunStatus | undefined): Promise<RunStatus | undefined> {
    if (status !== undefined) this.#take(status);
    this.#situation = situation;
    await this.stop();
    return this.#status;
  }

  /** Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#showing?.cancel();
    await this.#looking;
    this.#show();
  }

  async #look(): Promise<void> {
    const { client, clock } = this.#options;
    const { signal } = this.#stopping;
    const news = client.news(LOOK_MS);
    while (!signal.aborted) {
      try {
        const hadAll = this.#hasAll;
        const { status } = await news.next(signal);
        if (hadAll) this.#noticeParked(status);
        this.#trouble = standsStill(status) ? troubleOf(await client.workers()) : undefined;
        this.#take(status);
      } catch (error) {
        // It is started again; who cannot be helped is told of elsewhere.
        if (!(error instanceof RolloutError)) throw error;
        await sleep(clock, LOOK_MS, signal);
      }
    }
  }

  /** A run that waits for a timer goes on without anybody. */
  #noticeParked({ sealed, state, keys, timers, inside, ...counts }: RunStatus): void {
    if (keys === undefined || !sealed || state !== "sealed" || timers !== undefined) return;
    const pending = counts.pending + (inside?.pending ?? 0);
    const running = counts.running + (inside?.running ?? 0);
    if (running > 0 || pending === 0) return;
    if (pending !== keys.itemsBehindParked) return;
    this.#parked.resolve({ items: pending, keys: keys.parked + keys.parkedActions });
  }

  #take(status: RunStatus): void {
    const nowMs = this.#options.clock.monotonicMs();
    this.#status = status;
    if (this.#hasAll) this.#submitted = undefined;
    this.#answeredAtMs = nowMs;
    this.#takePace(nowMs, status);
    this.#tellOfLost(nowMs, status);
    const { earlier, last } = this.#reassigned;
    // It counts since it leads: a new leader begins anew.
    const isAnew = status.reassigned < last;
    this.#reassigned = { earlier: isAnew ? earlier + last : earlier, last: status.reassigned };
    if (status.state === "paused") this.#paused.resolve(status.pauseReason ?? "");
    this.#show();
  }

  /** How fast it goes while it is still filled, or while workers still come up, says nothing about the rest. */
  #takePace(nowMs: number, status: RunStatus): void {
    const isMore = status.workers.ready > this.#readyMost;
    this.#readyMost = Math.max(this.#readyMost, status.workers.ready);
    if (isMore) this.#meter = new PaceMeter();
    if (this.#submitted === undefined) this.#meter.take(nowMs, status);
  }

  #tellOfLost(nowMs: number, { workers }: RunStatus): void {
    const sentence = this.#lost.take(nowMs, workers);
    const isEnding = this.#situation !== undefined || this.#stopping.signal.aborted;
    if (sentence !== undefined && !isEnding) this.#options.display.say(sentence);
  }

  #keepShowing(): void {
    this.#showing = this.#options.clock.after(SHOW_MS, () => {
      this.#show();
      this.#keepShowing();
    });
  }

  #show(): void {
    if (this.#status !== undefined) this.#options.display.update(this.#viewOf(this.#status));
  }

  #viewOf(status: RunStatus): ProgressView {
    const { clock, slots, expected } = this.#options;
    const nowMs = clock.monotonicMs();
    const { pending, running, done, failed, executing, workers } = status;
    const there = pending + running + done + failed;
    const total = this.#submitted === undefined ? there : Math.max(there, expected());
    const begun = this.#submitted !== undefined && pending + running === 0 ? "submitting" : undefined;
    const isSilent = nowMs - this.#answeredAtMs > SILENCE_MS;
    return {
      counts: status,
      failures: status.failedByClass,
      failureMessages: status.failureMessages,
      reassigned: this.reassigned,
      total,
      submitted: this.#submitted,
      pace: this.#meter.pace(nowMs, total - done - failed),
      elapsedMs: this.elapsedMs,
      workers: { ...workers, executing, slots, hadSome: this.#readyMost > 0 },
      release: status.release && releaseLine(status.release),
      situation: this.#situation ?? (isSilent ? "waiting for the coordinator" : (this.#trouble ?? begun)),
    };
  }
}

/** The words of the first of them, and how many others say something. */
function troubleOf(workers: readonly WorkerSummary[]): string | undefined {
  const [first, ...others] = troubleLines(workers, () => "a worker");
  return first === undefined || others.length === 0 ? first : `${first} (and ${others.length} more)`;
}

/**
 * Says when workers stop answering, and when they answer again: one that is frozen is still a process, so nothing else notices. Pure:
 * numbers and times come in. Keeps true: one sentence for each change that lasts.
 * @internal
 */
export class LostWorkers {
  /** So many were there at once. */
  #most = 0;
  #told = 0;
  /** The present number, if it is not the one that was told. */
  #change: { readonly lost: number; readonly sinceMs: number } | undefined;

  /** Numbers that were read at `nowMs`, monotonic. A sentence when there is something new to be told. */
  take(nowMs: number, { ready, draining, suspected, failed }: WorkerNumbers): string | undefined {
    this.#most = Math.max(this.#most, ready);
    // Workers of an earlier run that are not started again are not missed.
    const lost = Math.min(suspected + failed, Math.max(0, this.#most - ready - draining));
    if (lost === this.#told) {
      this.#change = undefined;
      return undefined;
    }
    if (this.#change?.lost !== lost) this.#change = { lost, sinceMs: nowMs };
    if (nowMs - this.#change.sinceMs < LASTING_MS) return undefined;
    this.#change = undefined;
    const isWorse = lost > this.#told;
    this.#told = lost;
    if (lost === 0) return "every worker answers again";
    const [who, rest] =
      lost === 1
        ? ["does not answer", "what it has runs elsewhere when it stays away"]
        : ["do not answer", "what they have runs elsewhere when they stay away"];
    return `${lost} of ${this.#most} workers ${who}${isWorse ? `: ${rest}` : ""}`;
  }
}
