// A worker leaving in a hurry: hand back what has not started, let what runs finish while there is time, save what the
// remaining budget covers, flush the results, say goodbye. Moments are data, on the monotonic clock of this start of the machine:
// the worker's clock brings the end of the state that the drain is in back as an event. A drain ends with its process, but for one
// that a cloud asked for: while its notice lasts the next process on the same boot drains too, and is there for nothing else.
import { assign, setup } from "xstate";
import type { StayEnd } from "./worker-stay.ts";

/** A cloud, a person or its process's end, a backend that does not start, or the worker itself. */
export type DrainCause = "aws" | "gcp" | "sigterm" | "operator" | "backend" | StayEnd;

export interface DrainContext {
  readonly cause: DrainCause | null;
  /** When this process began to drain. */
  readonly sinceMs: number;
  /** Items that run then are abandoned. */
  readonly deadlineMs: number;
  /** The state that the drain is in is over then, whatever has come of it. */
  readonly untilMs: number;
  /** A cloud takes the machine away then; null when none has said so. */
  readonly machineEndsMs: number | null;
  /** The start of the machine on which these moments mean something; empty when nobody knows. */
  readonly boot: string;
  /** How long the last save of the TrainState took, in whichever process; null before the first. */
  readonly saveCostMs: number | null;
}

export type DrainEvent =
  | {
      readonly type: "drain.requested";
      readonly cause: DrainCause;
      readonly atMs: number;
      readonly deadlineMs: number;
      readonly machineEndsMs: number | null;
    }
  /** Everything that had not started is the coordinator's again. */
  | { readonly type: "backlog.handedBack" }
  /** Nothing is executing any more. */
  | { readonly type: "slots.emptied"; readonly atMs: number; readonly hasTrainState: boolean }
  /** It was saved, which took so long, or that failed (null): either way there is no more to wait for. */
  | { readonly type: "trainState.settled"; readonly atMs: number; readonly tookMs: number | null }
  | { readonly type: "results.flushed" }
  /** One that is early was for a state before this one. */
  | { readonly type: "time.isUp"; readonly atMs: number }
  /** A new process of the worker. */
  | { readonly type: "worker.started"; readonly atMs: number; readonly boot: string };

/** How long results may wait for their acknowledgement after everything else is done. */
const FLUSH_MAX_MS = 5_000;
/** The budget covers a save when it would last for so many times its last cost. */
const SAVE_SAFETY = 2;
/** A save of which nobody knows the cost gets so much of the budget at most. */
const FIRST_SAVE_SHARE = 0.5;

const idle: DrainContext = {
  cause: null,
  sinceMs: 0,
  deadlineMs: Number.MAX_SAFE_INTEGER,
  untilMs: Number.MAX_SAFE_INTEGER,
  machineEndsMs: null,
  boot: "",
  saveCostMs: null,
};

const GOES_ON = {
  guard: "noticeLasts",
  target: "#spot-drain.Draining.GoingOn",
  actions: ["begin", "awaitMachineEnd"],
} as const;

