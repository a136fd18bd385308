// A worker in the coordinator's words: where it is in its life, whether it is heard of, and how it is shown to people.
import type { WorkerId } from "../../base/ids.ts";

export const LIFECYCLES = ["Init", "Ready", "Draining", "Gone"] as const;
export const LIVENESSES = ["Alive", "Suspected", "Failed", "Removed"] as const;

export type Lifecycle = (typeof LIFECYCLES)[number];
export type Liveness = (typeof LIVENESSES)[number];

export interface Plugin {
  readonly name: string;
  readonly version: string;
}

export interface ListedWorker {
  readonly id: WorkerId;
  readonly incarnation: string;
  readonly lifecycle: Lifecycle;
  readonly liveness: Liveness;
  readonly load: number;
  readonly slots: number;
  readonly plugins: readonly Plugin[];
  readonly registeredAtWallMs: number;
  /** Undefined while nothing was heard since this coordinator leads. */
  readonly lastBeatAgeMs: number | undefined;
  /** How many items it has, started or not. */
  readonly held: number;
  /** Why it is given nothing; empty when it is given what there is. */
  readonly cordonReason: string;
  /** The reason why it did not execute when it was last heard; empty when there is none. */
  readonly trouble: string;
  /** Whether its certificate was revoked. */
  readonly isRevoked: boolean;
}

/** One worker, looked at closely. */
export interface WorkerDetail {
  readonly worker: ListedWorker;
  /** The first of what it has, in the order in which it was given. */
  readonly held: readonly { readonly id: Uint8Array; readonly attempt: number }[];
  readonly credit: number;
  readonly hasSession: boolean;
  readonly failuresInRow: number;
}

export interface WorkerListing {
  readonly workers: readonly ListedWorker[];
  readonly more: boolean;
}
