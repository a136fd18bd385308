// Inputs: everything that can happen to a coordinator. The edges (rpc/, the scan's timer) turn the world into inputs and decide
// nothing; the reactor turns inputs into decisions and touches nothing.
import type { IncarnationId, WorkerId } from "../../base/ids.ts";
import type { FoundClaims, FoundReport } from "../ledger/lookups.ts";
import type { FailedItem, ItemSighting } from "../ledger/ledger.ts";
import type { ListPartitionsResponse, SteerKeysResponse } from "../../gen/rollout/v1/keys_pb.ts";
import type { KeyAction } from "../keys/key.ts";
import type { LoadedKey } from "../keys/key-memory.ts";
import type { OwnPartitions, SeenKey, SeenKeys, TakenKeys, ToldKeys } from "./key-terms.ts";
import type { MovedKey } from "../keys/moving.ts";
import type { ScrubbedPage } from "../ledger/scrub.ts";
import type { LoadedWindow } from "../ledger/window-loads.ts";
import type { Damage } from "../../storage/codec.ts";
import type {
  AtWork,
  GetRunResponse,
  GetWorkerResponse,
  KeyPhase,
  ListWorkersResponse,
  RevokeResponse,
} from "../../gen/rollout/v1/run_pb.ts";
import type { CreatedRelease, ReleaseStatus } from "../../gen/rollout/v1/release_pb.ts";
import type { ChangedFleets } from "../fleet/fleets.ts";
import type { FleetAnswer } from "../fleet/ports.ts";
import type { FleetDecision, FleetsShown, FleetVerdict } from "../fleet/operator.ts";
import type { ReleaseRefusal, ReleaseRequest, ReleaseSteering } from "../release/operator.ts";
import type { Filled } from "./operator-message.ts";
import type {
  LedgerExtent,
  PlannedBatch,
  Refusal,
  RetryVerdict,
  RunPhase,
  RunTask,
  SubmissionVerdict,
} from "./run-terms.ts";
import type { LateResult, ReadStates, SessionInput, Statement } from "./session-frame.ts";

/** Where a worker is in its life, and whether it is heard of: the two halves of a state of its chart. */
export const LIFECYCLES = ["Init", "Ready", "Draining", "Gone"] as const;
export const LIVENESSES = ["Alive", "Suspected", "Failed", "Removed"] as const;

export type Lifecycle = (typeof LIFECYCLES)[number];
export type Liveness = (typeof LIVENESSES)[number];

export interface Plugin {
  readonly name: string;
  readonly version: string;
  /** The latest version of states of keys that it goes on from; 0, as unless it is said: its states have none. */
  readonly stateVersion?: number;
  /** SHA-256 over what it runs; undefined when the worker does not say, and until it was heard since this coordinator leads. */
  readonly taskDigest?: Uint8Array;
}

/** The lifecycle that a worker claims for itself. `Init` needs no event: it is where each incarnation begins. */
export type ClaimedState = Lifecycle;

export interface Beat {
  readonly workerId: WorkerId;
  readonly incarnation: IncarnationId;
  /** From 1, per incarnation. */
  readonly sequence: number;
  readonly state: ClaimedState;
  /** 0.0 to 1.0. */
  readonly load: number;
  readonly sentAtMs: number;
  readonly slots: number;
  /** The first of a name is the worker's own version of it. */
  readonly plugins: readonly Plugin[];
  /** How many versions of one plugin it has open at once; undefined while it has none in two versions. */
  readonly loadedVersions?: number | undefined;
  /** Its machine may be taken away before long. */
  readonly isAtRisk: boolean;
  /** The reason why it does not execute, in words for a person; empty when there is none. */
  readonly trouble: string;
  /** The last assignment that has arrived; undefined when it does not say. */
  readonly ackedAssignment?: number | undefined;
  /** It says that it has no item; false when it does not say. */
  readonly holdsNothing?: boolean;
  /** Undefined unless it drains. */
  readonly drain?: BeatDrain | undefined;
  /** It hands on the states of keys; one that does not say so is given no item of a key. */
  readonly takesKeys?: boolean;
}

/** How far a worker's drain is, by its own word. */
export interface BeatDrain {
  /** As its chart names it. */
  readonly state: string;
  readonly cause: string;
  /** Until it abandons what executes. */
  readonly leftMs: number;
}