export const spotDrain = setup({
  types: { context: {} as DrainContext, events: {} as DrainEvent },
  guards: {
    isTighter: ({ context, event }) =>
      event.type === "drain.requested" && event.deadlineMs < context.deadlineMs,
    coversTrainState: ({ context: { deadlineMs, saveCostMs }, event }) => {
      if (event.type !== "slots.emptied" || !event.hasTrainState) return false;
      const leftMs = deadlineMs - event.atMs;
      return leftMs > 0 && leftMs >= SAVE_SAFETY * (saveCostMs ?? 0);
    },
    isDue: ({ context, event }) => event.type === "time.isUp" && event.atMs >= context.untilMs,
    isNotice: ({ event }) => event.type === "drain.requested" && event.machineEndsMs !== null,
    noticeLasts: ({ context: { boot, machineEndsMs }, event }) =>
      event.type === "worker.started" &&
      event.boot !== "" &&
      event.boot === boot &&
      machineEndsMs !== null &&
      event.atMs < machineEndsMs,
  },
  actions: {
    begin: assign(({ event }) => ("atMs" in event ? { sinceMs: event.atMs } : {})),
    adoptDeadline: assign(({ context, event }) =>
      event.type === "drain.requested"
        ? {
            cause: event.cause,
            deadlineMs: event.deadlineMs,
            untilMs: Math.min(event.deadlineMs, context.untilMs),
          }
        : {},
    ),
    noteNotice: assign(({ context, event }) =>
      event.type === "drain.requested" ? { machineEndsMs: event.machineEndsMs ?? context.machineEndsMs } : {},
    ),
    limitSave: assign(({ context: { deadlineMs, saveCostMs }, event }) => {
      if (event.type !== "slots.emptied" || saveCostMs !== null) return {};
      return { untilMs: event.atMs + FIRST_SAVE_SHARE * (deadlineMs - event.atMs) };
    }),
    noteSaveCost: assign(({ context, event }) =>
      event.type === "trainState.settled" ? { saveCostMs: event.tookMs ?? context.saveCostMs } : {},
    ),
    limitFlush: assign(({ event }) => ("atMs" in event ? { untilMs: event.atMs + FLUSH_MAX_MS } : {})),
    awaitMachineEnd: assign(({ context: { machineEndsMs, deadlineMs } }) => ({
      deadlineMs: machineEndsMs ?? deadlineMs,
      untilMs: machineEndsMs ?? deadlineMs,
    })),
    forgetDrain: assign(({ context, event }) => ({
      ...idle,
      saveCostMs: context.saveCostMs,
      boot: event.type === "worker.started" ? event.boot : "",
    })),
    handBackBacklog: () => {},
    awaitRunning: () => {},
    abandonRunning: () => {},
    saveTrainState: () => {},
    forgoTrainState: () => {},
    flushResults: () => {},
    sayGoodbye: () => {},
  },
}).createMachine({
  id: "spot-drain",
  version: "3",
  context: idle,
  initial: "Idle",
  on: { "worker.started": { target: ".Idle", actions: "forgetDrain" } },
  states: {
    Idle: {
      on: {
        "drain.requested": { target: "Draining", actions: ["begin", "adoptDeadline", "noteNotice"] },
      },
    },
    Draining: {
      initial: "HandingBack",
      on: {
        "drain.requested": [
          { guard: "isTighter", actions: ["adoptDeadline", "noteNotice"] },
          { actions: "noteNotice" },
        ],
        "time.isUp": {
          guard: "isDue",
          target: ".Flushing",
          // In this order: what is abandoned takes the processes with it that have learned something, and nobody could say so then.
          actions: ["forgoTrainState", "abandonRunning"],
        },
        "worker.started": GOES_ON,
      },
      states: {
        // The process before has drained, or was about to.
        GoingOn: {
          entry: "handBackBacklog",
          on: {
            "drain.requested": [
              { guard: "isNotice", actions: ["noteNotice", "awaitMachineEnd"] },
              { target: "Flushing" },
            ],
          },
        },
        HandingBack: {
          entry: "handBackBacklog",
          on: { "backlog.handedBack": "Finishing" },
        },
        Finishing: {
          entry: "awaitRunning",
          on: {
            "slots.emptied": [
              { guard: "coversTrainState", target: "Saving", actions: "limitSave" },
              { target: "Flushing", actions: "forgoTrainState" },
            ],
          },
        },
        Saving: {
          entry: "saveTrainState",
          on: {
            "trainState.settled": { target: "Flushing", actions: "noteSaveCost" },
            "time.isUp": { guard: "isDue", target: "Flushing", actions: "forgoTrainState" },
          },
        },
        Flushing: {
          entry: ["limitFlush", "flushResults"],
          on: {
            // The deadline is over or has become pointless; it must not shorten the flush.
            "drain.requested": { actions: "noteNotice" },
            "results.flushed": "#spot-drain.Drained",
            "time.isUp": { guard: "isDue", target: "#spot-drain.Drained" },
          },
        },
      },
    },
    Drained: {
      entry: "sayGoodbye",
      on: { "worker.started": GOES_ON },
    },
  },
});
