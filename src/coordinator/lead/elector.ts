// The port by which a coordinator comes to lead, and hears that it does not lead any more. The store decides; an elector asks
// it. Workers never vote.
//
// The room of leadership: `role` is this process's part in it, `lease` the row that says who leads, `elector` the port and its kind
// for a store of one process, `elector-storage` the kind for a shared one; `watchdog` and `watchdog-thread` end a leader that is stuck, and
// `fence-patience` is how long the end of one that was fenced waits. `attendance` is its part among all that share the store: `presence` is its own row,
// `roster` the others', `coordinator-snapshot` what a leader tells them, `authority-record` the CA that they have in common. `store-memory` knows how far
// the store has been, `stall-watch` says when it does not answer.
import type { Epoch } from "../../base/ids.ts";
import type { BeforeTake, Leadership, LeaseRow, LeaseRows, StorageLease } from "./lease.ts";
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { assert } from "../../base/assert.ts";

/** Why a leadership has ended against the leader's will. */
export interface Loss {
  readonly reason: string;
  /** The epoch that was found in place of one's own; null when none was. */
  readonly seenEpoch: Epoch | null;
}

/** Why a lease may be claimed: nobody holds it, or nobody has renewed it for as long as it lives. */
export type Opening = "free" | "quiet";

export interface Chance {
  readonly opening: Opening;
  /** For how long there has been this one, as far as this candidate has seen. */
  readonly openForMs: number;
  /** For how long the row has stood there unchanged. */
  readonly quietForMs: number;
}

export interface Campaign {
  /** Aborted, the campaign is given up: it rejects with the row `interrupted`. */
  readonly signal?: AbortSignal;
  /** Asked before each claim: whether this candidate is to try. Without it, it always is. */
  readonly mayClaim?: (chance: Chance) => Promise<boolean>;
  /** Looks at the store before each claim; what it throws of a store that cannot be led ends the campaign, before anything is written. */
  readonly beforeTake?: BeforeTake;
  /** A claim that it might try has come to nothing. */
  readonly onBeaten?: () => Promise<void>;
  /** Told of the lease at each look. */
  readonly onLook?: (lease: LeaseRow | undefined) => void;
  /** Called once at most, when the leadership that was won is lost. */
  readonly onLost: (loss: Loss) => void;
}

/** The elector of one process. A process that has lost or resigned does not stand again: it ends. */
export interface LeaderElector {
  /** Resolves when this process leads, however long that takes. Throws store_… rows. Called once. */
  campaign(campaign: Campaign): Promise<Leadership>;
  /**
   * Whether what a leader does may be done at this moment, as far as this process can tell by itself. To be asked at each
   * use: before a commit, and before effects leave. Once false after the campaign, it stays so.
   */
  mayAct(): boolean;
  /**
   * Whether the store says so too. False when it cannot be read. The answer is up to a second old, and never older than
   * what `mayAct` knows. `doubted`: somebody has heard of a later leader, so an answer without a look is not enough; the
   * store is asked once a second at most all the same.
   */
  isLeader(options?: { readonly doubted?: boolean }): Promise<boolean>;
  /** Lets go of the lease, for whoever comes next to take it at once. Writes nothing after a loss. Throws what the store throws. */
  resign(): Promise<void>;
}

export type Finding =
  | { readonly kind: "own" }
  | { readonly kind: "other"; readonly seenEpoch: Epoch | null }
  | { readonly kind: "unreadable" };

/** How old an answer may be, and how long one is waited for. */
const ANSWER_AGE_MAX_MS = 1_000;

/**
 * The look at the lease that answers `isLeader`: whether the row still names this leadership. Keeps true: the store is read once a
 * second at most, one reading at a time, and an answer is at most a second old.
 */
export class LeaseCheck {
  readonly #lease: StorageLease;
  readonly #clock: Clock;
  readonly #epoch: Epoch;
  #confirmedMs = -Infinity;
  #readMs = -Infinity;
  #finding: Promise<Finding> = Promise.resolve({ kind: "unreadable" });

  /** Checks the leadership of `epoch`. */
  constructor(lease: StorageLease, clock: Clock, epoch: Epoch) {
    this.#lease = lease;
    this.#clock = clock;
    this.#epoch = epoch;
  }

  /** The store has shown the row to be ours in a call that was made at `sentMs`. */
  confirm(sentMs: number): void {
    this.#confirmedMs = Math.max(this.#confirmedMs, sentMs);
  }

  /** `doubted`: what another call has shown is not enough. */
  ask(doubted: boolean): Promise<Finding> {
    const nowMs = this.#clock.monotonicMs();
    if (!doubted && nowMs - this.#confirmedMs < ANSWER_AGE_MAX_MS) return Promise.resolve({ kind: "own" });
    if (nowMs - this.#readMs < ANSWER_AGE_MAX_MS) return this.#finding;
    this.#readMs = nowMs;
    this.#finding = this.#read(nowMs);
    return this.#finding;
  }

  async #read(sentMs: number): Promise<Finding> {
    const patience = new AbortController();
    const found = await Promise.race([
      this.#lease.read().catch(() => undefined),
      sleep(this.#clock, ANSWER_AGE_MAX_MS, patience.signal),
    ]);
    patience.abort();
    if (found === undefined) return { kind: "unreadable" };
    if (!this.#isOwn(found)) return { kind: "other", seenEpoch: found.lease?.epoch ?? null };
    this.confirm(sentMs);
    return { kind: "own" };
  }

  /** An epoch is never given twice, so the one in the row says whose it is. */
  #isOwn({ lease, epoch }: LeaseRows): boolean {
    return lease?.epoch === this.#epoch && epoch === this.#epoch && lease.holder !== null;
  }
}

/**
 * The elector for a store that one process alone can have open: holding the store proves that no other leader lives. It skips the
 * wait, never the claim, so the epoch grows at each start; and there is no deadline.
 */
export class StaticElector implements LeaderElector {
  readonly #lease: StorageLease;
  readonly #clock: Clock;
  #term: { readonly check: LeaseCheck; readonly onLost: Campaign["onLost"] } | undefined;
  #isOver = false;

  constructor(lease: StorageLease, clock: Clock) {
    this.#lease = lease;
    this.#clock = clock;
  }

  async campaign({ onLost, mayClaim, beforeTake }: Campaign): Promise<Leadership> {
    const isWanted = (await mayClaim?.({ opening: "free", openForMs: 0, quietForMs: 0 })) ?? true;
    assert(isWanted, "a coordinator that nobody shares the store with is electable");
    const sentMs = this.#clock.monotonicMs();
    const leadership = await this.#lease.claim(beforeTake);
    const check = new LeaseCheck(this.#lease, this.#clock, leadership.epoch);
    check.confirm(sentMs);
    this.#term = { check, onLost };
    return leadership;
  }

  mayAct(): boolean {
    return this.#term !== undefined && !this.#isOver;
  }

  async isLeader({ doubted = false } = {}): Promise<boolean> {
    if (this.#term === undefined || this.#isOver) return false;
    const finding = await this.#term.check.ask(doubted);
    if (finding.kind === "other" && this.mayAct()) {
      this.#isOver = true;
      this.#term.onLost({ reason: "another coordinator holds the lease", seenEpoch: finding.seenEpoch });
    }
    return finding.kind === "own" && this.mayAct();
  }

  async resign(): Promise<void> {
    assert(this.#term !== undefined, "who resigns has led");
    if (this.#isOver) return;
    this.#isOver = true;
    await this.#lease.resign();
  }
}
