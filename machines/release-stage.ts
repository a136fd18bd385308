// A stage of a release: it waits for its turn, is open for a while, and ends for good in one of three ways. A promoted one never changes.
import { assign, setup } from "xstate";

export interface StageContext {
  /** Wall time; null while it waits. */
  readonly openedAtMs: number | null;
  /** Wall time; null before its end. */
  readonly endedAtMs: number | null;
  /** Null unless it is promoted. */
  readonly promotedBy: "verdict" | "operator" | null;
}

export type StageEvent =
  | { readonly type: "stage.opened"; readonly atMs: number }
  | { readonly type: "stage.promoted"; readonly atMs: number }
  /** By a person, without a verdict. */
  | { readonly type: "stage.forced"; readonly atMs: number }
  | { readonly type: "stage.breached"; readonly atMs: number }
  /** The release is over, and this stage has not decided that. */
  | { readonly type: "stage.abandoned"; readonly atMs: number };

export const releaseStage = setup({
  types: { context: {} as StageContext, events: {} as StageEvent },
  actions: {
    noteOpening: assign({ openedAtMs: ({ event }) => event.atMs }),
    noteEnd: assign({ endedAtMs: ({ event }) => event.atMs }),
    promotedByVerdict: assign({ promotedBy: "verdict" }),
    promotedByOperator: assign({ promotedBy: "operator" }),
  },
}).createMachine({
  id: "release-stage",
  version: "1",
  context: { openedAtMs: null, endedAtMs: null, promotedBy: null },
  initial: "Waiting",
  states: {
    Waiting: {
      on: {
        "stage.opened": { target: "Active", actions: "noteOpening" },
        "stage.abandoned": { target: "Abandoned", actions: "noteEnd" },
      },
    },
    Active: {
      on: {
        "stage.promoted": { target: "Promoted", actions: ["noteEnd", "promotedByVerdict"] },
        "stage.forced": { target: "Promoted", actions: ["noteEnd", "promotedByOperator"] },
        "stage.breached": { target: "Breached", actions: "noteEnd" },
        "stage.abandoned": { target: "Abandoned", actions: "noteEnd" },
      },
    },
    Promoted: {},
    Breached: {},
    Abandoned: {},
  },
});
