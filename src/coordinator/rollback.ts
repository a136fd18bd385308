// A store that went back to an older state: how that is said, and how a leader hears of it from its workers, which remember on their own disks
// what they have seen. Their word alone does nothing while the lease can be read and says otherwise.
import { failure } from "../base/errors.ts";
import type { RolloutError } from "../base/errors.ts";
import type { EventEmitter } from "../observe/events.ts";
import type { Logger } from "../observe/log.ts";
import type { Store } from "../storage/store.ts";
import type { StorageLease } from "./lead/lease.ts";
import type { Role } from "./lead/role.ts";
import { isBelievable, NO_EXTENT, rollbackTo } from "./lead/store-memory.ts";
import type { StoreMemory, StoreRollback } from "./lead/store-memory.ts";

/** `accepted`: how often somebody has gone on, this time included; 0 when nobody does. */
export function announceRollback(events: EventEmitter, rollback: StoreRollback, accepted: number): void {
  const { found, seen, missing } = rollback;
  events.emit("store_rolled_back", {
    epoch: found.epoch,
    seen_epoch: seen.epoch,
    missing_results: missing.done,
    missing_items: missing.submitted,
    accepted,
  });
}

export function rolledBack(store: Store, { missing }: StoreRollback): RolloutError {
  const words = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;
  return failure("store_rolled_back", {
    path: store.location,
    missing: `${words(missing.done, "result")} and ${words(missing.submitted, "item")}`,
  });
}

/** The role of a process that must not lead the store. Its own disk may not take that: it ends all the same. Never rejects. */
export async function haltRole(role: Role, { missing }: StoreRollback): Promise<void> {
  const reason = "the store went back to an older state than was seen of it";
  await role.halt({ reason, missing: missing.done }).catch(() => undefined);
}

export interface RollbackWatchOptions {
  readonly store: Store;
  readonly lease: StorageLease;
  readonly memory: StoreMemory | undefined;
  readonly role: Role;
  readonly events: EventEmitter;
  readonly log: Logger;
  /** Whether this process leads as far as the store says, asked of the store. */
  readonly isLeader: () => Promise<boolean>;
  /** The store went back: this process must not go on. */
  readonly onRolledBack: (error: RolloutError) => void;
}

export class RollbackWatch {
  readonly #options: RollbackWatchOptions;
  #isJudging = false;
  #isOver = false;

  constructor(options: RollbackWatchOptions) {
    this.#options = options;
  }

  /**
   * A worker has seen this epoch of the store. Either somebody leads under it, and this process is deposed; or somebody did, and the store has
   * lost that. Where the store cannot be read now, the next beat asks again. Total.
   */
  heard(epochSeen: number): void {
    if (!isBelievable(epochSeen) || this.#isJudging || this.#isOver) return;
    this.#isJudging = true;
    const { log } = this.#options;
    this.#judge(epochSeen)
      .catch((err: unknown) =>
        log.warn("a worker has seen a later leader, and the lease cannot be read", { err }),
      )
      .finally(() => (this.#isJudging = false));
  }

  async #judge(epochSeen: number): Promise<void> {
    const { store, lease, memory, role, events, isLeader, onRolledBack } = this.#options;
    if (!(await isLeader())) return;
    const rows = await lease.read();
    const found = { ...NO_EXTENT, epoch: Math.max(rows.lease?.epoch ?? -1, rows.epoch ?? -1) };
    const rollback = rollbackTo(found, { ...NO_EXTENT, epoch: epochSeen });
    if (rollback === undefined) return;
    this.#isOver = true;
    memory?.note({ epoch: epochSeen });
    await memory?.keep();
    announceRollback(events, rollback, 0);
    await haltRole(role, rollback);
    onRolledBack(rolledBack(store, rollback));
  }
}
