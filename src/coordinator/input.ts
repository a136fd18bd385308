// What can happen to a coordinator. The edges (rpc.ts, the scan's timer) turn the world into these and decide nothing;
// the reactor turns them into decisions and touches nothing.
import type { IncarnationId, WorkerId } from "../base/ids.ts";
import type { Finding } from "./ledger/examine-reports.ts";
import type { LateReport } from "./ledger/item.ts";
import type { LoadedWindow } from "./ledger/window-load.ts";
import type { RunView } from "./run-view.ts";
import type { SessionInput } from "./session-frame.ts";
import type { PlannedBatch, SubmissionVerdict } from "./submission-record.ts";
import type { Lifecycle, Plugin, WorkerListing } from "./worker-view.ts";

/** What a worker says of its own life. `Init` needs no event: it is where each incarnation begins. */
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
}

/** `refused`: the registry is full. */
export type BeatVerdict = "accepted" | "superseded" | "refused";

export interface BeatAnswer {
  readonly sequence: number;
  readonly verdict: BeatVerdict;
}

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
  | { readonly kind: "getRun"; readonly answer: Answer<RunView> }
  | { readonly kind: "loaded"; readonly loaded: LoadedWindow }
  /** The rows of an item that a late result is about. */
  | { readonly kind: "examined"; readonly late: LateReport; readonly finding: Finding }
  /** The rows of the ledger were compared with its numbers, and agree. */
  | { readonly kind: "verified" }
  /** Time to look for workers that have fallen silent. */
  | { readonly kind: "scan" };
