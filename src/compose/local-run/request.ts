// The request for a local run, its needs of the world, and its ends.
import type { Clock } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import type { FailedInside } from "../../cli/results/result-sink.ts";
import type { ProgressDisplay } from "../../cli/render/progress-display.ts";
import type { RunStatus } from "../../client/run-status.ts";
import type { Submitted } from "../../client/submit.ts";
import type { ClusterRequest } from "./cluster.ts";
import type { GivenUp } from "./kept-process.ts";
import type { InputSource } from "./local-input.ts";
import type { ResultFiles } from "./result-files.ts";

export interface LocalRunRequest extends ClusterRequest {
  readonly input: InputSource;
  readonly files: ResultFiles;
  /** Undefined: beside the output, or below `.rollout`. */
  readonly directory: string | undefined;
  readonly workers: number;
  /** The number was said: where the run goes on already, it asks for those that are missing. */
  readonly asksForWorkers?: boolean;
  readonly slotsPerWorker: number;
  /** Retries what has failed before. */
  readonly retryFailed: boolean;
  /** Goes on without the failed items that keep keys. */
  readonly skipsParked: boolean;
  /** The command that goes on with it, as one would type it here; undefined where it is not to be shown. */
  readonly again: string | undefined;
}

export interface LocalRunPorts {
  readonly clock: Clock;
  readonly random: Random;
  readonly display: ProgressDisplay;
  /** Resolves when it is to leave in good order. */
  readonly interrupted: Promise<unknown>;
  /** Told once, when there is something to hold. */
  readonly onStarted: (hold: Hold) => void;
}

/** On a run that is under way. */
export interface Hold {
  /** Ends every process at once. */
  readonly killAll: () => void;
  /** The end that it has come to; undefined while it goes on. */
  readonly end: () => LocalRunEnd | undefined;
}

export type LocalRunEnd =
  | { readonly kind: "complete" }
  /** The same was asked before, and is all there. Nothing was started. */
  | { readonly kind: "already" }
  /** By an operator, for good. */
  | { readonly kind: "cancelled" }
  | { readonly kind: "interrupted" }
  /** For workers that were added to a run of another process: how that stood when they left; `left`: the process had ended. */
  | { readonly kind: "helped"; readonly how: "complete" | "cancelled" | "paused" | "interrupted" | "left" }
  | { readonly kind: "paused"; readonly reason: string }
  /** All that is left waits behind failed items of its keys, or behind keys that an operator has paused. */
  | { readonly kind: "parked"; readonly items: number; readonly keys: number }
  | { readonly kind: "given-up"; readonly reason: GivenUp };

export interface LocalRunSummary {
  readonly end: LocalRunEnd;
  readonly directory: string;
  /** Items of this input; undefined when not all of it was read. The run may have others, of inputs before. */
  readonly items: number | undefined;
  /** Undefined when no coordinator ever answered. */
  readonly counts:
    | (Pick<RunStatus, "pending" | "running" | "done" | "failed" | "failedByClass" | "failureMessages"> &
        Partial<Pick<RunStatus, "setAside" | "inside">>)
    | undefined;
  /** As far as they were written; undefined where nothing was. */
  readonly failedInside?: FailedInside | undefined;
  /** One of those that have failed, by a name that `rollout explain` takes, when one was seen. */
  readonly failedItem: string | undefined;
  /** Undefined when not everything was submitted. */
  readonly submitted: Submitted | undefined;
  readonly reassigned: number;
  readonly elapsedMs: number;
}
