// What travels on a worker's session, in the coordinator's words; rpc/work-messages.ts is the way to the wire and back.
import type { IncarnationId, WorkerId } from "../base/ids.ts";
import type { Success } from "./ledger/item.ts";

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
}

export interface NamedAttempt {
  readonly id: Uint8Array;
  readonly attempt: number;
}

export type SessionFrame =
  | { readonly kind: "verdict"; readonly keep: readonly boolean[] }
  | { readonly kind: "assignments"; readonly firstNumber: number; readonly items: readonly AssignedItem[] }
  /** Hand these back if they have not started. */
  | { readonly kind: "release"; readonly attempts: readonly NamedAttempt[] }
  /** Every batch of results up to this number is on stable storage. */
  | { readonly kind: "resultsAcknowledged"; readonly number: number };

/** What a worker says of an attempt that it has. */
export interface HeldClaim extends NamedAttempt {
  readonly epoch: number;
  /** Its result is on the way: an earlier process of the worker may have executed it. */
  readonly isFinished: boolean;
}

export interface Report extends NamedAttempt {
  /** Of the process that executed it. */
  readonly incarnation: IncarnationId;
  readonly epoch: number;
  readonly outcome: ReportedOutcome;
}

export type ReportedOutcome =
  | ({ readonly kind: "success" } & Success)
  | { readonly kind: "error" | "timeout" | "crash" | "too_large"; readonly message: string }
  | { readonly kind: "preempted" | "stolen" | "fenced" | "cancelled" };

interface FromSession {
  readonly workerId: WorkerId;
  readonly port: SessionPort;
}

export type SessionInput =
  | ({
      readonly kind: "hello";
      /** Grows with each session of the worker's process; 0 from one that does not count. */
      readonly sessionNumber: number;
      readonly incarnation: IncarnationId;
      readonly held: readonly HeldClaim[];
      readonly ackedAssignment: number;
    } & FromSession)
  | ({ readonly kind: "credit"; readonly more: number } & FromSession)
  | ({ readonly kind: "results"; readonly number: number; readonly reports: readonly Report[] } & FromSession)
  | ({ readonly kind: "released"; readonly attempts: readonly NamedAttempt[] } & FromSession)
  | ({ readonly kind: "sessionEnded" } & FromSession);

/** The live session of a worker. */
export interface Session {
  readonly port: SessionPort;
  /** Room at the worker that is not filled yet. */
  credit: number;
  /** Of the next assignment; without gaps within the worker's incarnation. */
  nextNumber: number;
  /** It was asked to hand back, and has not answered. */
  isAsked: boolean;
  /** When it was asked last, or answered; monotonic. */
  askedAtMs: number;
}
