// The port between a fleet and the system that has its machines: a launch, a list, a stop, a log, a check.
//
// Keeps true: each call answers with a value and never rejects. A list that failed is `unknown`, and never an empty one; a launch of which
// nobody knows whether it has taken effect is `unknown`, and the list finds it. Nothing is listed or stopped that does not carry the labels.
// Reasons and logs have no secrets.
//
// The room: this file is the port; `worker-environment` says what its workers are told beside that; `bounded-child` runs the programs of
// other systems, `exec` is the provider that is a program of the user's, and `ssh` has hosts.

/** The name of an allocation in every system, but for its own id. */
export interface FleetLabels {
  readonly run: string;
  /** The store of the run: a run that was begun anew has another one. */
  readonly store: string;
  readonly fleet: string;
}

export interface LaunchRequest extends FleetLabels {
  /** ULID. The same one again makes no second worker. It is also the id of the worker. */
  readonly allocation: string;
  /** The leadership that asks. */
  readonly epoch: number;
  readonly slots: number;
  /** Where the worker finds coordinators. */
  readonly coordinators: readonly string[];
  /** Variables of the worker's environment: no secrets. */
  readonly environment: Readonly<Record<string, string>>;
  /** A secret: an enrolment bundle, good for this allocation alone. Null where the run's certificates come from elsewhere. */
  readonly bundle: string | null;
}

export interface AllocationName extends FleetLabels {
  readonly allocation: string;
  /** The provider's own name for it, as it has said it; empty while it has not. */
  readonly ref: string;
}

export interface StopRequest extends AllocationName {
  /** Without waiting for the worker to end in good order. */
  readonly force: boolean;
}

/** Nobody knows, and why, in words. */
interface Unknown {
  readonly kind: "unknown";
  readonly reason: string;
}

export type Launched =
  | { readonly kind: "launched"; readonly ref: string }
  /** There is no room for it now; it says nothing against the fleet. */
  | { readonly kind: "full"; readonly reason: string }
  | { readonly kind: "refused"; readonly reason: string }
  | Unknown;

export interface ListedAllocation {
  readonly allocation: string;
  readonly ref: string;
  /** `queued`: its machine is not there yet. A word that this program does not know is `running`. One that is not listed is gone. */
  readonly state: "queued" | "running" | "ended";
  /** Its machine was taken away. */
  readonly isPreempted: boolean;
}

/** A part of the provider that has not answered. */
export interface SilentPlace {
  /** The reference of each allocation that is there. */
  readonly ref: string;
  readonly reason: string;
}

export type Listing =
  | {
      readonly kind: "listed";
      readonly allocations: readonly ListedAllocation[];
      /** The list says nothing of allocations with these references, and nothing of those that have none yet. Absent: it is whole. */
      readonly silent?: readonly SilentPlace[];
    }
  | Unknown;

export type Stopped = { readonly kind: "stopped" } | Unknown;

/** The last that it has said, at most `LOG_BYTES_MAX`. */
export type FoundLog = { readonly kind: "log"; readonly text: string } | Unknown;

export type Checked =
  | { readonly kind: "ready"; readonly words: string }
  | { readonly kind: "refused"; readonly reason: string }
  | Unknown;

export const LOG_BYTES_MAX = 16 * 1024;

export interface Provider {
  launch(request: LaunchRequest): Promise<Launched>;
  /** All allocations of the run, the store and the fleet. */
  list(labels: FleetLabels): Promise<Listing>;
  /** Has it end. One that has ended is stopped. */
  stop(request: StopRequest): Promise<Stopped>;
  log(name: AllocationName): Promise<FoundLog>;
  /** Whether launches can work: the client is there, and may. */
  check(labels: FleetLabels): Promise<Checked>;
  /** Ends what it keeps running on this machine: workers go on. It may be asked again after that. */
  close?(): void;
}
