// The port between a worker and what executes an item. Whatever a backend is (a sleep, a process, a server), the worker
// knows only this of it.
//
// Keeps true: how an attempt ended is a value; a backend that throws has a bug, which is charged to the item it met.

/** One try to execute one item, as a backend sees it. */
export interface ItemAttempt {
  /** SHA-256. */
  readonly itemId: Uint8Array;
  /** Counted from 1. */
  readonly attempt: number;
  /** Opaque. Not to be changed. */
  readonly payload: Uint8Array;
  /** What an earlier attempt left with its last `report`; empty when there is none. */
  readonly checkpoint: Uint8Array;
  /** For a process that executes the item: `ROLLOUT_RUN_ID`, `ROLLOUT_ITEM_ID`, `ROLLOUT_ATTEMPT` and the like. */
  readonly env: Readonly<Record<string, string>>;
}

export type Outcome =
  | { readonly kind: "success"; readonly output: Uint8Array }
  /** The item said no. */
  | { readonly kind: "error"; readonly message: string }
  /** It took longer than it may. */
  | { readonly kind: "timeout" }
  /** What executed it died while it executed this item alone. */
  | { readonly kind: "crash"; readonly message: string }
  /** Output over the limit. The worker says it of what a backend returns; a backend may say it before it has read it all. */
  | { readonly kind: "too_large" }
  /** Ended because the signal asked for it, or because what executed it went away through no fault of the item. */
  | { readonly kind: "preempted"; readonly checkpoint?: Uint8Array };

/** What a backend says of an attempt that goes on. */
export interface ItemReport {
  readonly kind: "checkpoint";
  /** Replaces the one before; given to the next attempt when this one is preempted. Not changed afterwards. */
  readonly checkpoint: Uint8Array;
}

export interface Backend {
  /**
   * Executes the item and resolves with how that ended. When `signal` aborts, the attempt is not wanted any more or its
   * time is over: the promise settles soon after, best with `preempted` and a checkpoint, and nothing of the attempt runs on.
   * `report` may be called until then. As many calls at once as the worker has slots.
   */
  execute(attempt: ItemAttempt, signal: AbortSignal, report: (report: ItemReport) => void): Promise<Outcome>;
}
