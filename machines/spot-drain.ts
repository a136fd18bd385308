// A worker leaving in a hurry: hand back what has not started, let what runs finish while there is time, save what the
// remaining budget covers, flush the results, say goodbye. Time comes in by events: a deadline is a moment on the worker's
// monotonic clock, so a drain does not outlive its process.
import { assign, setup } from "xstate";

export type DrainCause = "aws" | "gcp" | "sigterm" | "operator" | "backend";

export interface DrainContext {
  readonly cause: DrainCause | null;
  /** On the worker's monotonic clock. */
  readonly deadlineMs: number;
}

export type DrainEvent =
  | {
      readonly type: "drain.requested";
      readonly cause: DrainCause;
      /** On the worker's monotonic clock. */
      readonly deadlineMs: number;
      /** Time until then. */
      readonly budgetMs: number;
    }
  /** Everything that had not started is the coordinator's again. */
  | { readonly type: "backlog.handedBack" }
  /** Nothing is executing any more. */
  | {
      readonly type: "slots.emptied";
      /** Time until the deadline. */
      readonly leftMs: number;
      /** Cost of the last save of the TrainState; null when there is none, or it was never measured. */
      readonly trainStateCostMs: number | null;
    }
  /** It was saved, or that failed: either way there is no more to wait for. */
  | { readonly type: "trainState.settled" }
  | { readonly type: "results.flushed" }
  | { readonly type: "deadline.reached" }
  /** Nobody acknowledges the results: they stay on the worker's disk. */
  | { readonly type: "flush.expired" }
  /** A new process: the drain of the one before is over, whatever it came to. */
  | { readonly type: "worker.started" };

/** How long results may wait for their acknowledgement after everything else is done. */
const FLUSH_MAX_MS = 5_000;
/** The budget covers a save when it would last for so many times its last cost. */
const SAVE_SAFETY = 2;

const idle: DrainContext = { cause: null, deadlineMs: Number.MAX_SAFE_INTEGER };

const armDeadline = {
  type: "armTimer",
  params: ({ event }: { event: DrainEvent }) => ({
    name: "deadline",
    delayMs: event.type === "drain.requested" ? event.budgetMs : 0,
    event: "deadline.reached",
  }),
} as const;
const cancelDeadline = { type: "cancelTimer", params: { name: "deadline" } } as const;
const cancelFlush = { type: "cancelTimer", params: { name: "flush" } } as const;

export const spotDrain = setup({
  types: { context: {} as DrainContext, events: {} as DrainEvent },
  guards: {
    isTighter: ({ context, event }) =>
      event.type === "drain.requested" && event.deadlineMs < context.deadlineMs,
    coversTrainState: ({ event }) =>
      event.type === "slots.emptied" &&
      event.trainStateCostMs !== null &&
      event.leftMs >= SAVE_SAFETY * event.trainStateCostMs,
  },
  actions: {
    adoptDeadline: assign(({ event }) =>
      event.type === "drain.requested" ? { cause: event.cause, deadlineMs: event.deadlineMs } : {},
    ),
    forgetDrain: assign(() => idle),
    armTimer: (_, _params: { name: string; delayMs: number; event: string }) => {},
    cancelTimer: (_, _params: { name: string }) => {},
    handBackBacklog: () => {},
    awaitRunning: () => {},
    abandonRunning: () => {},
    saveTrainState: () => {},
    flushResults: () => {},
    sayGoodbye: () => {},
  },
}).createMachine({
  id: "spot-drain",
  version: "1",
  context: idle,
  initial: "Idle",
  on: {
    "worker.started": { target: ".Idle", actions: [cancelDeadline, cancelFlush, "forgetDrain"] },
  },
  states: {
    Idle: {
      on: { "drain.requested": { target: "Draining", actions: ["adoptDeadline", armDeadline] } },
    },
    Draining: {
      initial: "HandingBack",
      on: {
        "drain.requested": { guard: "isTighter", actions: ["adoptDeadline", armDeadline] },
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
          entry: [
            {
              type: "armTimer",
              params: { name: "flush", delayMs: FLUSH_MAX_MS, event: "flush.expired" },
            },
            "flushResults",
          ],
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
      entry: [cancelDeadline, cancelFlush, "sayGoodbye"],
    },
  },
});
