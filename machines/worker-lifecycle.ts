// A worker as its coordinator sees it: where it is in its life, and beside it whether it is heard of. The registry keeps one per
// worker, moved by beats and by their absence.
import { assign, setup } from "xstate";

/**
 * `incarnation` is the ULID of the process start that the rest of the snapshot is about. A worker makes each of its
 * incarnations greater than the last one, so text order says which of two is newer.
 */
export interface WorkerContext {
  readonly incarnation: string;
  /** An operator wants this process to leave; it is told until it does. */
  readonly isToDrain: boolean;
}

export interface WorkerInput {
  readonly incarnation: string;
}

export type WorkerEvent =
  /** The worker is known to a leader and may be given work. */
  | { readonly type: "worker.welcomed"; readonly incarnation: string }
  /** An operator wants it to drain: asked of one process of it, and not of the next. */
  | { readonly type: "worker.drainAsked"; readonly incarnation: string }
  /** Take nothing new, hand back, leave. */
  | { readonly type: "worker.drain"; readonly incarnation: string }
  /** Nothing is held any more and the worker has said goodbye. */
  | { readonly type: "worker.left"; readonly incarnation: string }
  /** A new process of the same worker; an older one than the current is ignored. */
  | { readonly type: "worker.started"; readonly incarnation: string }
  | { readonly type: "beat.arrived"; readonly incarnation: string }
  /** No beat within the interval and the skew budget. */
  | { readonly type: "beat.overdue" }
  /** No beat within the failure timeout. */
  | { readonly type: "beat.timedOut" }
  /** Failed or gone for as long as such a worker is remembered. */
  | { readonly type: "worker.expired" };

export const workerLifecycle = setup({
  types: {
    context: {} as WorkerContext,
    events: {} as WorkerEvent,
    input: {} as WorkerInput,
  },
  guards: {
    isCurrent: ({ context, event }) => "incarnation" in event && event.incarnation === context.incarnation,
    isFirstAsked: ({ context, event }) =>
      "incarnation" in event && event.incarnation === context.incarnation && !context.isToDrain,
    isNewer: ({ context, event }) => "incarnation" in event && event.incarnation > context.incarnation,
  },
  actions: {
    adopt: assign({
      incarnation: ({ context, event }) => ("incarnation" in event ? event.incarnation : context.incarnation),
      isToDrain: false,
    }),
    noteDrainAsked: assign({ isToDrain: true }),
    announceSuspected: () => {},
    announceFailed: () => {},
    announceRecovered: () => {},
    announceDraining: () => {},
    announceLeft: () => {},
    announceSuperseded: () => {},
    forget: () => {},
  },
}).createMachine({
  id: "worker-lifecycle",
  version: "1",
  context: ({ input }) => ({ incarnation: input.incarnation, isToDrain: false }),
  type: "parallel",
  states: {
    lifecycle: {
      initial: "Init",
      on: {
        "worker.started": { guard: "isNewer", target: ".Init", actions: ["announceSuperseded", "adopt"] },
      },
      states: {
        Init: {
          on: {
            "worker.welcomed": { guard: "isCurrent", target: "Ready" },
            "worker.drainAsked": { guard: "isFirstAsked", actions: "noteDrainAsked" },
            "worker.drain": { guard: "isCurrent", target: "Draining", actions: "announceDraining" },
            "worker.left": { guard: "isCurrent", target: "Gone", actions: "announceLeft" },
          },
        },
        Ready: {
          on: {
            "worker.drainAsked": { guard: "isFirstAsked", actions: "noteDrainAsked" },
            "worker.drain": { guard: "isCurrent", target: "Draining", actions: "announceDraining" },
            "worker.left": { guard: "isCurrent", target: "Gone", actions: "announceLeft" },
          },
        },
        Draining: {
          on: { "worker.left": { guard: "isCurrent", target: "Gone", actions: "announceLeft" } },
        },
        Gone: {},
      },
    },
    liveness: {
      initial: "Alive",
      on: {
        "worker.started": { guard: "isNewer", target: ".Alive" },
      },
      states: {
        Alive: {
          on: {
            "beat.overdue": { target: "Suspected", actions: "announceSuspected" },
            "worker.left": { guard: "isCurrent", target: "Removed" },
          },
        },
        Suspected: {
          on: {
            "worker.left": { guard: "isCurrent", target: "Removed" },
            "beat.arrived": { guard: "isCurrent", target: "Alive", actions: "announceRecovered" },
            "beat.timedOut": { target: "Failed", actions: "announceFailed" },
          },
        },
        Failed: {
          on: {
            "worker.left": { guard: "isCurrent", target: "Removed" },
            "beat.arrived": { guard: "isCurrent", target: "Alive", actions: "announceRecovered" },
            "worker.expired": { target: "Removed", actions: "forget" },
          },
        },
        Removed: { on: { "worker.expired": { actions: "forget" } } },
      },
    },
  },
});
