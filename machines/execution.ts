// An attempt on the worker that executes it, from its start to whatever ends it: for whom it is still executed, and so what its
// end means. Kept in memory: what a worker had when it died is for its coordinator to find out.
import { setup } from "xstate";

export type ExecutionEvent =
  /** It waits for what is to execute it: a model that loads. */
  | { readonly type: "execution.waits" }
  /** Its backend has begun to execute it. */
  | { readonly type: "execution.begins" }
  /** It has taken longer than it may. */
  | { readonly type: "time.over" }
  /** It was about to begin, and must not: another worker may have it by now. */
  | { readonly type: "execution.withheld" }
  /** Another worker may be given it soon. */
  | { readonly type: "worker.fenced" }
  /** The worker goes. */
  | { readonly type: "worker.leaves" }
  /** The coordinator does not want its result any more. */
  | { readonly type: "result.unwanted" };

/** Each state of an execution takes these. */
const ENDINGS = {
  "worker.fenced": { target: "Fenced", actions: "endAtOnce" },
  "worker.leaves": { target: "Abandoned", actions: "end" },
  "result.unwanted": { target: "Unwanted", actions: "end" },
} as const;

export const execution = setup({
  types: { events: {} as ExecutionEvent },
  actions: {
    /** Its time counts from now on. */
    startClock: () => {},
    stopClock: () => {},
    end: () => {},
    /** Without a grace. */
    endAtOnce: () => {},
    announceExpired: () => {},
  },
}).createMachine({
  id: "execution",
  version: "2",
  context: {},
  initial: "Executing",
  states: {
    Executing: {
      on: {
        ...ENDINGS,
        "execution.waits": { target: "Waiting", actions: "stopClock" },
        "execution.begins": { target: "Executing", actions: "startClock" },
        "execution.withheld": "Withheld",
        "time.over": { target: "Expired", actions: ["end", "announceExpired"] },
      },
    },
    Waiting: {
      on: {
        ...ENDINGS,
        "execution.begins": { target: "Executing", actions: "startClock" },
        "execution.withheld": "Withheld",
      },
    },
    // Nothing of it has begun, so there is nothing to end.
    Withheld: { on: { "worker.leaves": "Abandoned", "result.unwanted": "Unwanted" } },
    // Over time stays over time, whatever becomes of the worker.
    Expired: { on: { "result.unwanted": { target: "Unwanted", actions: "end" } } },
    Fenced: { on: { "result.unwanted": { target: "Unwanted", actions: "end" } } },
    // Somebody is going to get it as it is now.
    Abandoned: {},
    Unwanted: {},
  },
});
