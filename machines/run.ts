// The run as a whole: open for items until it is sealed, complete when every item is final; and while it is neither complete
// nor cancelled, whether work is being given out.
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
  | { readonly type: "run.reopened" }
  /** Items have come in after it was sealed, from somebody who wants that. */
  | { readonly type: "run.extended" };

const pausedTo = <State extends string>(target: State) =>
  ({ target, actions: ["keepReason", "announcePaused"] }) as const;
const resumedTo = <State extends string>(target: State) =>
  ({ target, actions: ["forgetReason", "announceResumed"] }) as const;

export const run = setup({
  types: { context: {} as RunContext, events: {} as RunEvent },
  actions: {
    keepReason: assign({
      pauseReason: ({ context, event }) => (event.type === "run.paused" ? event.reason : context.pauseReason),
    }),
    forgetReason: assign({ pauseReason: null }),
    announceCompleted: () => {},
    announceCancelled: () => {},
    announcePaused: () => {},
    announceResumed: () => {},
    announceReopened: () => {},
  },
}).createMachine({
  id: "run",
  version: "1",
  context: { pauseReason: null },
  initial: "Open",
  states: {
    Open: {
      initial: "Active",
      on: { "run.cancelled": { target: "Cancelled", actions: ["forgetReason", "announceCancelled"] } },
      states: {
        Active: { on: { "run.paused": pausedTo("Paused"), "run.sealed": "#run.Sealed.Active" } },
        Paused: { on: { "run.resumed": resumedTo("Active"), "run.sealed": "#run.Sealed.Paused" } },
      },
    },
    Sealed: {
      initial: "Active",
      on: {
        // A run that is over is not paused: an operator who takes failed items back wants them to run.
        "run.completed": { target: "Complete", actions: ["forgetReason", "announceCompleted"] },
        "run.cancelled": { target: "Cancelled", actions: ["forgetReason", "announceCancelled"] },
      },
      states: {
        Active: { on: { "run.paused": pausedTo("Paused"), "run.extended": "#run.Open.Active" } },
        Paused: { on: { "run.resumed": resumedTo("Active"), "run.extended": "#run.Open.Paused" } },
      },
    },
    Complete: {
      on: {
        "run.reopened": { target: "Sealed", actions: "announceReopened" },
        "run.extended": { target: "Open", actions: "announceReopened" },
      },
    },
    Cancelled: {},
  },
});
