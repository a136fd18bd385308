// The role of a coordinator process. A candidate follows whoever leads until it claims the lease itself; a leader leads until it gives the lease up, and
// follows again, or loses it and is fenced. One that has made room for another holds back until it has seen another one lead. One that finds that the store has gone back in time is halted. Every process starts by following, whatever
// an earlier one was; a fenced or halted one never leads again: it ends. The record outlives the process, so that the next one can say how the last
// leadership ended.
import { assign, setup } from "xstate";

/** How a leadership ended. */
export type Ending = { readonly epoch: number } & (
  | { readonly kind: "resigned" }
  /** Its process ended without a word, by kill -9 or with its machine. */
  | { readonly kind: "killed" }
  /** The store holds less than what it had acknowledged. */
  | { readonly kind: "halted" }
  /** `seenEpoch` and `by` name the later leadership and its process; each is null when it could not be read. */
  | { readonly kind: "fenced"; readonly seenEpoch: number | null; readonly by: string | null }
);

export interface RoleContext {
  /** The epoch that this process leads or led under; null before it ever did. */
  readonly epoch: number | null;
  /** The end of the last leadership that has ended: of an earlier process while this one leads. Null when there was none. */
  readonly ending: Ending | null;
}

/** Whether a candidate may claim a lease that nobody holds any more. */
export interface Candidacy {
  /** Its own weight; with 0 it never leads. */
  readonly weight: number;
  /** No heavier candidate is to be given the first try. */
  readonly isItsTurn: boolean;
  /** The coordinators that are there have as much weight as an election takes. */
  readonly hasQuorum: boolean;
}

export type RoleEvent =
  /** A new process has taken up the record. */
  | { readonly type: "coordinator.started" }
  /** The lease has not been renewed for as long as it lives. */
  | ({ readonly type: "lease.quiet" } & Candidacy)
  /** Nobody holds the lease. */
  | ({ readonly type: "lease.free" } & Candidacy)
  /** Another process leads. */
  | { readonly type: "lease.held" }
  /** The claim came to nothing: another one was first, or the store cannot say. */
  | { readonly type: "claim.beaten" }
  /** The claim is committed, and the ledger read: lease row and epoch row name this process. */
  | { readonly type: "lease.won"; readonly epoch: number }
  /** Another epoch was found, or the deadline passed without a renewal, or the store cannot say. */
  | {
      readonly type: "lease.lost";
      readonly reason: string;
      readonly seenEpoch: number | null;
      readonly by: string | null;
    }
  /** It gives the lease up, to end. */
  | { readonly type: "lease.resigned" }
  /** It gives the lease up, to make room for another leader. */
  | { readonly type: "lease.yielded" }
  /** The store is older than what it has acknowledged; `missing` completions are gone, null where nobody knows how many. */
  | { readonly type: "store.rolledBack"; readonly reason: string; readonly missing: number | null };

/** The epoch is null in no state in which a leadership ends. */
const ended = (context: RoleContext, how: (epoch: number) => Ending): Partial<RoleContext> =>
  context.epoch === null ? {} : { ending: how(context.epoch) };

const haltRolledBack = {
  type: "haltRolledBack",
  params: ({ event }: { readonly event: RoleEvent }) =>
    event.type === "store.rolledBack"
      ? { reason: event.reason, missing: event.missing }
      : { reason: "", missing: null },
} as const;

export const coordinatorRole = setup({
  types: { context: {} as RoleContext, events: {} as RoleEvent },
  guards: {
    isElectable: ({ event }) => "weight" in event && event.weight > 0 && event.isItsTurn && event.hasQuorum,
  },
  actions: {
    adoptEpoch: assign({ epoch: ({ context, event }) => ("epoch" in event ? event.epoch : context.epoch) }),
    forgetEpoch: assign({ epoch: null }),
    noteResigned: assign(({ context }) => ended(context, (epoch) => ({ kind: "resigned", epoch }))),
    noteKilled: assign(({ context }) => ended(context, (epoch) => ({ kind: "killed", epoch }))),
    noteHalted: assign(({ context }) => ended(context, (epoch) => ({ kind: "halted", epoch }))),
    noteFenced: assign(({ context, event }) =>
      event.type === "lease.lost"
        ? ended(context, (epoch) => ({ kind: "fenced", epoch, seenEpoch: event.seenEpoch, by: event.by }))
        : {},
    ),
    startLeading: () => {},
    resignLease: () => {},
    abortFenced: (_, _params: { reason: string; seenEpoch: number | null }) => {},
    haltRolledBack: (_, _params: { reason: string; missing: number | null }) => {},
  },
}).createMachine({
  id: "coordinator-role",
  version: "4",
  context: { epoch: null, ending: null },
  initial: "Candidate",
  states: {
    Candidate: {
      initial: "Following",
      on: {
        "coordinator.started": { target: ".Following", actions: "forgetEpoch" },
        "store.rolledBack": { target: "Halted", actions: haltRolledBack },
      },
      states: {
        Following: {
          initial: "Willing",
          on: {
            "lease.quiet": { guard: "isElectable", target: "Claiming" },
            "lease.free": { guard: "isElectable", target: "Claiming" },
          },
          states: {
            Willing: {},
            // It stands behind every other one, whatever its weight.
            Yielding: { on: { "lease.held": "Willing" } },
          },
        },
        Claiming: {
          on: {
            "claim.beaten": "Following",
            "lease.won": { target: "#coordinator-role.Leader", actions: ["adoptEpoch", "startLeading"] },
          },
        },
      },
    },
    Leader: {
      on: {
        "coordinator.started": { target: "Candidate", actions: ["noteKilled", "forgetEpoch"] },
        "lease.lost": {
          target: "Fenced",
          actions: [
            "noteFenced",
            {
              type: "abortFenced",
              params: ({ event }) => ({ reason: event.reason, seenEpoch: event.seenEpoch }),
            },
          ],
        },
        "lease.resigned": { target: "Candidate", actions: ["noteResigned", "resignLease"] },
        "lease.yielded": { target: "Candidate.Following.Yielding", actions: ["noteResigned", "resignLease"] },
        // By a worker's word: it has heard of a later leadership than any that the store knows.
        "store.rolledBack": { target: "Halted", actions: ["noteHalted", haltRolledBack] },
      },
    },
    Fenced: { on: { "coordinator.started": { target: "Candidate", actions: "forgetEpoch" } } },
    Halted: { on: { "coordinator.started": { target: "Candidate", actions: "forgetEpoch" } } },
  },
});
