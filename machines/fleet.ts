// A fleet: whether workers are asked for. One that does not work is halted aloud, one that has no room is waited for, one whose budget is
// used up starts nothing more. How long a wait is comes with the event.
import { assign, setup } from "xstate";

export interface FleetContext {
  /** Starts that failed since the last worker joined. */
  readonly failuresInRow: number;
  readonly maxFailuresInRow: number;
  /** Answers since then that there was no room. */
  readonly fullsInRow: number;
  /** Until then nothing is tried, by the steady clock; 0 while nothing is waited for. */
  readonly untilMs: number;
  /** Why it stands where it stands, in words for a person. */
  readonly reason: string;
  /** The person who has decided last; empty: nobody has. */
  readonly by: string;
}

export interface FleetInput {
  readonly maxFailuresInRow: number;
}

interface Wait {
  /** By the steady clock. */
  readonly untilMs: number;
  readonly reason: string;
}

export type FleetEvent =
  | ({ readonly type: "start.failed" } & Wait)
  | ({ readonly type: "provider.full" } & Wait)
  /** A worker has joined. */
  | { readonly type: "start.joined" }
  | { readonly type: "time.passed"; readonly atMs: number }
  | { readonly type: "budget.spent"; readonly reason: string }
  /** The settings leave something again. */
  | { readonly type: "budget.left" }
  /** Nobody could work any more, and the run was paused: a person decides. */
  | { readonly type: "run.paused" }
  /** Somebody who works is there again, or may be. */
  | { readonly type: "help.came" }
  | { readonly type: "fleet.paused"; readonly reason: string; readonly by: string }
  | { readonly type: "fleet.resumed"; readonly by: string };

const failing = [
  { guard: "isOneTooMany", target: "Halted", actions: ["noteFailure", "announceHalted"] },
  { target: "Cooling", actions: "noteFailure" },
] as const;
const full = { target: "Cooling", actions: "noteFull" } as const;
const paused = { target: "Paused", actions: "noteDecision" } as const;
const spent = { target: "Spent", actions: ["noteReason", "announceSpent"] } as const;
const left = { target: "Active", actions: "clearReason" } as const;
const resumed = { target: "Active", actions: ["forgive", "noteDecision"] } as const;

export const fleet = setup({
  types: { context: {} as FleetContext, events: {} as FleetEvent, input: {} as FleetInput },
  guards: {
    isOneTooMany: ({ context }) => context.failuresInRow + 1 >= context.maxFailuresInRow,
    hasTrouble: ({ context }) => context.failuresInRow > 0 || context.fullsInRow > 0,
    isTime: ({ context, event }) => event.type === "time.passed" && event.atMs >= context.untilMs,
  },
  actions: {
    noteFailure: assign(({ context, event }) => ({
      failuresInRow: context.failuresInRow + 1,
      untilMs: "untilMs" in event ? event.untilMs : context.untilMs,
      reason: "reason" in event ? event.reason : context.reason,
    })),
    noteFull: assign(({ context, event }) => ({
      fullsInRow: context.fullsInRow + 1,
      untilMs: "untilMs" in event ? event.untilMs : context.untilMs,
      reason: "reason" in event ? event.reason : context.reason,
    })),
    forgive: assign({ failuresInRow: 0, fullsInRow: 0, untilMs: 0, reason: "" }),
    endWait: assign({ untilMs: 0 }),
    noteReason: assign({
      reason: ({ context, event }) => ("reason" in event ? event.reason : context.reason),
    }),
    clearReason: assign({ reason: "" }),
    noteDecision: assign(({ event }) => ({
      reason: "reason" in event ? event.reason : "",
      by: "by" in event ? event.by : "",
    })),
    announceHalted: () => {},
    announceSpent: () => {},
  },
}).createMachine({
  id: "fleet",
  version: "1",
  context: ({ input }) => ({
    ...{ failuresInRow: 0, maxFailuresInRow: input.maxFailuresInRow },
    ...{ fullsInRow: 0, untilMs: 0, reason: "", by: "" },
  }),
  initial: "Active",
  states: {
    Active: {
      on: {
        "start.failed": failing,
        "provider.full": full,
        "start.joined": { guard: "hasTrouble", actions: "forgive" },
        "budget.spent": spent,
        "fleet.paused": paused,
      },
    },
    Cooling: {
      on: {
        "start.failed": failing,
        "provider.full": full,
        "start.joined": { target: "Active", actions: "forgive" },
        "time.passed": { guard: "isTime", target: "Active", actions: "endWait" },
        "budget.spent": spent,
        "fleet.paused": paused,
      },
    },
    // A person looks at what was wrong, and lets it go on.
    Halted: { on: { "fleet.resumed": resumed, "fleet.paused": paused } },
    Paused: { on: { "fleet.resumed": resumed } },
    Spent: { on: { "budget.left": left, "run.paused": "Deferred", "fleet.paused": paused } },
    // A person was asked once. One who resumes the run without raising the budget is not asked again, by no leader.
    Deferred: { on: { "budget.left": left, "help.came": "Spent", "fleet.paused": paused } },
  },
});
