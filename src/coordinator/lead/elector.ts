// The port by which a coordinator comes to lead, and hears that it does not lead any more. The store decides; an elector asks
// it. Workers never vote.
//
// The room of leadership: `lease` is the row that says who leads, `elector` the port, `elector-static` and `elector-storage`
// its two kinds, `lease-check` their look at the row; `watchdog`, `watchdog-worker` and `watchdog-thread` end a leader that is
// stuck.
import type { Epoch } from "../../base/ids.ts";
import type { Leadership } from "./lease.ts";

/** Why a leadership has ended against the leader's will. */
export interface Loss {
  readonly reason: string;
  /** The epoch that was found in place of one's own; null when none was. */
  readonly seenEpoch: Epoch | null;
}

export interface Campaign {
  /** Aborted, the campaign is given up: it rejects with the row `interrupted`. */
  readonly signal?: AbortSignal;
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
