// A worker leaving in a hurry: hand back what has not started, let what runs finish while there is time, save what the
// remaining budget covers, flush the results, say goodbye. Moments are data, on the worker's monotonic clock, so a drain does
// not outlive its process: the worker's clock brings the deadline and the end of the flush back as events.
import { assign, setup } from "xstate";

export type DrainCause = "aws" | "gcp" | "sigterm" | "operator" | "backend";

export interface DrainContext {
  readonly cause: DrainCause | null;
  readonly deadlineMs: number;
  /** Results wait for their acknowledgement until then; null before the flush. */
  readonly flushUntilMs: number | null;
}

export type DrainEvent =
  | {
      readonly type: "drain.requested";
      readonly cause: DrainCause;
      readonly deadlineMs: number;
    }
  /** Everything that had not started is the coordinator's again. */
  | { readonly type: "backlog.handedBack" }
  /** Nothing is executing any more. */
  | {
      readonly type: "slots.emptied";
      readonly atMs: number;
      /** Cost of the last save of the TrainState; null when there is none, or it was never measured. */
      readonly trainStateCostMs: number | null;
    }
  /** It was saved, or that failed: either way there is no more to wait for. */
  | { readonly type: "trainState.settled"; readonly atMs: number }
  | { readonly type: "results.flushed" }
  | { readonly type: "deadline.reached"; readonly atMs: number }
  /** Nobody acknowledges the results: they stay on the worker's disk. */
  | { readonly type: "flush.expired" }
  /** A new process: the drain of the one before is over, whatever it came to. */
  | { readonly type: "worker.started" };

/** How long results may wait for their acknowledgement after everything else is done. */
const FLUSH_MAX_MS = 5_000;
/** The budget covers a save when it would last for so many times its last cost. */
const SAVE_SAFETY = 2;

const idle: DrainContext = { cause: null, deadlineMs: Number.MAX_SAFE_INTEGER, flushUntilMs: null };

export const spotDrain = setup({
  types: { context: {} as DrainContext, events: {} as DrainEvent },
  guards: {
    isTighter: ({ context, event }) =>
      event.type === "drain.requested" && event.deadlineMs < context.deadlineMs,
    coversTrainState: ({ context, event }) =>
      event.type === "slots.emptied" &&
      event.trainStateCostMs !== null &&
      context.deadlineMs - event.atMs >= SAVE_SAFETY * event.trainStateCostMs,
  },
  actions: {
    adoptDeadline: assign(({ event }) =>
      event.type === "drain.requested" ? { cause: event.cause, deadlineMs: event.deadlineMs } : {},
    ),
    limitFlush: assign(({ event }) => ("atMs" in event ? { flushUntilMs: event.atMs + FLUSH_MAX_MS } : {})),
    forgetDrain: assign(() => idle),
    handBackBacklog: () => {},
    awaitRunning: () => {},
    abandonRunning: () => {},
    saveTrainState: () => {},
    flushResults: () => {},
    sayGoodbye: () => {},
  },
}).createMachine({
  id: "spot-drain",
  version: "2",
  context: idle,
  initial: "Idle",
  on: {
    "worker.started": { target: ".Idle", actions: "forgetDrain" },
  },
  states: {
    Idle: {
      on: { "drain.requested": { target: "Draining", actions: "adoptDeadline" } },
    },
    Draining: {
      initial: "HandingBack",
      on: {
        "drain.requested": { guard: "isTighter", actions: "adoptDeadline" },
        "deadline.reached": { target: ".Flushing", actions: "abandonRunning" },
      },
      states: {
        HandingBack: {
          entry: "handBackBacklog",
          on: { "backlog.handedBack": "Finishing" },
        },
        Finishing: {
          entry: "awaitRunning",
          on: {
            "slots.emptied": [{ guard: "coversTrainState", target: "Saving" }, { target: "Flushing" }],
          },
        },
        Saving: {
          entry: "saveTrainState",
          on: { "trainState.settled": "Flushing" },
        },
        Flushing: {
          entry: ["limitFlush", "flushResults"],
          on: {
            // The running items are abandoned already; the deadline must not start the flush again.
            "deadline.reached": {},
            "results.flushed": "#spot-drain.Drained",
            "flush.expired": "#spot-drain.Drained",
          },
        },
      },
    },
    Drained: {
      entry: "sayGoodbye",
    },
  },
});
