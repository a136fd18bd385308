// The coordinator as the room of releases sees it: a turn that takes writes and questions, and workers with the versions that they have.
// The room knows no rows of items: it is told of their ids, of who has them and of how their attempts ended.
import type { Measure } from "../../base/measure.ts";
import type { EventPayloads } from "../../observe/events.ts";
import type { Entry, Expectation } from "../../storage/store.ts";

export type ReleaseTopic = Extract<keyof EventPayloads, `release_${string}` | "stage_promoted">;

/** Asked outside the reactor, and answered to a later turn. */
export type ReleaseQuestion =
  /** Whether the store says too that this coordinator leads. */
  | { readonly kind: "confirmLeadership" }
  /** The counts as they are stored. */
  | { readonly kind: "readCounts"; readonly key: string };

export interface ReleaseTurn {
  /** Monotonic. */
  readonly nowMs: number;
  readonly wallMs: number;
  /** See `Turn.steadyMs`. */
  readonly steadyMs: number;
  put(entry: Entry): void;
  /** The batch of the turn is committed only if that row is as is said. */
  expect(row: Expectation): void;
  requireSync(): void;
  emit<T extends ReleaseTopic>(topic: T, payload: EventPayloads[T]): void;
  stepped(step: {
    readonly chart: "release" | "release-stage";
    readonly address: string;
    readonly event: string;
    readonly from: string;
    readonly to: string;
  }): void;
  ask(question: ReleaseQuestion): void;
  /** Workers are to hand back what is the candidate's and has not begun. */
  recallTrials(): void;
}

export interface ReleaseWorker {
  readonly id: string;
  /** The first of a name is its own version. */
  readonly plugins: readonly {
    readonly name: string;
    readonly version: string;
    readonly taskDigest?: Uint8Array;
  }[];
  /** Versions of one plugin that it has open at once; undefined where it does not say. */
  readonly loadedVersions?: number | undefined;
  /** A version that it has handed back since its last beat, for it does not have it; undefined: none. */
  readonly lacks?: string | undefined;
}

/** The run as far as releases go by it. */
export interface RunFacts {
  /** Empty before the first submission, and where any plugin will do. */
  readonly plugin: string;
  /** Digest of the task that the run began with; undefined before the first submission. */
  readonly digest: Uint8Array | undefined;
  readonly isOver: boolean;
  /** No more items come. */
  readonly isSealed: boolean;
  /** Items that are not final, and those of them that have no key. */
  readonly itemsLeft: number;
  readonly itemsWithoutKey: number;
  /** Workers that are given work, or would be. */
  readonly ready: readonly ReleaseWorker[];
}

/** How an attempt ended, by the class that its item's trail names. */
export interface Ended {
  readonly class:
    | ("success" | "error" | "timeout" | "crash" | "crash_shared" | "too_large" | "lost")
    | ("preempted" | "stolen" | "fenced" | "cancelled");
  /** A loss that says something of the attempt: its worker was not lost together with others. */
  readonly isCounted: boolean;
  /** Undefined where no worker says so. */
  readonly durationMs: number | undefined;
  readonly measures: readonly Measure[];
}
