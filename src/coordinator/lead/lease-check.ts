// The look at the lease that answers `isLeader`: whether the row still names this leadership. Keeps true: the store is
// read once a second at most, one reading at a time, and an answer is at most a second old.
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import type { Epoch } from "../../base/ids.ts";
import type { LeaseRows, StorageLease } from "./lease.ts";

export type Finding =
  | { readonly kind: "own" }
  | { readonly kind: "other"; readonly seenEpoch: Epoch | null }
  | { readonly kind: "unreadable" };

/** How old an answer may be, and how long one is waited for. */
const ANSWER_AGE_MAX_MS = 1_000;

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
