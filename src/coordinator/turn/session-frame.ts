// Frames of a worker's session, in the coordinator's words; rpc/work-messages.ts is the way to the wire and back.
import type { AttemptKey } from "../../../machines/work-item.ts";
import type { IncarnationId, WorkerId } from "../../base/ids.ts";
import type { Measure } from "../../base/measure.ts";
import type { LeftState } from "../ledger/key-room.ts";
import type { LateReport, RunningItem, Success } from "../ledger/ledger.ts";
import type { Origin } from "../ledger/origin.ts";
import type { Execution } from "../ledger/records.ts";

/** One stream, as the reactor sees it. Its identity tells sessions of one worker apart. */
export interface SessionPort {
  /** Called for committed turns only (C2). Must not throw; a stream that is gone drops the frame. */
  send(frame: SessionFrame): void;
  /** Ends the stream behind what was sent. The same rules; idempotent. */
  end(): void;
}

export interface AssignedItem {
  readonly id: Uint8Array;
  readonly attempt: number;
  readonly payload: Uint8Array;
  readonly priority: number;
  /** Nothing else may execute beside it. */
  readonly alone: boolean;
  /** The checkpoint that an earlier attempt has left; null when none has. */
  readonly checkpoint: Uint8Array | null;
  /** Undefined for an item without a key. */
  readonly keyed?: GivenState | undefined;
  /** The version that executes it; the worker's own where it is empty, as unless it is said. */
  readonly pluginVersion?: string;
}

/** A number to be read in outputs. */
export interface NumberPointer {
  readonly name: string;
  /** A JSON pointer. */
  readonly pointer: string;
}

/** The key of an item that is given out, and the state with which the attempt begins. */
export interface GivenState {
  readonly key: string;
  /** The commit of the state; 0: the key has none. */
  readonly commit: number;
  /** null: the key has none, or the worker has this commit of it. */
  readonly state: Uint8Array | null;
  /** The origin of an item that was not submitted. */
  readonly origin?: Origin | undefined;
}

export interface NamedAttempt {
  readonly id: Uint8Array;
  readonly attempt: number;
}

export type SessionFrame =
  | { readonly kind: "verdict"; readonly keep: readonly boolean[] }
  | {
      readonly kind: "assignments";
      readonly firstNumber: number;
      readonly items: readonly AssignedItem[];
      /** The plugin that executes them; empty: any that the worker has. */
      readonly plugin: string;
      /** 0: as long as it likes. */
      readonly itemTimeoutMs: number;
      /** Results of these have one measure for each. */
      readonly pointers?: readonly NumberPointer[] | undefined;
    }
  /** The worker hands these back if they have not started. */
  | { readonly kind: "recall"; readonly attempts: readonly NamedAttempt[] }
  /** Nobody wants these any more. */
  | { readonly kind: "drop"; readonly attempts: readonly NamedAttempt[] }
  /** Every batch of results up to this number is on stable storage. */
  | {
      readonly kind: "resultsAcknowledged";
      readonly number: number;
      /** The commits of batches among them that had states, where the worker wants to know. */
      readonly commits?: readonly BatchCommit[];
    }
  | { readonly kind: "checkpointRequest"; readonly number: number }
  | ({ readonly kind: "partitionStates" } & PartitionStates)
  /** Nothing more is given before more is asked for, and everything that was given stands before this. */
  | { readonly kind: "creditWithdrawn" };

/** The commit of the states in a batch of results. */
export interface BatchCommit {
  readonly number: number;
  readonly commit: number;
  /** Places in the batch of results whose states were not recorded. */
  readonly leftOut: readonly number[];
}

/** States that a worker is to keep. */
export interface PartitionStates {
  readonly partition: number;
  readonly states: readonly GivenState[];
  /** In the last frame: with it the worker has all states up to this commit. */
  readonly last: number | undefined;
}

/** The states of these keys are to be read for a worker, as many as go into a few frames, in this order. */
export interface StatesReading {
  readonly port: SessionPort;
  readonly partition: number;
  /** `path`: see `pathOf`. */
  readonly keys: readonly { readonly text: string; readonly path: string }[];
}

export interface ReadStates {
  readonly reading: StatesReading;
  /** The states of the first of its keys, in frames that are not too large. */
  readonly frames: readonly (readonly GivenState[])[];
  /** How many keys these are. */
  readonly count: number;
}

/** A checkpoint that a worker has written. */
export interface WrittenPartition {
  readonly partition: number;
  readonly offset: number;
  readonly place: string;
}

/** A worker's claim to an attempt that it has. */
export interface HeldClaim extends NamedAttempt {
  readonly epoch: number;
  /** Its result is on the way. */
  readonly isFinished: boolean;
  /** Undefined when it is finished, or the worker does not say. */
  readonly phase?: "unstarted" | "running";
  /** Process that executed it, when that is an earlier one. */
  readonly incarnation?: IncarnationId;
  /** The version that its assignment named; undefined when it named none. */
  readonly pluginVersion?: string;
}

/** The claims that a worker has stated in its hello, while some of them are looked up. */
export interface Statement {
  readonly workerId: WorkerId;
  readonly port: SessionPort;
  readonly settled?: (() => void) | undefined;
  /** In the order in which it was stated: whether the worker keeps it. */
  readonly keep: readonly boolean[];
  /** The claims that are looked up; `at` is the place in `keep`. */
  readonly claims: readonly Claim[];
}

/** An attempt that a worker has and that this leader knows nothing of. */
export interface Claim extends AttemptKey {
  readonly id: Uint8Array;
  readonly at: number;
  /** Upper bound of the number of its assignment. */
  readonly number: number;
  /** The version that the assignment named; empty: the worker's own. */
  readonly version: string;
}

