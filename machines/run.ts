// The run as a whole: open for items until it is sealed, complete when every item is final, and beside that whether work
// is being given out.
import { assign, setup } from "xstate";

export interface RunContext {
  /** Why the run is paused, in words for a person; null while it is active. */
  readonly pauseReason: string | null;
}

export type RunEvent =
  | { readonly type: "run.sealed" }
  /** The counters and a scan of the ledger agree that every item is final. */
  | { readonly type: "run.completed" }
  | { readonly type: "run.cancelled" }
  | { readonly type: "run.paused"; readonly reason: string }
  | { readonly type: "run.resumed" }
  /** An operator's retry made a final item pending again. */
  | { readonly type: "run.reopened" };

export const run = setup({
  types: { context: {} as RunContext, events: {} as RunEvent },
  actions: {
    keepReason: assign({
      pauseReason: ({ event }) => (event.type === "run.paused" ? event.reason : null),
    }),
    announceCompleted: () => {},
    announceCancelled: () => {},
    announcePaused: () => {},
    announceResumed: () => {},
  },
}).createMachine({
  id: "run",
  version: "1",
  context: { pauseReason: null },
  type: "parallel",
  states: {
    progress: {
      initial: "Open",
      states: {
        Open: {
          on: {
            "run.sealed": "Sealed",
            "run.cancelled": { target: "Cancelled", actions: "announceCancelled" },
          },
        },
        Sealed: {
          on: {
            "run.completed": { target: "Complete", actions: "announceCompleted" },
            "run.cancelled": { target: "Cancelled", actions: "announceCancelled" },
          },
        },
        Complete: { on: { "run.reopened": "Sealed" } },
        Cancelled: {},
      },
    },
    activity: {
      initial: "Active",
      states: {
        Active: {
          on: { "run.paused": { target: "Paused", actions: ["keepReason", "announcePaused"] } },
        },
        Paused: {
          on: { "run.resumed": { target: "Active", actions: ["keepReason", "announceResumed"] } },
        },
      },
    },
  },
});
