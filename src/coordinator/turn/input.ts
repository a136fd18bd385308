// Inputs: everything that can happen to a coordinator. The edges (rpc/, the scan's timer) turn the world into inputs and decide
// nothing; the reactor turns inputs into decisions and touches nothing.
import type { IncarnationId, WorkerId } from "../../base/ids.ts";
import type { FoundClaims, FoundReport } from "../ledger/lookups.ts";
import type { FailedItem, ItemSighting } from "../ledger/ledger.ts";
import type { ScrubbedPage } from "../ledger/scrub.ts";
import type { LoadedWindow } from "../ledger/window-loads.ts";
import type { Damage } from "../../storage/codec.ts";
import type { LedgerExtent, PlannedBatch, RetryVerdict, RunView, SubmissionVerdict } from "./run-view.ts";
import type { LateResult, SessionInput, Statement } from "./session-frame.ts";
import type { Lifecycle, Plugin, WorkerDetail, WorkerListing } from "./worker-view.ts";

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
  readonly plugins: readonly Plugin[];
  /** Its machine may be taken away before long. */
  readonly isAtRisk: boolean;
  /** The reason why it does not execute, in words for a person; empty when there is none. */
  readonly trouble: string;
  /** The last assignment that has arrived; undefined when it does not say. */
  readonly ackedAssignment?: number | undefined;
}

/**
 * `drain`: accepted, and an operator wants the worker to leave. `refused`: the registry is full. `ahead`: it says that its
 * process begins in the future.
 */
export type BeatVerdict = "accepted" | "superseded" | "drain" | "refused" | "ahead";

export interface BeatAnswer {
  readonly sequence: number;
  readonly verdict: BeatVerdict;
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
}

export type EnrolmentVerdict =
  | { readonly kind: "granted" }
  /** Somebody is this worker already. */
  | { readonly kind: "alive" }
  /** The bundle has let in as many as it may. */
  | { readonly kind: "exhausted"; readonly quota: number }
  | { readonly kind: "revoked"; readonly who: string };

export type RevocationVerdict =
  | {
      readonly kind: "revoked";
      readonly isWorker: boolean;
      /** Workers that have joined by this bundle. */
      readonly enrolled: number;
      readonly workersRevoked: number;
    }
  | { readonly kind: "full" };

/** Where the answer to an input goes. Called at most once, after the turn is committed (C2); must not throw. */
export type Answer<T> = (answer: T) => void;

export type Input =
  | { readonly kind: "beat"; readonly beat: Beat; readonly answer: Answer<BeatAnswer> }
  | {
      readonly kind: "listWorkers";
      readonly after: string;
      readonly limit: number;
      readonly answer: Answer<WorkerListing>;
    }
  | SessionInput
  | {
      readonly kind: "submit";
      readonly batch: PlannedBatch;
      readonly answer: Answer<SubmissionVerdict>;
    }
  | { readonly kind: "seal"; readonly answer: Answer<RunView> }
  | { readonly kind: "pause"; readonly reason: string; readonly answer: Answer<RunView> }
  | { readonly kind: "resume"; readonly answer: Answer<RunView> }
  | { readonly kind: "cancel"; readonly answer: Answer<RunView> }
  | { readonly kind: "getRun"; readonly answer: Answer<RunView> }
  /** Failed items as they stand in the store. Nobody else asks for the same ones before this is answered. */
  | {
      readonly kind: "retry";
      readonly failed: readonly FailedItem[];
      readonly answer: Answer<RetryVerdict>;
    }
  | { readonly kind: "getExtent"; readonly answer: Answer<LedgerExtent> }
  | { readonly kind: "seeItem"; readonly id: Uint8Array; readonly answer: Answer<ItemSighting> }
  | {
      readonly kind: "getWorker";
      readonly workerId: WorkerId;
      readonly answer: Answer<WorkerDetail | undefined>;
    }
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
      readonly answer: Answer<RevocationVerdict>;
    }
  | { readonly kind: "loaded"; readonly loaded: LoadedWindow }
  /** The rows of items that a worker says it has. */
  | { readonly kind: "claimsExamined"; readonly statement: Statement; readonly found: FoundClaims }
  /** The rows of an item that a late result is about. */
  | { readonly kind: "examined"; readonly late: LateResult; readonly found: FoundReport }
  /** The rows of the ledger were compared with its numbers: the first thing that is wrong, if any is. */
  | { readonly kind: "verified"; readonly damage: Damage | undefined }
  /** Rows of the ledger that the scrub asked for. */
  | { readonly kind: "scrubbed"; readonly page: ScrubbedPage }
  /** Time to look for workers that have fallen silent. */
  | { readonly kind: "scan" };
