// Words for who may join: what is known of bundles and of revoked bearers, and how the reactor answers.
import type { WorkerId } from "../../base/ids.ts";

/** When a bundle can let nobody in any more, and from when on that is worth a warning. Wall time. */
export interface BundleTimes {
  readonly endsAtWallMs: number;
  /** As late as its end for a bundle that is renewed by itself. */
  readonly warnFromWallMs: number;
}

/** A bundle that somebody has joined with. */
export interface KnownBundle {
  /** Workers that it has let in, for good: one that has left counts. */
  readonly workers: Set<WorkerId>;
  times: BundleTimes;
  /** Warnings that this coordinator has given: once each. */
  readonly warned: { end: boolean; quota: boolean };
}

export interface EnrolmentState {
  /** Workers that one bundle may let in. */
  readonly quota: number;
  readonly bundles: Map<string, KnownBundle>;
  /** Id of the bearer → when, wall time. */
  readonly revoked: Map<string, number>;
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
