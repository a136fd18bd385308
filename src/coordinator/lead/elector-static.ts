// The elector for a store that one process alone can have open: holding the store proves that no other leader lives. It
// skips the wait, never the claim, so the epoch grows at each start; and there is no deadline.
import type { Clock } from "../../base/clock.ts";
import { assert } from "../../base/assert.ts";
import { LeaseCheck } from "./lease-check.ts";
import type { Campaign, LeaderElector } from "./elector.ts";
import type { Leadership, StorageLease } from "./lease.ts";

export class StaticElector implements LeaderElector {
  readonly #lease: StorageLease;
  readonly #clock: Clock;
  #term: { readonly check: LeaseCheck; readonly onLost: Campaign["onLost"] } | undefined;
  #isOver = false;

  constructor(lease: StorageLease, clock: Clock) {
    this.#lease = lease;
    this.#clock = clock;
  }

  async campaign({ onLost }: Campaign): Promise<Leadership> {
    const sentMs = this.#clock.monotonicMs();
    const leadership = await this.#lease.claim();
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
