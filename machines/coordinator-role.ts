// The role of a coordinator process: candidate, leader or fenced. Every process starts as a candidate, whatever an earlier one was, and a fenced one
// never leads again: it ends.
import { assign, setup } from "xstate";

/** `epoch` is the one that this process leads or led under; null before it ever did. */
export interface RoleContext {
  readonly epoch: number | null;
}

export type RoleEvent =
  /** The claim is committed: lease row and epoch row name this process. */
  | { readonly type: "lease.won"; readonly epoch: number }
  /** Another epoch was found, or the deadline passed without a renewal, or the store cannot say. */
  | { readonly type: "lease.lost"; readonly reason: string; readonly seenEpoch: number | null }
  /** The lease row is marked free; somebody else may lead at once. */
  | { readonly type: "lease.resigned" };

export const coordinatorRole = setup({
  types: { context: {} as RoleContext, events: {} as RoleEvent },
  actions: {
    adoptEpoch: assign({ epoch: ({ context, event }) => ("epoch" in event ? event.epoch : context.epoch) }),
    startLeading: () => {},
    stopLeading: () => {},
    abortFenced: (_, _params: { reason: string; seenEpoch: number | null }) => {},
  },
}).createMachine({
  id: "coordinator-role",
  version: "1",
  context: { epoch: null },
  initial: "Candidate",
  states: {
    Candidate: { on: { "lease.won": { target: "Leader", actions: ["adoptEpoch", "startLeading"] } } },
    Leader: {
      on: {
        "lease.lost": {
          target: "Fenced",
          actions: {
            type: "abortFenced",
            params: ({ event }) => ({ reason: event.reason, seenEpoch: event.seenEpoch }),
          },
        },
        "lease.resigned": { target: "Candidate", actions: "stopLeading" },
      },
    },
    Fenced: { type: "final" },
  },
});
