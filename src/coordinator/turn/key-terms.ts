// Keys in the coordinator's words, as those who ask see them: operators, workers, and another run that takes them.
import type { WorkerId } from "../../base/ids.ts";
import type { KeyPhase } from "../../gen/rollout/v1/run_pb.ts";
import type { KeyStanding } from "../keys/awaited-keys.ts";
import type { ToldKey, Unmovable } from "../keys/moving.ts";
import type { Place } from "../ledger/place.ts";

/** A key as the coordinator has it in memory. */
export interface SeenKey {
  readonly key: string;
  /** It is the lane of that actor's named actions; `key` is the actor's. */
  readonly isOfActions: boolean;
  readonly phase: KeyPhase;
  readonly partition: number;
  /** By the ring. */
  readonly owner: WorkerId | undefined;
  /** Items that are to run, the head included. */
  readonly items: number;
  readonly head: Place | undefined;
  readonly isPaused: boolean;
  readonly hasFailed: boolean;
  /** 0: it never had a state. */
  readonly commit: number;
  readonly hasState: boolean;
  /** See `DoneRecord.previous`. */
  readonly last: Place | undefined;
  readonly standing: KeyStanding;
  /** Only of one key that is asked for; undefined for one that is no actor, or waits for nothing. */
  readonly asks?: SeenAsks | undefined;
}

/** An actor's part of a key. Times are wall time. */
export interface SeenAsks {
  readonly timers: readonly {
    readonly id: string;
    readonly dueAtMs: number;
    readonly event: Uint8Array;
    /** Empty: the actor itself. */
    readonly to: string;
  }[];
  /** `head`: its item; undefined when it is final. */
  readonly invocations: readonly {
    readonly id: string;
    readonly source: string;
    readonly head: Place | undefined;
  }[];
  /** Their keys. */
  readonly children: readonly string[];
  /** Named actions that are not done; undefined when there are none. */
  readonly actions: { readonly open: number; readonly failed: Place | undefined } | undefined;
  readonly isFinal: boolean;
  readonly retiresAtMs: number | undefined;
  readonly parent: string | undefined;
}

export interface OwnPartition {
  readonly partition: number;
  /** The last one; undefined when there is none. */
  readonly checkpoint: { readonly offset: number; readonly place: string } | undefined;
}

export interface OwnPartitions {
  readonly epoch: number;
  readonly partitions: readonly OwnPartition[];
  /** 0: the run has no keys. */
  readonly totalPartitions: number;
}

export interface SeenKeys {
  readonly keys: readonly SeenKey[];
  /** Where to go on; empty when nothing follows. */
  readonly after: string;
  /** The commit of the next state that changes. */
  readonly commit: number;
}

export interface ToldKeys {
  readonly keys: readonly ToldKey[];
  /** Keys that cannot be told as they are. */
  readonly unmovable: readonly { readonly key: string; readonly why: Unmovable }[];
  /** Where to go on; empty when nothing follows. */
  readonly after: string;
}

export interface TakenKeys {
  readonly kind: "taken";
  readonly taken: number;
  /** Taken by an earlier call. */
  readonly known: number;
  /** Keys that the run has for another reason. */
  readonly there: readonly string[];
}
