// Whether a worker is given work like the others. One that fails item after item while others succeed is broken in itself: it
// is cordoned before it uses up the attempts of a whole run. The coordinator keeps one per worker.
import { assign, setup } from "xstate";

export interface TrustContext {
  /** The start of the worker's process that this is about. */
  readonly incarnation: string;
  /** Items that it failed since it last succeeded, of those that speak against it. */
  readonly failuresInRow: number;
  /** When the first of them failed; monotonic. */
  readonly failingSinceMs: number;
  readonly maxFailuresInRow: number;
  /** When it was last given an item in spite of its cordon, before the first when it was cordoned; 0 while it is trusted. */
  readonly triedAtMs: number;
}

export interface TrustInput {
  readonly incarnation: string;
  /** 5 unless said. */
  readonly maxFailuresInRow?: number;
}

export type TrustEvent =
  | { readonly type: "item.succeeded"; readonly incarnation: string }
  /**
   * The outcome is charged, and no other worker had failed the item before: an item that fails everywhere says nothing about
   * a worker. Both times are monotonic; the second is when any other worker last succeeded.
   */
  | {
      readonly type: "item.failed";
      readonly incarnation: string;
      readonly atMs: number;
      readonly othersSucceededAtMs: number;
    }
  /** An item that it failed was failed by another worker as well: it was not this worker's doing. */
  | { readonly type: "item.failedElsewhere" }
  /** It was given an item in spite of its cordon. */
  | { readonly type: "worker.tried"; readonly incarnation: string; readonly atMs: number }
  /** A new process of the worker. */
  | { readonly type: "worker.started"; readonly incarnation: string };

const MAX_FAILURES_IN_ROW = 5;

export const workerTrust = setup({
  types: {
    context: {} as TrustContext,
    events: {} as TrustEvent,
    input: {} as TrustInput,
  },
  guards: {
    isCurrent: ({ context, event }) => "incarnation" in event && event.incarnation === context.incarnation,
    isNewer: ({ context, event }) => "incarnation" in event && event.incarnation > context.incarnation,
    hasFailed: ({ context, event }) =>
      event.type === "item.succeeded" &&
      event.incarnation === context.incarnation &&
      context.failuresInRow > 0,
    isBlamed: ({ context }) => context.failuresInRow > 0,
    /** It has failed so often, and others have succeeded in that time. */
    isOut: ({ context, event }) =>
      event.type === "item.failed" &&
      event.incarnation === context.incarnation &&
      context.failuresInRow + 1 >= context.maxFailuresInRow &&
      event.othersSucceededAtMs >= (context.failuresInRow === 0 ? event.atMs : context.failingSinceMs),
    /** With one failure less it would not have been cordoned. */
    isCleared: ({ context }) => context.failuresInRow <= context.maxFailuresInRow,
  },
  actions: {
    begin: assign({
      incarnation: ({ context, event }) => ("incarnation" in event ? event.incarnation : context.incarnation),
      failuresInRow: 0,
      triedAtMs: 0,
    }),
    forgive: assign({ failuresInRow: 0, triedAtMs: 0 }),
    noteTry: assign({
      triedAtMs: ({ context, event }) => ("atMs" in event ? event.atMs : context.triedAtMs),
    }),
    blame: assign({
      failuresInRow: ({ context }) => context.failuresInRow + 1,
      failingSinceMs: ({ context, event }) =>
        event.type === "item.failed" && context.failuresInRow === 0 ? event.atMs : context.failingSinceMs,
    }),
    excuse: assign({ failuresInRow: ({ context }) => context.failuresInRow - 1 }),
    clear: assign({ triedAtMs: 0 }),
    announceCordoned: () => {},
    announceTrusted: () => {},
  },
}).createMachine({
  id: "worker-trust",
  version: "1",
  context: ({ input }) => ({
    incarnation: input.incarnation,
    failuresInRow: 0,
    failingSinceMs: 0,
    triedAtMs: 0,
    maxFailuresInRow: input.maxFailuresInRow ?? MAX_FAILURES_IN_ROW,
  }),
  initial: "Trusted",
  states: {
    Trusted: {
      on: {
        "item.succeeded": { guard: "hasFailed", actions: "forgive" },
        "item.failed": [
          { guard: "isOut", target: "Cordoned", actions: ["blame", "noteTry", "announceCordoned"] },
          { guard: "isCurrent", actions: "blame" },
        ],
        "item.failedElsewhere": { guard: "isBlamed", actions: "excuse" },
        "worker.started": { guard: "isNewer", actions: "begin" },
      },
    },
    // While others can work it is given nothing but an item now and then, to see whether it is well again: what it still does
    // is that, or what it had.
    Cordoned: {
      on: {
        "item.succeeded": { guard: "isCurrent", target: "Trusted", actions: ["forgive", "announceTrusted"] },
        "item.failed": { guard: "isCurrent", actions: "blame" },
        "worker.tried": { guard: "isCurrent", actions: "noteTry" },
        "item.failedElsewhere": [
          { guard: "isCleared", target: "Trusted", actions: ["excuse", "clear", "announceTrusted"] },
          { actions: "excuse" },
        ],
        "worker.started": { guard: "isNewer", target: "Trusted", actions: ["begin", "announceTrusted"] },
      },
    },
  },
});
