// The room of hints that a worker's surroundings give about its end, as values: a cloud takes the machine away, somebody asks it to
// leave, or it had better get less work. Here the port and the hints that somebody makes; cloud.ts picks the cloud, aws.ts and gcp.ts
// watch one each, by metadata-http.ts, which also bears with servers that are slow or silent. How long a drain may take follows from
// a hint alone.
//
// Keeps true: a deadline is a moment on the monotonic clock of this machine. No wall clock takes part, ours least of all.
import type { DrainCause } from "../../../machines/spot-drain.ts";
import { unreachable } from "../../base/assert.ts";

export type Cloud = Extract<DrainCause, "aws" | "gcp">;

export type Hint =
  /** The cloud takes the machine away. */
  | {
      readonly kind: "preemption";
      readonly cause: Cloud;
      /** How long after `noticedAtMs` the machine is gone, in [0, nominal]; undefined when the notice does not say. */
      readonly leadMs: number | undefined;
      /** Monotonic; never later than the moment from which `leadMs` counts. */
      readonly noticedAtMs: number;
    }
  /** Somebody wants the worker gone: SIGTERM, `worker drain`, or it goes of its own accord. */
  | {
      readonly kind: "request";
      readonly cause: Exclude<DrainCause, Cloud>;
      /** How long the drain may take; undefined when nothing was said. */
      readonly targetMs: number | undefined;
      /** Monotonic. */
      readonly noticedAtMs: number;
    }
  /** The machine is likelier than others to be taken away: prefer others, drain nothing. */
  | { readonly kind: "rebalance" };

/** A hint that starts a drain, or tightens one. */
export type DrainHint = Exclude<Hint, { readonly kind: "rebalance" }>;

/** Where hints come from. */
export interface ComputeHint {
  /**
   * Calls `onHint` for each hint until `signal` aborts or nothing more can come, and then resolves. After the abort there is
   * no call any more. A source that does not answer is asked again, said in the log and never thrown; a rejection is a
   * programmer error. Independent of other calls of `watch`.
   */
  watch(signal: AbortSignal, onHint: (hint: Hint) => void): Promise<void>;
}

/** The time that a cloud gives between its notice and the end. Theirs to change. */
const NOMINAL_LEAD_MS: Readonly<Record<Cloud, number>> = { aws: 120_000, gcp: 30_000 };

/** The longest that we want a drain to take: half of the lead, so that a notice that is seen late is still in time. */
const DRAIN_TARGET_MS: Readonly<Record<DrainCause, number>> = {
  aws: 60_000,
  gcp: 15_000,
  sigterm: 15_000,
  operator: 15_000,
  // Nothing that runs will come to an end.
  backend: 0,
  orphan: 15_000,
  lifetime: 15_000,
  idle: 15_000,
};

/**
 * The part of a lead that is kept back, because the deadline is not the end of the work: a second for what is abandoned to stop, one
 * for its report, the last results and the goodbye, each a round trip and an fsync, and one because a cloud's clock is read in
 * whole seconds and our timers are late on a busy machine.
 */
const DRAIN_MARGIN_MS = 3_000;

/** `leadMs` as far as it can be true: a notice does not reach into the past, and no cloud gives more than it promises. */
export function clampLead(cause: Cloud, leadMs: number): number {
  return Math.min(Math.max(leadMs, 0), NOMINAL_LEAD_MS[cause]);
}

/**
 * When the drain has to be over, on the monotonic clock: the lesser of what we want and what the lead leaves, never before the hint
 * itself. The earliest deadline of several hints counts: compare these, not the budgets that are left of them.
 */
export function drainDeadlineMs(hint: DrainHint): number {
  switch (hint.kind) {
    case "preemption": {
      const budgetMs = Math.min(DRAIN_TARGET_MS[hint.cause], leadOf(hint) - DRAIN_MARGIN_MS);
      return hint.noticedAtMs + Math.max(budgetMs, 0);
    }
    case "request":
      return hint.noticedAtMs + (hint.targetMs ?? DRAIN_TARGET_MS[hint.cause]);
    default:
      return unreachable(hint, "drain hint");
  }
}

/** When the machine is gone, on the monotonic clock; undefined when no cloud takes it away. */
export function machineEndsMs(hint: DrainHint): number | undefined {
  return hint.kind === "preemption" ? hint.noticedAtMs + leadOf(hint) : undefined;
}

function leadOf({ leadMs, cause }: Extract<Hint, { kind: "preemption" }>): number {
  return leadMs ?? NOMINAL_LEAD_MS[cause];
}

/**
 * Hints that somebody makes rather than finds: the process got a SIGTERM, an operator wants the worker gone, a simulation preempts
 * a machine. A hint that came before anybody watched is not lost.
 */
export class DrainRequests implements ComputeHint {
  readonly #said: Hint[] = [];
  readonly #listeners = new Set<(hint: Hint) => void>();

  /** Passes `hint` on to everybody who watches now or later. */
  say(hint: Hint): void {
    this.#said.push(hint);
    for (const listener of this.#listeners) listener(hint);
  }

  watch(signal: AbortSignal, onHint: (hint: Hint) => void): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      // A function of its own, so that one callback may watch twice.
      const listener = (hint: Hint): void => onHint(hint);
      signal.addEventListener("abort", () => {
        this.#listeners.delete(listener);
        resolve();
      });
      this.#listeners.add(listener);
      for (const hint of this.#said) if (this.#listeners.has(listener)) onHint(hint);
    });
  }
}
