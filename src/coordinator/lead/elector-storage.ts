// The elector for a store that several processes have open. A challenger takes the lease when it is free, or when it has
// seen the row unchanged for a TTL on its own clock; a leader renews it, and stops by itself before that TTL can be over.
//
// Keeps true: no wall clock, no clock of another machine and no answer of unknown age takes part. The leader counts from the
// moment at which it sent its last successful renewal, the challenger from when it had read the row. A leadership that has
// passed its deadline is over for good. All this is only about who tries; that nobody else can write is the epoch row's (C1).
import { assert } from "../../base/assert.ts";
import type { Clock, Timer } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { failure, RolloutError } from "../../base/errors.ts";
import type { Epoch } from "../../base/ids.ts";
import type { Logger } from "../../observe/log.ts";
import { isSameValue } from "../../storage/store.ts";
import { LeaseCheck } from "./elector.ts";
import type { Campaign, Chance, LeaderElector, Loss } from "./elector.ts";
import type { Leadership, LeaseRows, LostEpochs, StorageLease } from "./lease.ts";
import type { Watchdog } from "./watchdog.ts";

/** `renewalMs` is at most a third of `ttlMs`, `deadlineMs` at most four fifths. */
export interface LeaseTiming {
  /** How long a challenger has to see the row unchanged. */
  readonly ttlMs: number;
  readonly renewalMs: number;
  /** How long a leader leads from when it sent its last successful renewal. */
  readonly deadlineMs: number;
}

export interface StorageElectorOptions {
  readonly lease: StorageLease;
  readonly timing: LeaseTiming;
  readonly clock: Clock;
  readonly log: Logger;
  readonly watchdog: Watchdog;
  /** Told of each renewal that was tried. */
  readonly onRenewal?: (isRenewed: boolean) => void;
}

interface Term {
  readonly epoch: Epoch;
  readonly onLost: Campaign["onLost"];
  readonly check: LeaseCheck;
  /** Monotonic. */
  deadlineMs: number;
}

/** The same row since then. */
interface Sighting {
  readonly leaseBytes: Uint8Array | null;
  readonly sinceMs: number;
}

/** Errors of a store that this program does not lead, however often it looks. */
const UNLEADABLE: ReadonlySet<string> = new Set(["store_corrupt", "store_newer", "store_rolled_back"]);

/** A challenger looks so many times while a leader renews once, and this often at least: a lease that is resigned is taken at once. */
const LOOKS_PER_RENEWAL = 4;
const LOOK_MAX_MS = 250;

export class StorageElector implements LeaderElector {
  readonly #options: StorageElectorOptions;
  #term: Term | undefined;
  #isOver = false;
  #renewing: Promise<void> = Promise.resolve();
  #nextRenewal: Timer | undefined;
  #deadline: Timer | undefined;
  #isBlind = false;

  constructor(options: StorageElectorOptions) {
    this.#options = options;
  }

