// An allocation: one worker on one machine's share, from the moment at which it is decided until nothing of it is left. Its row is written
// before its launch leaves, so a launch of which nobody knows is found again by its id. Whether a machine is needed, and for how long
// one is waited for, others decide; the chart says what may follow what.
import { assign, setup } from "xstate";

/** Why it is to end. `left` and `mute` are its worker's doing, `orphan` is what a list has and no row explains. */
export type EndCause =
  | (
      | "idle"
      | "surplus"
      | "budget"
      | "deadline"
      | "lifetime"
      | "run_over"
      | "operator"
      | "removed"
      | "replaced"
    )
  | ("start_timeout" | "queue_timeout" | "orphan" | "left" | "mute");

/** Times are of the steady clock, in milliseconds; null: not yet. */
export interface AllocationContext {
  readonly askedAtMs: number;
  /** When its launch was sent last. */
  readonly launchedAtMs: number;
  /** Good lists in a row that did not have it, since then. */
  readonly missed: number;
  /** The provider's name for it; empty while that is not known. */
  readonly ref: string;
  readonly queuedAtMs: number | null;
  /** From here on its machine costs. */
  readonly bootedAtMs: number | null;
  readonly joinedAtMs: number | null;
  readonly endingAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly cause: EndCause | null;
  /** Its machine was taken away. */
  readonly isPreempted: boolean;
  /** How often the provider was told to end it, and when that is due again. */
  readonly stops: number;
  readonly stopAtMs: number;
  /** The provider's words against it; empty: none. */
  readonly reason: string;
}

/** A moment, by the steady clock. */
export interface At {
  readonly atMs: number;
}

export type AllocationEvent =
  | ({ readonly type: "launch.accepted"; readonly ref: string } & At)
  | ({ readonly type: "launch.refused"; readonly reason: string } & At)
  /** There is no room now: nothing was started. */
  | ({ readonly type: "launch.full"; readonly reason: string } & At)
  /** The same launch is sent again. */
  | ({ readonly type: "launch.repeated" } & At)
  /** A good list, asked for after the launch was sent, does not have it. */
  | ({ readonly type: "list.missed" } & At)
  | ({ readonly type: "list.queued"; readonly ref: string } & At)
  | ({ readonly type: "list.running"; readonly ref: string } & At)
  | ({ readonly type: "list.ended"; readonly isPreempted: boolean } & At)
  /** A good list does not have it any more. */
  | ({ readonly type: "list.gone" } & At)
  | ({ readonly type: "worker.joined" } & At)
  /** It has said goodbye. */
  | ({ readonly type: "worker.left" } & At)
  /** It has been silent for so long that its machine is given back. */
  | ({ readonly type: "worker.mute" } & At)
  | ({ readonly type: "end.asked"; readonly cause: EndCause } & At)
  | ({ readonly type: "stop.sent"; readonly againAtMs: number } & At);

const failed = { target: "Failed", actions: ["noteEnd", "announceFailed"] } as const;
const gone = { target: "Gone", actions: ["noteEnd", "announceEnded"] } as const;
const joined = { target: "Joined", actions: ["noteBoot", "noteJoin", "announceJoined"] } as const;
const ending = { target: "Ending", actions: "noteAsked" } as const;
const booting = { target: "Booting", actions: ["noteRef", "noteBoot"] } as const;
const over = [{ guard: "hasFailed", ...failed }, gone] as const;

export const allocation = setup({
  types: {
    context: {} as AllocationContext,
    events: {} as AllocationEvent,
    input: {} as At,
  },
  guards: {
    /** It was waited for long enough, and did not join. */
    hasFailed: ({ context: { joinedAtMs, cause } }) =>
      joinedAtMs === null && (cause === "start_timeout" || cause === "queue_timeout"),
    isNew: ({ context }) => context.joinedAtMs === null,
    isUnmetered: ({ context }) => context.bootedAtMs === null,
  },
  actions: {
    noteRef: assign({ ref: ({ context, event }) => ("ref" in event ? event.ref : context.ref) }),
    noteQueued: assign({ queuedAtMs: ({ event }) => event.atMs }),
    noteBoot: assign({ bootedAtMs: ({ context, event }) => context.bootedAtMs ?? event.atMs }),
    noteJoin: assign({ joinedAtMs: ({ event }) => event.atMs }),
    noteLaunch: assign({ launchedAtMs: ({ event }) => event.atMs, missed: 0 }),
    noteMissed: assign({ missed: ({ context }) => context.missed + 1 }),
    noteAsked: assign(({ event }) => ({
      cause: "cause" in event ? event.cause : event.type === "worker.left" ? "left" : "mute",
      endingAtMs: event.atMs,
      stopAtMs: event.atMs,
    })),
    noteStop: assign(({ context, event }) => ({
      stops: context.stops + 1,
      stopAtMs: "againAtMs" in event ? event.againAtMs : context.stopAtMs,
    })),
    noteEnd: assign(({ context, event }) => ({
      endedAtMs: event.atMs,
      isPreempted: "isPreempted" in event ? event.isPreempted : context.isPreempted,
      reason: "reason" in event ? event.reason : context.reason,
    })),
    announceJoined: () => {},
    announceEnded: () => {},
    announceFailed: () => {},
  },
}).createMachine({
  id: "allocation",
  version: "1",
  context: ({ input: { atMs } }) => ({
    ...{ askedAtMs: atMs, launchedAtMs: atMs, missed: 0, ref: "" },
    ...{ queuedAtMs: null, bootedAtMs: null, joinedAtMs: null, endingAtMs: null, endedAtMs: null },
    ...{ cause: null, isPreempted: false, stops: 0, stopAtMs: 0, reason: "" },
  }),
  initial: "Requested",
  states: {
    Requested: {
      on: {
        "launch.accepted": { target: "Queued", actions: ["noteRef", "noteQueued"] },
        "launch.refused": failed,
        "launch.full": { target: "Gone", actions: "noteEnd" },
        "launch.repeated": { actions: "noteLaunch" },
        "list.missed": { actions: "noteMissed" },
        "list.queued": { target: "Queued", actions: ["noteRef", "noteQueued"] },
        "list.running": booting,
        "list.ended": failed,
        "worker.joined": joined,
        "end.asked": ending,
      },
    },
    Queued: {
      on: {
        "list.running": booting,
        "list.ended": failed,
        "list.gone": failed,
        "worker.joined": joined,
        "end.asked": ending,
      },
    },
    Booting: {
      on: {
        "list.ended": failed,
        "list.gone": failed,
        "worker.joined": joined,
        "end.asked": ending,
      },
    },
    Joined: {
      on: {
        "list.ended": gone,
        "list.gone": gone,
        "worker.left": ending,
        "worker.mute": ending,
        "end.asked": ending,
      },
    },
    // Its worker drains, then the provider is told, and told again: it is not forgotten before a good list says that it is gone.
    Ending: {
      on: {
        "launch.accepted": { actions: "noteRef" },
        "launch.refused": gone,
        "launch.full": gone,
        "list.running": { guard: "isUnmetered", actions: ["noteRef", "noteBoot"] },
        "list.ended": over,
        "list.gone": over,
        "worker.joined": { guard: "isNew", actions: ["noteBoot", "noteJoin"] },
        "stop.sent": { actions: "noteStop" },
      },
    },
    Failed: {},
    Gone: {},
  },
});
