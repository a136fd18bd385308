// A store that says when it does not answer: a commit that has to be on stable storage and is not answered for long, because a disk hangs or
// a standby is away. Nobody loses a lease for it, since renewals are not synced; but nothing is acknowledged meanwhile.
import type { Clock, Timer } from "../../base/clock.ts";
import type { EventEmitter } from "../../observe/events.ts";
import type { Batch, CommitOutcome, Durability, Entry, ScanRange, Store } from "../../storage/store.ts";

export interface StallWatchOptions {
  readonly clock: Clock;
  readonly events: EventEmitter;
  /** Told of each commit that was answered. */
  readonly onAnswered?: (durability: Durability, tookMs: number) => void;
}

/** How long a synced commit may take before that is said, and again each time that it has taken twice as long. */
const STALLED_AFTER_MS = 2_000;

/** The same store in all else. A commit that is answered in time costs no timer of its own. */
export class StallWatch implements Store {
  readonly location: string;
  readonly supports: Store["supports"];
  readonly freeze?: () => Promise<Store>;
  readonly #store: Store;
  readonly #options: StallWatchOptions;
  /** Synced commits that are not answered: number → when they were sent, in that order. */
  readonly #unanswered = new Map<number, number>();
  #commits = 0;
  #timer: Timer | undefined;
  /** How long the one that is waited for has taken when that is said next. */
  #saidNextMs = STALLED_AFTER_MS;

  constructor(store: Store, options: StallWatchOptions) {
    this.location = store.location;
    this.supports = store.supports;
    this.#store = store;
    this.#options = options;
    if (store.freeze !== undefined) this.freeze = store.freeze.bind(store);
  }

  get everWritten(): boolean {
    return this.#store.everWritten;
  }

  get generation(): string {
    return this.#store.generation;
  }

  get(key: string): Promise<Uint8Array | undefined> {
    return this.#store.get(key);
  }

  getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    return this.#store.getMany(keys);
  }

  scan(range: ScanRange): Promise<Entry[]> {
    return this.#store.scan(range);
  }

  commit(batch: Batch): Promise<CommitOutcome> {
    const answer = this.#store.commit(batch);
    if (batch.durability === "sync") void this.#watch(answer);
    else if (this.#options.onAnswered !== undefined) void this.#time(answer);
    return answer;
  }

  async close(): Promise<void> {
    await this.#store.close();
    this.#timer?.cancel();
  }

  /** How long the synced commit has waited that waits for longest; 0 when none does. */
  get unansweredMs(): number {
    const [oldestMs] = this.#unanswered.values();
    return oldestMs === undefined ? 0 : this.#options.clock.monotonicMs() - oldestMs;
  }

  async #time(answer: Promise<CommitOutcome>): Promise<void> {
    const { clock, onAnswered } = this.#options;
    const sentMs = clock.monotonicMs();
    const isAnswered = await answer.then(
      ({ kind }) => kind !== "unknown",
      () => false,
    );
    if (isAnswered) onAnswered?.("flush", clock.monotonicMs() - sentMs);
  }

  async #watch(answer: Promise<CommitOutcome>): Promise<void> {
    const number = ++this.#commits;
    const sentMs = this.#options.clock.monotonicMs();
    this.#unanswered.set(number, sentMs);
    if (this.#timer === undefined) this.#look(STALLED_AFTER_MS);
    // An error is the caller's to hear.
    const kind = await answer.then(
      (outcome) => outcome.kind,
      () => "unknown",
    );
    this.#unanswered.delete(number);
    if (kind !== "unknown") this.#options.onAnswered?.("sync", this.#options.clock.monotonicMs() - sentMs);
    // A commit that was given up says nothing about the store: one that is answered does.
    if (kind === "unknown" || this.#saidNextMs === STALLED_AFTER_MS) return;
    this.#saidNextMs = STALLED_AFTER_MS;
    const forMs = Math.round(this.#options.clock.monotonicMs() - sentMs);
    this.#options.events.emit("store_answering", { for_ms: forMs });
  }

  #look(afterMs: number): void {
    this.#timer = this.#options.clock.after(afterMs, () => this.#judge(), { background: true });
  }

  #judge(): void {
    this.#timer = undefined;
    const [oldestMs] = this.#unanswered.values();
    if (oldestMs === undefined) return;
    const { clock, events } = this.#options;
    const waitedMs = clock.monotonicMs() - oldestMs;
    if (waitedMs >= this.#saidNextMs) {
      events.emit("store_stalled", { for_ms: Math.round(waitedMs) });
      this.#saidNextMs = 2 * Math.max(waitedMs, this.#saidNextMs);
    }
    this.#look(Math.max(this.#saidNextMs - waitedMs, 1));
  }
}
