// A worker's stay: how long it goes on without a leader, without work, and at all. It leaves of its own accord, so that nobody has to
// live for its machine to be given back. Moments are data, on the monotonic clock of this start of the machine; the worker's clock brings
// the next one back as an event. How long it is there at all outlives a process that dies; the rest begins anew with each.
import { assign, setup } from "xstate";

/** Why it leaves: no leader answers, it has been there for long enough, or there is nothing to do. */
export type StayEnd = "orphan" | "lifetime" | "idle";

/** Milliseconds; null: without end. */
export interface StayLimits {
  readonly orphanMs: number | null;
  readonly lifetimeMs: number | null;
  readonly idleMs: number | null;
}

export interface StayContext extends StayLimits {
  /** The start of the machine on which these moments mean something; empty when nobody knows. */
  readonly boot: string;
  readonly beganAtMs: number;
  /** Since when it waits for a leader, or for work. */
  readonly awaitedFromMs: number;
  /** It leaves then, unless something changes before. */
  readonly untilMs: number;
  readonly cause: StayEnd | null;
}

export type StayEvent =
  /** A new process of the worker. */
  | {
      readonly type: "worker.started";
      readonly atMs: number;
      readonly boot: string;
      readonly limits: StayLimits;
    }
  /** After the start, or after none has for long. */
  | { readonly type: "leader.answered"; readonly atMs: number }
  /** None has since then: what the worker has may be given to others. */
  | { readonly type: "leader.lost"; readonly atMs: number }
  | { readonly type: "work.began" }
  /** Nothing executes or waits here since then. */
  | { readonly type: "work.ended"; readonly atMs: number }
  | { readonly type: "time.passed"; readonly atMs: number };

const NEVER_MS = Number.MAX_SAFE_INTEGER;

const nothing: StayContext = {
  ...{ orphanMs: null, lifetimeMs: null, idleMs: null },
  ...{ boot: "", beganAtMs: 0, awaitedFromMs: 0, untilMs: NEVER_MS, cause: null },
};

function endsAtMs({ beganAtMs, lifetimeMs }: StayContext): number {
  return lifetimeMs === null ? NEVER_MS : beganAtMs + lifetimeMs;
}

/** From that moment on it waits for so long at most. */
function waiting(
  context: StayContext,
  sinceMs: number,
  limitMs: number | null,
): Pick<StayContext, "awaitedFromMs" | "untilMs"> {
  const leavesAtMs = limitMs === null ? NEVER_MS : sinceMs + limitMs;
  return { awaitedFromMs: sinceMs, untilMs: Math.min(endsAtMs(context), leavesAtMs) };
}

const begins = { target: "#worker-stay.Alone", actions: ["begin", "adoptLimits", "awaitLeader"] } as const;
const ended = { guard: "isOver", target: "Leaving", actions: "noteLifetime" } as const;

export const workerStay = setup({
  types: { context: {} as StayContext, events: {} as StayEvent },
  guards: {
    /** The process before died in the middle of it. */
    goesOn: ({ context, event }) =>
      event.type === "worker.started" && event.boot !== "" && event.boot === context.boot,
    isOver: ({ context, event }) => event.type === "time.passed" && event.atMs >= endsAtMs(context),
    isDue: ({ context, event }) => event.type === "time.passed" && event.atMs >= context.untilMs,
  },
  actions: {
    begin: assign(({ event }) =>
      event.type === "worker.started" ? { beganAtMs: event.atMs, boot: event.boot, cause: null } : {},
    ),
    adoptLimits: assign(({ event }) => (event.type === "worker.started" ? event.limits : {})),
    awaitLeader: assign(({ context, event }) =>
      "atMs" in event ? waiting(context, event.atMs, context.orphanMs) : {},
    ),
    awaitWork: assign(({ context, event }) =>
      "atMs" in event ? waiting(context, event.atMs, context.idleMs) : {},
    ),
    awaitEnd: assign(({ context }) => ({ untilMs: endsAtMs(context) })),
    noteLifetime: assign({ cause: "lifetime", untilMs: NEVER_MS }),
    noteOrphan: assign({ cause: "orphan", untilMs: NEVER_MS }),
    noteIdle: assign({ cause: "idle", untilMs: NEVER_MS }),
    askDrain: () => {},
  },
}).createMachine({
  id: "worker-stay",
  version: "1",
  context: nothing,
  initial: "Alone",
  on: {
    "worker.started": [
      { guard: "goesOn", target: ".Alone", actions: ["adoptLimits", "awaitLeader"] },
      begins,
    ],
  },
  states: {
    // No leader answers, or none has yet.
    Alone: {
      on: {
        "leader.answered": { target: "Idle", actions: "awaitWork" },
        "time.passed": [ended, { guard: "isDue", target: "Leaving", actions: "noteOrphan" }],
      },
    },
    Idle: {
      on: {
        "work.began": { target: "Working", actions: "awaitEnd" },
        "work.ended": { actions: "awaitWork" },
        "leader.lost": { target: "Alone", actions: "awaitLeader" },
        "time.passed": [ended, { guard: "isDue", target: "Leaving", actions: "noteIdle" }],
      },
    },
    Working: {
      on: {
        "work.ended": { target: "Idle", actions: "awaitWork" },
        "leader.lost": { target: "Alone", actions: "awaitLeader" },
        "time.passed": ended,
      },
    },
    // The process before has left; another one begins anew.
    Leaving: { entry: "askDrain", on: { "worker.started": begins } },
  },
});
