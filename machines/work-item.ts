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
  /** The worker of the last charged outcome; empty when there was none since then. */
  readonly failedBy: string;
  /** Whom the first charged outcome speaks against: its worker, until another one fails it as well; then empty. */
  readonly blamed: string;
  /** It was executing when something that executed others too has died: it runs with nothing beside it from then on. */
  readonly isApart: boolean;
  /** When it was returned uncharged, within the last minute; the latest, and no more than can matter. */
  readonly returnedAtMs: readonly number[];
  /** The release whose candidate the attempt tries; empty: it tries none. */
  readonly trial: string;
  /** The release that tries it no more: its candidate has failed it, or an operator has retried it meanwhile. Empty: none. */
  readonly tried: string;
  readonly maxAttempts: number;
  readonly maxLost: number;
  /** Returned so often within a minute, it waits. */
  readonly maxReturns: number;
}

export interface ItemInput {
  readonly maxAttempts: number;
  readonly maxLost: number;
  /** 10 unless said. */
  readonly maxReturns?: number;
}

/** `trial`: a release, the candidate of which the attempt tries; none unless said. */
interface OnTrial {
  readonly trial?: string;
}

type Report<Type extends string> = { readonly type: Type } & AttemptKey;

export type ItemEvent =
  | ({ readonly type: "item.assigned" } & Omit<AttemptKey, "attempt"> & OnTrial)
  /** A worker has it under an attempt that the ledger has not heard of: the assignment was lost with the power. */
  | (Report<"item.adopted"> & OnTrial)
  | Report<"item.succeeded">
  /** A success for an attempt that was given up; accepted while the item is nobody's. */
  | Report<"item.succeededLate">
  /** The outcome is charged: error, timeout, crash. */
  | Report<"item.erred">
  /** Payload, output or checkpoint over its limit, or an error that comes each time: trying again cannot help. */
  | Report<"item.tooLarge">
  /** The process that executed it died while it executed others too: no item can be blamed for it. */
  | Report<"item.crashedTogether">
  /** An attempt that was a trial has failed, in whatever way: nothing is charged, and the item is as it was but for that. */
  | Report<"item.erredOnTrial">
  /** Preempted, stolen, fenced or never arrived: nobody's fault, nothing is charged. `atMs` outlives a restart. */
  | (Report<"item.returned"> & { readonly atMs: number })
  /** The worker fell silent. `counted` is false when many fell silent together. */
  | (Report<"item.lost"> & { readonly counted: boolean })
  | { readonly type: "item.cancelled" }
  | { readonly type: "item.retried" };

/** Counted losses after which an item runs with nothing beside it, so that what dies with it is its own doing. */
const ALONE_AFTER_LOSSES = 2;
const RETURNS_WINDOW_MS = 60_000;
const MAX_RETURNS = 10;

/** Whether nothing else may execute where this item does. */
export function runsAlone({ lost, isApart }: Pick<ItemContext, "lost" | "isApart">): boolean {
  return isApart || lost >= ALONE_AFTER_LOSSES;
}

/** When it was returned, this time included, within the minute before. A clock that jumped makes others old. */
const returnsOf = ({ returnedAtMs }: ItemContext, event: ItemEvent): readonly number[] =>
  event.type === "item.returned"
    ? [...returnedAtMs.filter((atMs) => Math.abs(event.atMs - atMs) < RETURNS_WINDOW_MS), event.atMs]
    : returnedAtMs;

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
    input: {} as ItemInput,
  },
  guards: {
    isCurrent: ({ context, event }) => isCurrent(context, event),
    /** An attempt that the item was under once. */
    isGivenUp: ({ context, event }) =>
      "attempt" in event && event.attempt >= 1 && event.attempt <= context.attempt,
    /** An attempt that comes after all that are on record. */
    isUnheardOf: ({ context, event }) => "attempt" in event && event.attempt > context.attempt,
    isSpent: ({ context, event }) => isCurrent(context, event) && context.charged + 1 >= context.maxAttempts,
    /** Nothing was beside it, whatever is said. */
    isSpentAlone: ({ context, event }) =>
      isCurrent(context, event) && runsAlone(context) && context.charged + 1 >= context.maxAttempts,
    isAlone: ({ context, event }) => isCurrent(context, event) && runsAlone(context),
    isOnTrial: ({ context, event }) => isCurrent(context, event) && context.trial !== "",
    isRestless: ({ context, event }) =>
      isCurrent(context, event) && returnsOf(context, event).length >= context.maxReturns,
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
            trial: event.trial ?? "",
          }
        : {},
    ),
    adoptUnder: assign(({ event }) => {
      if (event.type !== "item.adopted") return {};
      const { worker, incarnation, attempt, epoch, trial = "" } = event;
      return { worker, incarnation, attempt, epoch, trial };
    }),
    charge: assign({
      charged: ({ context }) => context.charged + 1,
      failedBy: ({ context }) => context.worker,
      blamed: ({ context: { failedBy, blamed, worker } }) =>
        failedBy === "" || blamed === worker ? worker : "",
    }),
    setApart: assign({ isApart: true }),
    noteTrial: assign({ tried: ({ context }) => context.trial }),
    noteReturn: assign({
      returnedAtMs: ({ context, event }) => returnsOf(context, event).slice(-context.maxReturns),
    }),
    countLoss: assign({
      lost: ({ context, event }) => context.lost + (event.type === "item.lost" && event.counted ? 1 : 0),
    }),
    /** An item that may take others down with it is still kept from them. */
    resetBudgets: assign({ charged: 0, lost: 0, failedBy: "", blamed: "" }),
    recordResult: () => {},
    recordFailure: () => {},
    queueAtOldPlace: () => {},
    queueAfterBackoff: () => {},
    queueAfterTrial: () => {},
  },
}).createMachine({
  id: "work-item",
  version: "2",
  context: ({ input }) => ({
    worker: "",
    incarnation: "",
    attempt: 0,
    epoch: 0,
    charged: 0,
    lost: 0,
    failedBy: "",
    blamed: "",
    isApart: false,
    returnedAtMs: [],
    trial: "",
    tried: "",
    maxAttempts: input.maxAttempts,
    maxLost: input.maxLost,
    maxReturns: input.maxReturns ?? MAX_RETURNS,
  }),
  initial: "Pending",
  states: {
    Pending: {
      on: {
        "item.assigned": { target: "Running", actions: "assignTo" },
        "item.adopted": { guard: "isUnheardOf", target: "Running", actions: "adoptUnder" },
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
        "item.crashedTogether": [
          { guard: "isSpentAlone", target: "Failed", actions: ["charge", "recordFailure"] },
          { guard: "isAlone", target: "Pending", actions: ["charge", "queueAfterBackoff"] },
          { guard: "isCurrent", target: "Pending", actions: ["setApart", "queueAtOldPlace"] },
        ],
        "item.erredOnTrial": {
          guard: "isOnTrial",
          target: "Pending",
          actions: ["noteTrial", "queueAfterTrial"],
        },
        "item.returned": [
          { guard: "isRestless", target: "Pending", actions: ["noteReturn", "queueAfterBackoff"] },
          { guard: "isCurrent", target: "Pending", actions: ["noteReturn", "queueAtOldPlace"] },
        ],
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