  async campaign(campaign: Campaign): Promise<Leadership> {
    const { signal, mayClaim, onBeaten, onLook } = campaign;
    const { clock } = this.#options;
    let sighting: Sighting | undefined;
    while (signal?.aborted !== true) {
      const askedMs = clock.monotonicMs();
      const rows = await this.#look();
      if (rows !== undefined) {
        onLook?.(rows.lease);
        const isSame = sighting !== undefined && isSameValue(sighting.leaseBytes, rows.leaseBytes);
        sighting = isSame ? sighting : { leaseBytes: rows.leaseBytes, sinceMs: clock.monotonicMs() };
        const chance = this.#chanceIn(rows, Math.max(0, askedMs - (sighting?.sinceMs ?? askedMs)));
        if (chance !== undefined && ((await mayClaim?.(chance)) ?? true)) {
          const leadership = await this.#take(rows, campaign);
          if (leadership !== undefined) return leadership;
          await onBeaten?.();
        }
      }
      await sleep(clock, this.#pauseMs(sighting), signal);
    }
    throw failure("interrupted", {});
  }

  mayAct(): boolean {
    return !this.#isOver && this.#term !== undefined && !this.#hasPassed(this.#term);
  }

  async isLeader({ doubted = false } = {}): Promise<boolean> {
    const term = this.#term;
    if (term === undefined || !this.mayAct()) return false;
    const finding = await term.check.ask(doubted);
    if (finding.kind === "other") this.#lose(otherHolder(finding.seenEpoch));
    return finding.kind === "own" && this.mayAct();
  }

  async resign(): Promise<void> {
    assert(this.#term !== undefined, "who resigns has led");
    const mayWrite = this.mayAct();
    if (this.#isOver) return;
    this.#end();
    this.#options.watchdog.release();
    await this.#renewing;
    if (mayWrite) await this.#options.lease.resign();
  }

  /** `quietForMs`: how long the rows were at least as they are. */
  #chanceIn(rows: LeaseRows, quietForMs: number): Chance | undefined {
    const { lease, timing } = this.#options;
    if (lease.isFree(rows)) return { opening: "free", openForMs: quietForMs, quietForMs };
    const openForMs = quietForMs - timing.ttlMs;
    return openForMs >= 0 ? { opening: "quiet", openForMs, quietForMs } : undefined;
  }

  /** Undefined when the store cannot be read now; a row that cannot be understood is thrown. */
  async #look(): Promise<LeaseRows | undefined> {
    try {
      const rows = await this.#options.lease.read();
      this.#isBlind = false;
      return rows;
    } catch (err) {
      this.#throwUnlessPassing(err);
      return undefined;
    }
  }

  /** A store that cannot be led stays so. One that does not answer now may do so later. */
  #throwUnlessPassing(err: unknown): void {
    if (err instanceof RolloutError && UNLEADABLE.has(err.code)) throw err;
    if (!this.#isBlind) this.#options.log.warn("the lease cannot be read; trying on", { err });
    this.#isBlind = true;
  }

  /** Undefined when it is not taken, and may be the next time. */
  async #take(
    rows: LeaseRows,
    { onLost, beforeTake }: Pick<Campaign, "onLost" | "beforeTake">,
  ): Promise<Leadership | undefined> {
    const { lease, clock, timing, log } = this.#options;
    let lost: LostEpochs | undefined;
    try {
      lost = await beforeTake?.(rows);
    } catch (err) {
      this.#throwUnlessPassing(err);
      return undefined;
    }
    const sentMs = clock.monotonicMs();
    const outcome = await lease.take(rows, lost).catch((err: unknown) => {
      this.#throwUnlessPassing(err);
      return { kind: "beaten" } as const;
    });
    if (outcome.kind === "unclear")
      log.warn("a claim of the lease failed; trying on", { err: outcome.cause });
    if (outcome.kind !== "taken") return undefined;
    const { epoch } = outcome.leadership;
    const check = new LeaseCheck(lease, clock, epoch);
    const term = { epoch, onLost, check, deadlineMs: sentMs + timing.deadlineMs };
    // An answer that took too long: the row is ours and nobody leads under it, so it is taken again.
    if (this.#hasPassed(term)) return undefined;
    this.#term = term;
    this.#extend(term, sentMs);
    this.#renewLater(term, sentMs);
    return outcome.leadership;
  }

  #pauseMs(sighting: Sighting | undefined): number {
    const { clock, timing } = this.#options;
    const lookMs = Math.min(timing.renewalMs / LOOKS_PER_RENEWAL, LOOK_MAX_MS);
    if (sighting === undefined) return lookMs;
    const leftMs = sighting.sinceMs + timing.ttlMs - clock.monotonicMs();
    return leftMs > 0 ? Math.min(lookMs, leftMs) : lookMs;
  }

  #renewLater(term: Term, sentMs: number): void {
    const { clock, timing } = this.#options;
    this.#nextRenewal = clock.after(sentMs + timing.renewalMs - clock.monotonicMs(), () => {
      this.#renewing = this.#renew(term);
    });
  }

  async #renew(term: Term): Promise<void> {
    const { lease, clock, log, onRenewal } = this.#options;
    if (this.#hasPassed(term)) return this.#lose(DEADLINE_PASSED);
    const sentMs = clock.monotonicMs();
    const outcome = await lease.renew();
    onRenewal?.(outcome.kind === "renewed");
    if (this.#isOver) return;
    if (outcome.kind === "fenced") return this.#lose(otherHolder(outcome.seenEpoch));
    if (this.#hasPassed(term)) return this.#lose(DEADLINE_PASSED);
    if (outcome.kind === "renewed") this.#extend(term, sentMs);
    else log.warn("the lease was not renewed; trying on until its deadline", { err: outcome.cause });
    this.#renewLater(term, sentMs);
  }

  #extend(term: Term, sentMs: number): void {
    const { clock, timing, watchdog } = this.#options;
    term.deadlineMs = sentMs + timing.deadlineMs;
    term.check.confirm(sentMs);
    watchdog.guard(term.epoch, term.deadlineMs);
    this.#deadline?.cancel();
    this.#deadline = clock.after(term.deadlineMs - clock.monotonicMs(), () => this.#lose(DEADLINE_PASSED));
  }

  #hasPassed(term: Term): boolean {
    return this.#options.clock.monotonicMs() >= term.deadlineMs;
  }

  #lose(loss: Loss): void {
    if (this.#isOver) return;
    this.#end();
    this.#term?.onLost(loss);
  }

  #end(): void {
    this.#isOver = true;
    this.#nextRenewal?.cancel();
    this.#deadline?.cancel();
  }
}

const DEADLINE_PASSED: Loss = { reason: "the lease was not renewed before its deadline", seenEpoch: null };

function otherHolder(seenEpoch: Epoch | null): Loss {
  return { reason: "another coordinator holds the lease", seenEpoch };
}