export interface Report extends NamedAttempt {
  /** Process that executed it. */
  readonly incarnation: IncarnationId;
  readonly epoch: number;
  readonly outcome: ReportedOutcome;
  readonly execution?: Execution;
  /** The end of its standard error. */
  readonly log?: Uint8Array;
  /** For the next attempt, if there is one. */
  readonly checkpoint?: Uint8Array;
  /** A success has them, in the order of the pointers that its assignment came with; undefined when there were none. */
  readonly measures?: readonly Measure[];
}

export type ReportedOutcome =
  /** `keyed`: of an item with a key. */
  | ({ readonly kind: "success"; readonly keyed?: LeftState } & Success)
  /** `isPermanent`: another attempt cannot help, so the item fails at once, and it says nothing of the worker. */
  | {
      readonly kind: "error";
      readonly message: string;
      readonly response?: Uint8Array;
      readonly isPermanent?: boolean;
      /** Should the item fail by it, its key goes on all the same. */
      readonly sparesKey?: boolean;
    }
  | { readonly kind: "timeout" | "crash" | "crash_shared"; readonly message: string }
  /** `isBreach`: a worker of ours would have looked at it itself. */
  | { readonly kind: "too_large"; readonly message: string; readonly isBreach?: true }
  | { readonly kind: "preempted" | "stolen" | "fenced" | "cancelled" }
  /** It was not begun: the worker does not have the state that its assignment left out. */
  | { readonly kind: "state_missing" };

/** The checkpoint of a running attempt, for the next one to go on from. */
export interface SentCheckpoint extends NamedAttempt {
  readonly epoch: number;
  readonly checkpoint: Uint8Array;
}

/** How far a worker is with the states of a partition. */
export interface LoadedPartition {
  readonly partition: number;
  /** All states up to this commit are there; 0: none is. */
  readonly offset: number;
  /** `asks`: it wants what it does not have. `has`: it has all that it was sent. `dropped`: it has none any more. */
  readonly says: "asks" | "has" | "dropped";
  /** States that came from the checkpoint, and from the coordinator. */
  readonly loaded: number;
  readonly replayed: number;
  readonly durationMs: number;
}

interface FromSession {
  readonly workerId: WorkerId;
  readonly port: SessionPort;
  /**
   * Called once when what was said is written, dropped or forgotten, whatever became of its stream meanwhile: until then its
   * bytes are in memory, and counted.
   */
  readonly settled?: () => void;
}

export type SessionInput =
  | ({
      readonly kind: "hello";
      /** Grows with each session of the worker's process; 0 from one that does not count. */
      readonly sessionNumber: number;
      readonly incarnation: IncarnationId;
      readonly held: readonly HeldClaim[];
      readonly ackedAssignment: number;
      /** It takes one frame of work, however much it asks for: the answer of a call. */
      readonly takesOneFrame?: true;
    } & FromSession)
  /** `upTo`: the number of the last assignment that it has room for, which counts in place of `more`. */
  | ({ readonly kind: "credit"; readonly more: number; readonly upTo?: number } & FromSession)
  | ({ readonly kind: "results"; readonly number: number; readonly reports: readonly Report[] } & FromSession)
  | ({ readonly kind: "handedBack"; readonly attempts: readonly NamedAttempt[] } & FromSession)
  | ({ readonly kind: "checkpoints"; readonly checkpoints: readonly SentCheckpoint[] } & FromSession)
  | ({ readonly kind: "withdrawCredit" } & FromSession)
  /** Checkpoints of its partitions, as it was asked for. */
  | ({ readonly kind: "partitionsWritten"; readonly written: readonly WrittenPartition[] } & FromSession)
  | ({ readonly kind: "partitionLoaded" } & LoadedPartition & FromSession)
  /** Results by a call of their own, which goes with no session: its port is told of them alone. */
  | ({ readonly kind: "report"; readonly reports: readonly Report[] } & FromSession)
  | ({ readonly kind: "sessionEnded" } & FromSession);

/** A batch of results that is not acknowledged; see delivery.ts. */
export interface Delivery {
  readonly port: SessionPort;
  /** Number of the batch, as its sender counts. */
  readonly number: number;
  /** The deliveries of one sender, in order; emptied when its stream ends. */
  readonly line: Delivery[];
  /** The commit of the states in it; undefined when it has none that counts, or nobody wants to know. */
  committed: Omit<BatchCommit, "number"> | undefined;
  /** Results whose items are being looked up. */
  undecided: number;
  /** All of it is decided. */
  readonly settled: (() => void) | undefined;
}

/** A late success, and the batch that waits for it. */
export interface LateResult extends LateReport {
  readonly delivery: Delivery;
}

/** The live session of a worker. */
export interface Session {
  readonly port: SessionPort;
  readonly takesOneFrame: boolean;
  /** It has its verdict on what it stated. Nothing is given to it before. */
  isReconciled: boolean;
  /** Bytes of payload that were given since it was last heard. */
  unreadBytes: number;
  /** Room at the worker that is not filled yet. */
  credit: number;
  /** Number of the next assignment; without gaps within the worker's incarnation. */
  nextNumber: number;
  /** Backlog of it was recalled, and it has not answered. */
  isRecalled: boolean;
  /** When it was last sent a recall, or answered one; monotonic. */
  recalledAtMs: number;
  /** Items that an older process of the worker had begun, until it is known how that one ended. */
  remains: readonly RunningItem[];
  /** Batches of results that are not acknowledged. */
  readonly deliveries: Delivery[];
}