/**
 * `drain`: accepted, and an operator wants the worker to leave. `refused`: the registry is full. `ahead`: it says that its
 * process begins in the future.
 */
export type BeatVerdict = "accepted" | "superseded" | "drain" | "refused" | "ahead";

export interface BeatAnswer {
  readonly sequence: number;
  readonly verdict: BeatVerdict;
  /** The epoch of the partitions of keys; undefined while the run has none. */
  readonly assignmentEpoch?: number | undefined;
}

/** When a bundle can let nobody in any more, and from when on that is worth a warning. Wall time. */
export interface BundleTimes {
  readonly endsAtWallMs: number;
  /** As late as its end for a bundle that is renewed by itself. */
  readonly warnFromWallMs: number;
}

/** The bundle with which a worker asks to join. */
export interface JoiningBundle extends BundleTimes {
  readonly id: string;
  /** SHA-256 of the certificate's request, in hexadecimal. */
  readonly request: string;
}

export type EnrolmentVerdict =
  | { readonly kind: "granted" }
  /** Somebody is this worker already. */
  | { readonly kind: "alive" }
  /** The bundle has let in as many as it may. */
  | { readonly kind: "exhausted"; readonly quota: number }
  | { readonly kind: "revoked"; readonly who: string }
  /** It is the bundle of an allocation, and for another worker, used up, or of one that is over. */
  | { readonly kind: "refused"; readonly reason: string };

/** How a release stands; or why it does not begin, or is not moved. */
export type ReleaseAnswer =
  | { readonly kind: "release"; readonly status: Filled<ReleaseStatus>; readonly after: string }
  | ReleaseRefusal;

export type CreatedReleaseAnswer =
  | { readonly kind: "created"; readonly created: Filled<CreatedRelease> }
  | ReleaseRefusal;

/** Where the answer to an input goes. Called at most once, after the turn is committed (C2); must not throw. */
export type Answer<T> = (answer: T) => void;

