// One item of a run. It is Pending until a worker has it, Running under exactly one (worker, incarnation, attempt), and
// Done or Failed for good: only an operator's retry takes Failed back.
import { assign, setup } from "xstate";

/** The attempt that an item is, or was last, running under. */
export interface AttemptKey {
  readonly worker: string;
  readonly incarnation: string;
  /** Grows at every assignment and never repeats; 0 before the first. */
  readonly attempt: number;
  /** The leadership that assigned it. */
  readonly epoch: number;
}

export interface ItemContext extends AttemptKey {
  /** Charged outcomes (error, timeout, crash) since submission or the last retry by an operator. */
  readonly charged: number;
  /** Counted losses since then. */
  readonly lost: number;
  readonly maxAttempts: number;
  readonly maxLost: number;
}

type Report<Type extends string> = { readonly type: Type } & AttemptKey;

export type ItemEvent =
  | ({ readonly type: "item.assigned" } & Omit<AttemptKey, "attempt">)
  | Report<"item.succeeded">
  /** A success for an attempt that was given up; accepted while the item is nobody's. */
  | Report<"item.succeededLate">
  /** The outcome is charged: error, timeout, crash. */
  | Report<"item.erred">
  /** Payload, output or checkpoint over its limit: trying again cannot help. */
  | Report<"item.tooLarge">
  /** Preempted, stolen, fenced or never arrived: nobody's fault, nothing is charged. */
  | Report<"item.returned">
  /** The worker fell silent. `counted` is false when many fell silent together. */
  | (Report<"item.lost"> & { readonly counted: boolean })
  | { readonly type: "item.cancelled" }
  | { readonly type: "item.retried" };

/** Whether the event speaks of the very attempt that the item is running under (C3). */
const isCurrent = (context: ItemContext, event: ItemEvent): boolean =>
  "attempt" in event &&
  event.attempt === context.attempt &&
  event.incarnation === context.incarnation &&
  event.worker === context.worker &&
  event.epoch === context.epoch;

export const workItem = setup({
  types: {
    context: {} as ItemContext,
    events: {} as ItemEvent,
    input: {} as { readonly maxAttempts: number; readonly maxLost: number },
  },
  guards: {
    isCurrent: ({ context, event }) => isCurrent(context, event),
    /** An attempt that the item was under once. */
    isGivenUp: ({ context, event }) =>
      "attempt" in event && event.attempt >= 1 && event.attempt <= context.attempt,
    isSpent: ({ context, event }) => isCurrent(context, event) && context.charged + 1 >= context.maxAttempts,
    isPoison: ({ context, event }) =>
      event.type === "item.lost" &&
      event.counted &&
      isCurrent(context, event) &&
      context.lost + 1 >= context.maxLost,
  },
  actions: {
    assignTo: assign(({ context, event }) =>
      event.type === "item.assigned"
        ? {
            worker: event.worker,
            incarnation: event.incarnation,
            epoch: event.epoch,
            attempt: context.attempt + 1,
          }
        : {},
    ),
    charge: assign({ charged: ({ context }) => context.charged + 1 }),
    countLoss: assign({
      lost: ({ context, event }) => context.lost + (event.type === "item.lost" && event.counted ? 1 : 0),
    }),
    resetBudgets: assign({ charged: 0, lost: 0 }),
    recordResult: () => {},
    recordFailure: () => {},
    queueAtOldPlace: () => {},
    queueAfterBackoff: () => {},
  },
}).createMachine({
  id: "work-item",
  version: "1",
  context: ({ input }) => ({
    worker: "",
    incarnation: "",
    attempt: 0,
    epoch: 0,
    charged: 0,
    lost: 0,
    maxAttempts: input.maxAttempts,
    maxLost: input.maxLost,
  }),
  initial: "Pending",
  states: {
    Pending: {
      on: {
        "item.assigned": { target: "Running", actions: "assignTo" },
        "item.succeededLate": { guard: "isGivenUp", target: "Done", actions: "recordResult" },
        "item.cancelled": { target: "Failed", actions: "recordFailure" },
      },
    },
    Running: {
      on: {
        "item.succeeded": { guard: "isCurrent", target: "Done", actions: "recordResult" },
        "item.erred": [
          { guard: "isSpent", target: "Failed", actions: ["charge", "recordFailure"] },
          { guard: "isCurrent", target: "Pending", actions: ["charge", "queueAfterBackoff"] },
        ],
        "item.tooLarge": { guard: "isCurrent", target: "Failed", actions: "recordFailure" },
        "item.returned": { guard: "isCurrent", target: "Pending", actions: "queueAtOldPlace" },
        "item.lost": [
          { guard: "isPoison", target: "Failed", actions: ["countLoss", "recordFailure"] },
          { guard: "isCurrent", target: "Pending", actions: ["countLoss", "queueAtOldPlace"] },
        ],
        "item.cancelled": { target: "Failed", actions: "recordFailure" },
      },
    },
    Done: {},
    Failed: { on: { "item.retried": { target: "Pending", actions: ["resetBudgets", "queueAtOldPlace"] } } },
  },
});
