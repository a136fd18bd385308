// How fast a run goes and how long it will take, from counts that were read of it now and then. Pure: times come in. Keeps
// true: nothing is estimated before there is evidence, and an estimate is a range that is as wide as the evidence is thin.

/** Counts of a run at one moment. */
export interface RunCounts {
  /** Waiting, `delayed` included. */
  readonly pending: number;
  /** Waiting for a while after a failure. */
  readonly delayed: number;
  /** With workers, started or not. */
  readonly running: number;
  readonly done: number;
  readonly failed: number;
  /** The run's state, if it is known: one that is paused has no pace. */
  readonly state?: string;
  /** Items between actors, which are in none of the others. */
  readonly inside?: { readonly pending: number; readonly running: number } | undefined;
  /** Timers that are armed, and how long until the next. */
  readonly timers?: { readonly armed: number; readonly nextInMs: number } | undefined;
}

export type Pace =
  /** Too little has been seen to say anything. */
  | { readonly kind: "unknown" }
  | {
      readonly kind: "steady";
      /** Items that become final, over a recent window. */
      readonly perSecond: number;
      /** How long what is left will take. `atMost` is undefined when the evidence sets no bound. */
      readonly left: { readonly atLeastMs: number; readonly atMostMs: number | undefined };
    }
  /** There is work, and nothing has become final for much longer than before. */
  | { readonly kind: "stalled"; readonly forMs: number };

interface Sample {
  readonly atMs: number;
  /** Items that have become final since the first sample; never falls, not even when failed ones are retried. */
  readonly finished: number;
}

const WINDOW_MS = 30_000;
/** The window reaches farther back for slow items, until it has so many of them. */
const WINDOW_FINISHED = 30;
const WINDOW_MAX_MS = 15 * 60_000;
/** Less is no evidence. */
const EVIDENCE_FINISHED = 5;
const EVIDENCE_MS = 2_000;
/** The window is cut into so many slices: how much they differ is how much the future may. */
const SLICES = 10;
/** Nine tenths of a normal distribution lie within so many deviations. */
const DEVIATIONS = 1.64;
/** The rest of a run is never known better than this, however much was seen. */
const DOUBT_MIN = 0.1;
const STALL_MIN_MS = 15_000;
const STALL_GAPS = 6;
const FIRST_STALL_MS = 60_000;
/** Samples that are closer than this replace each other; so many are kept. */
const SAMPLE_MS = 500;
const SAMPLES_MAX = 1_000;

/** Watches one run. Bounded, however long the run is. */
export class PaceMeter {
  #samples: Sample[] = [];
  #lastFinal = 0;
  #lastFinishAtMs: number | undefined;
  #left = 0;

  /**
   * Counts that were read at `atMs`, monotonic. `finishedPerSecond`, latest last, makes up for what this meter has not seen: it
   * is read with the first counts only.
   */
  take(atMs: number, counts: RunCounts, finishedPerSecond: readonly number[] = []): void {
    const final = counts.done + counts.failed;
    this.#left = counts.pending + counts.running;
    if (counts.state === "paused") {
      // The pace before a pause says nothing about the pace after it.
      this.#samples = [{ atMs, finished: 0 }];
      [this.#lastFinal, this.#lastFinishAtMs] = [final, undefined];
      return;
    }
    const last = this.#samples.at(-1);
    if (last === undefined) {
      this.#seed(atMs, finishedPerSecond);
      this.#lastFinal = final;
      return;
    }
    const more = Math.max(0, final - this.#lastFinal);
    this.#lastFinal = final;
    if (more > 0) this.#lastFinishAtMs = atMs;
    // Waiting for workers to come up says nothing about how fast they are.
    if (last.finished === 0 && more === 0 && counts.running === 0) {
      this.#samples = [{ atMs, finished: 0 }];
      return;
    }
    const before = this.#samples.at(-2);
    if (before !== undefined && last.atMs - before.atMs < SAMPLE_MS) this.#samples.pop();
    this.#samples.push({ atMs, finished: last.finished + more });
    if (this.#samples.length > SAMPLES_MAX) this.#thin();
  }

  /** `left`, when it is known better than by the counts: lines that are still to be submitted are not in them. */
  pace(nowMs: number, left = this.#left): Pace {
    const first = this.#samples[0];
    if (first === undefined || left === 0) return { kind: "unknown" };
    const window = this.#window();
    const silentMs = nowMs - (this.#lastFinishAtMs ?? first.atMs);
    const { spanMs, count } = window;
    const patienceMs = count === 0 ? FIRST_STALL_MS : Math.max(STALL_MIN_MS, (STALL_GAPS * spanMs) / count);
    if (silentMs > patienceMs) return { kind: "stalled", forMs: silentMs };
    if (count < EVIDENCE_FINISHED || spanMs < EVIDENCE_MS) return { kind: "unknown" };
    const doubt = Math.max(DEVIATIONS * this.#deviation(window), DOUBT_MIN * count);
    const perMs = count / spanMs;
    return {
      kind: "steady",
      perSecond: perMs * 1_000,
      left: {
        atLeastMs: (left * spanMs) / (count + doubt),
        atMostMs: count > doubt ? (left * spanMs) / (count - doubt) : undefined,
      },
    };
  }

  #seed(atMs: number, finishedPerSecond: readonly number[]): void {
    let finished = 0;
    const startMs = atMs - finishedPerSecond.length * 1_000;
    this.#samples = [{ atMs: startMs, finished }];
    for (const [at, count] of finishedPerSecond.entries()) {
      finished += count;
      const endMs = startMs + (at + 1) * 1_000;
      if (count > 0) this.#lastFinishAtMs = endMs;
      this.#samples.push({ atMs: endMs, finished });
    }
  }

  #window(): { readonly from: Sample; readonly to: Sample; readonly spanMs: number; readonly count: number } {
    const to = this.#samples.at(-1) ?? { atMs: 0, finished: 0 };
    const isEnough = ({ atMs, finished }: Sample): boolean =>
      (to.atMs - atMs >= WINDOW_MS && to.finished - finished >= WINDOW_FINISHED) ||
      to.atMs - atMs >= WINDOW_MAX_MS;
    const from = this.#samples.findLast(isEnough) ?? this.#samples[0] ?? to;
    return { from, to, spanMs: to.atMs - from.atMs, count: to.finished - from.finished };
  }

  /** The deviation of the count in a window as long as this one. At least that of independent items. */
  #deviation({ from, spanMs, count }: { from: Sample; spanMs: number; count: number }): number {
    const mean = count / SLICES;
    let before = from.finished;
    let squares = 0;
    for (let slice = 1; slice <= SLICES; slice++) {
      const after = this.#finishedAt(from.atMs + (slice * spanMs) / SLICES);
      squares += (after - before - mean) ** 2;
      before = after;
    }
    return Math.sqrt(Math.max(count, (SLICES * squares) / (SLICES - 1)));
  }

  /** Between two samples, in proportion. */
  #finishedAt(atMs: number): number {
    const at = this.#samples.findIndex((sample) => sample.atMs >= atMs);
    const [before, after] = [this.#samples[at - 1], this.#samples[at]];
    if (after === undefined) return this.#samples.at(-1)?.finished ?? 0;
    if (before === undefined || after.atMs === before.atMs) return after.finished;
    const share = (atMs - before.atMs) / (after.atMs - before.atMs);
    return before.finished + share * (after.finished - before.finished);
  }

  /** Every other one of the older half. */
  #thin(): void {
    const half = this.#samples.length / 2;
    this.#samples = this.#samples.filter((_, at) => at >= half || at % 2 === 0);
  }
}
