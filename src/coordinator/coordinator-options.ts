// The parts that a coordinator is put together from, and the last word of one that was fenced.
import type { Candidacy } from "../../machines/coordinator-role.ts";
import type { Clock } from "../base/clock.ts";
import type { IncarnationId, RunId } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import type { ItemLimits } from "../config/limits.ts";
import type { EventFeed } from "../observe/event-journal.ts";
import type { EventEmitter } from "../observe/events.ts";
import type { Logger } from "../observe/log.ts";
import type { Store } from "../storage/store.ts";
import type { BeforeClaimOptions } from "./before-claim.ts";
import type { Chance, LeaderElector } from "./lead/elector.ts";
import type { FencePatience } from "./lead/fence-patience.ts";
import type { LeaseRow } from "./lead/lease.ts";
import type { Role } from "./lead/role.ts";
import type { StoreMemory } from "./lead/store-memory.ts";
import type { FleetPorts } from "./fleet/fleets.ts";
import type { KeySettings } from "./keys/key-settings.ts";
import type { ItemBudgets } from "./ledger/ledger.ts";
import type { SignWorkerRequest } from "./rpc/enrolment-service.ts";
import type { Sight } from "./sight/sight.ts";
import type { RunLimits } from "./turn/run-terms.ts";
import type { CoordinatorState, LivenessSettings } from "./turn/state.ts";

export interface CoordinatorOptions {
  readonly runId: RunId;
  /** This start of the process: the nonce of its claims. */
  readonly incarnation: IncarnationId;
  /** The shared store: the ledger. */
  readonly store: Store;
  /** This host's own, held by this process alone: where its role is, and found the one of the process before. */
  readonly ownStore: Store;
  readonly liveness: LivenessSettings;
  readonly workersMax: number;
  readonly budgets: ItemBudgets;
  /** Where the run is paused; without them nowhere. */
  readonly runLimits?: RunLimits;
  readonly inboxMax: number;
  /** Limits of payloads and outputs; the configuration's defaults unless given. */
  readonly limits?: ItemLimits;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: EventEmitter;
  /** The events that operators read; without it they read none. */
  readonly eventFeed?: EventFeed;
  /** For those who look at its charts; without it nobody can. */
  readonly sight?: Sight;
  readonly log: Logger;
  /** How this process comes to lead. Undefined: it alone has the store, so it leads at once. */
  readonly elector?: LeaderElector;
  /** The role of the process, which outlasts this leadership; without it the coordinator takes and closes one. */
  readonly role?: Role;
  /** Told of the lease at each look, while it follows. */
  readonly onLook?: (lease: LeaseRow | undefined) => void;
  /** Whether it may claim what it has seen to be open; always unless said. */
  readonly candidacy?: (chance: Chance) => Candidacy;
  /** This host's memory of the store; without it nothing is remembered. */
  readonly memory?: StoreMemory;
  /** Whether to go on with a store that went back to an older state. */
  readonly acceptsRollback?: boolean;
  /** As in `BeforeClaimOptions`. */
  readonly explainRollback?: BeforeClaimOptions["explainRollback"];
  /** Ends the wait for the lease; `start` then throws the row `interrupted`. */
  readonly signal?: AbortSignal;
  /** Signs workers' certificates; undefined when this run's certificates come from elsewhere. */
  readonly sign: SignWorkerRequest | undefined;
  /** Settings of items that have keys; as in the configuration's defaults unless said. */
  readonly keys?: KeySettings;
  /** Without it there are no fleets. */
  readonly fleets?: FleetPorts;
  /** Workers that one enrolment bundle lets in; as in the configuration's defaults unless said. */
  readonly enrolmentQuota?: number;
  /** Whether this process renews the enrolment bundle of this id by itself. */
  readonly isOwnBundle?: (id: string) => boolean;
  /** Told of bearers whose certificates were revoked: to be kept out, and their sessions ended. First before it leads. Total. */
  readonly onRevoked?: (ids: readonly string[]) => void;
  /** How messages name this coordinator. */
  readonly advertisedAddress: string;
  /** Somebody else leads. Says so synchronously and ends the process; does not return. */
  readonly abortFenced: (fenced: Fenced) => void;
  /** The store cannot be trusted any more, or the program is wrong: the process has to end. */
  readonly onFatal: (error: unknown) => void;
  /**
   * Whether backlogs are stolen. Off only to see what it is worth.
   * @internal
   */
  readonly steals?: boolean;
  /**
   * Rows in one page of the scrub: few of them show what a large ledger would.
   * @internal
   */
  readonly scrubRows?: number;
  /**
   * How long the steps of its end are waited for when it is fenced.
   * @internal
   */
  readonly fencePatience?: FencePatience;
  /**
   * Looks at the state that each turn has left; see `TurnLoopOptions`.
   * @internal
   */
  readonly inspect?: (state: CoordinatorState) => void;
}

export interface Fenced {
  readonly epoch: number;
  readonly seenEpoch: number | null;
  readonly reason: string;
  /** Batches and effects that were tried and held back after the leadership had ended. */
  readonly refusedWrites: number;
  readonly refusedReplies: number;
}