export type Input =
  | { readonly kind: "beat"; readonly beat: Beat; readonly answer: Answer<BeatAnswer> }
  | {
      readonly kind: "listWorkers";
      readonly after: string;
      readonly limit: number;
      readonly answer: Answer<Filled<ListWorkersResponse>>;
    }
  | SessionInput
  | { readonly kind: "submit"; readonly batch: PlannedBatch; readonly answer: Answer<SubmissionVerdict> }
  | { readonly kind: "seal"; readonly answer: Answer<RunPhase> }
  | { readonly kind: "pause"; readonly reason: string; readonly answer: Answer<RunPhase> }
  | { readonly kind: "resume"; readonly answer: Answer<RunPhase> }
  | { readonly kind: "cancel"; readonly answer: Answer<RunPhase> }
  | { readonly kind: "getRun"; readonly answer: Answer<Filled<GetRunResponse>> }
  /** Failed items as they stand in the store. Nobody else asks for the same ones before this is answered. */
  | { readonly kind: "retry"; readonly failed: readonly FailedItem[]; readonly answer: Answer<RetryVerdict> }
  | { readonly kind: "getExtent"; readonly answer: Answer<LedgerExtent> }
  /** So many of the items at work are looked at from now on, the same ones for as long as they are; none: nobody looks any more. */
  | { readonly kind: "sampleItems"; readonly items: number; readonly answer: Answer<Filled<AtWork>> }
  /** `key` is empty for an item that no room of keys has. */
  | {
      readonly kind: "seeItem";
      readonly id: Uint8Array;
      readonly key: string;
      readonly answer: Answer<ItemSighting>;
    }
  | {
      readonly kind: "getWorker";
      readonly workerId: WorkerId;
      readonly answer: Answer<Filled<GetWorkerResponse> | undefined>;
    }
  /** `keys` are their texts. */
  | {
      readonly kind: "steerKeys";
      readonly action: KeyAction;
      readonly keys: readonly string[];
      readonly answer: Answer<Filled<SteerKeysResponse>>;
    }
  | {
      readonly kind: "getKey";
      readonly key: string;
      /** Its next standing is told. */
      readonly isAwaited: boolean;
      readonly answer: Answer<SeenKey | undefined>;
    }
  /** Behind the key `after`, in order of partition; empty: from the beginning. No phase: all of them. */
  | {
      readonly kind: "listKeys";
      /** Also lanes of named actions that are parked. */
      readonly parkedActions: boolean;
      readonly phases: readonly KeyPhase[];
      readonly prefix: string;
      /** Only those with a state of this commit or a later one; 0: all. */
      readonly fromCommit: number;
      readonly after: string;
      readonly limit: number;
      readonly answer: Answer<SeenKeys>;
    }
  /** Keys for another run: as in `listKeys`. */
  | {
      readonly kind: "tellKeys";
      readonly prefix: string;
      readonly after: string;
      readonly limit: number;
      readonly answer: Answer<ToldKeys>;
    }
  /** Keys from another run. None of their items is there. */
  | {
      readonly kind: "takeKeys";
      readonly keys: readonly MovedKey[];
      readonly task: RunTask;
      readonly answer: Answer<TakenKeys | Exclude<Refusal, { readonly kind: "renamed" }>>;
    }
  /** A worker asks which partitions are its own. */
  | { readonly kind: "getAssignment"; readonly workerId: WorkerId; readonly answer: Answer<OwnPartitions> }
  | { readonly kind: "listPartitions"; readonly answer: Answer<Filled<ListPartitionsResponse>> }
  /** Answered with whether there is such a worker. */
  | { readonly kind: "drainWorker"; readonly workerId: WorkerId; readonly answer: Answer<boolean> }
  /** A worker asks for a certificate: by a bundle, or undefined with its own. */
  | {
      readonly kind: "enrol";
      readonly workerId: WorkerId;
      readonly bundle: JoiningBundle | undefined;
      readonly answer: Answer<EnrolmentVerdict>;
    }
  | {
      readonly kind: "revoke";
      /** The bearer's. */
      readonly id: string;
      /** Also the workers that have joined by it, if it is a bundle's. */
      readonly withWorkers: boolean;
      /** `full`: there is no room for it. */
      readonly answer: Answer<Filled<RevokeResponse> | "full">;
    }
  | { readonly kind: "loaded"; readonly loaded: LoadedWindow }
  | { readonly kind: "keysLoaded"; readonly loaded: readonly LoadedKey[] }
  /** States that a worker is to be sent. */
  | { readonly kind: "statesRead"; readonly read: ReadStates }
  /** The room of keys has asked for a turn at this time. */
  | { readonly kind: "wake" }
  /** The rows of items that a worker says it has. */
  | { readonly kind: "claimsExamined"; readonly statement: Statement; readonly found: FoundClaims }
  /** The rows of an item that a late result is about. */
  | { readonly kind: "examined"; readonly late: LateResult; readonly found: FoundReport }
  /** The rows of the ledger were compared with its numbers: the first thing that is wrong, if any is. */
  | { readonly kind: "verified"; readonly damage: Damage | undefined }
  /** Rows of the ledger that the scrub asked for. */
  | { readonly kind: "scrubbed"; readonly page: ScrubbedPage }
  /** A release is to begin: answered with it, or with why it does not. */
  | {
      readonly kind: "createRelease";
      readonly request: ReleaseRequest;
      readonly answer: Answer<CreatedReleaseAnswer>;
    }
  | {
      readonly kind: "steerRelease";
      /** Empty: the latest one. */
      readonly id: string;
      readonly by: string;
      readonly steering: ReleaseSteering;
      readonly answer: Answer<ReleaseAnswer>;
    }
  /** Answered with the latest release if it is that one, or if none is named. */
  | { readonly kind: "getRelease"; readonly id: string; readonly answer: Answer<ReleaseAnswer> }
  /** Whether the store says too that this coordinator leads. */
  | { readonly kind: "leadershipConfirmed"; readonly leads: boolean }
  /** The counts of a release's stage as they are stored. */
  | { readonly kind: "releaseCountsRead"; readonly key: string; readonly value: Uint8Array | undefined }
  /** The provider of a fleet has answered. */
  | { readonly kind: "fleetHeard"; readonly heard: FleetAnswer }
  /** The file has other fleets than when this coordinator came to lead. */
  | { readonly kind: "fleetsChanged"; readonly changed: ChangedFleets }
  | { readonly kind: "listFleets"; readonly answer: Answer<FleetsShown> }
  | {
      readonly kind: "steerFleet";
      readonly by: string;
      readonly decision: FleetDecision;
      readonly answer: Answer<FleetVerdict>;
    }
  /** Time to look for workers that have fallen silent. */
  | { readonly kind: "scan" }
  /** Time to tell those that follow how far the run is. */
  | { readonly kind: "publish" };
