// A release: a candidate version of the run's plugin goes through stages, each with more of the items than the one before, until it has
// all of them or is found to be worse. Whether it is, a verdict says, or a person; the chart says what may follow what.
import { assign, setup } from "xstate";

/** Why a release is held. */
export type HeldBy = "operator" | "breach" | "limit";

export interface ReleaseContext {
  /** Counts from 1. */
  readonly stage: number;
  readonly stages: number;
  /** A breach holds it for a person, in place of ending it. */
  readonly holdsOnBreach: boolean;
  readonly heldBy: HeldBy | null;
  /** A person has let it go on although the stage has no verdict after so many items. */
  readonly isUnlimited: boolean;
  /** Why it stands where it stands, in words for a person. */
  readonly reason: string;
  /** The one who has decided last; empty for the verdict. */
  readonly by: string;
}

export interface ReleaseInput {
  readonly stages: number;
  readonly holdsOnBreach: boolean;
  readonly by: string;
}

interface Decided {
  readonly reason: string;
  /** Empty: by the verdict. */
  readonly by: string;
}

export type ReleaseEvent =
  /** The verdict on the current stage. */
  | ({ readonly type: "stage.promoted" } & Decided)
  /** A person does not wait for the verdict. */
  | ({ readonly type: "stage.forced" } & Decided)
  | ({ readonly type: "verdict.breached" } & Decided)
  /** So many items, and still no verdict. */
  | ({ readonly type: "verdict.inconclusive" } & Decided)
  | ({ readonly type: "release.paused" } & Decided)
  | ({ readonly type: "release.resumed" } & Decided)
  | ({ readonly type: "release.aborted" } & Decided)
  /** Nothing is left that it could be tried on. */
  | ({ readonly type: "run.over" } & Decided);

const nextStage = {
  target: "Rolling",
  actions: ["noteDecision", "beginNextStage", "announcePromoted"],
} as const;
const allStages = { target: "Completed", actions: ["noteDecision", "announceCompleted"] } as const;
const rollback = { target: "RolledBack", actions: ["noteDecision", "announceRolledBack"] } as const;
const over = {
  "release.aborted": { target: "Aborted", actions: ["noteDecision", "announceAborted"] },
  "run.over": { target: "Ended", actions: ["noteDecision", "announceEnded"] },
} as const;

export const release = setup({
  types: { context: {} as ReleaseContext, events: {} as ReleaseEvent, input: {} as ReleaseInput },
  guards: {
    hasNext: ({ context }) => context.stage < context.stages,
    holdsOnBreach: ({ context }) => context.holdsOnBreach,
    rollsBack: ({ context }) => !context.holdsOnBreach,
    isLimited: ({ context }) => !context.isUnlimited,
    isHeldByLimit: ({ context }) => context.heldBy === "limit",
  },
  actions: {
    noteDecision: assign(({ event: { reason, by } }) => ({ reason, by, heldBy: null })),
    beginNextStage: assign({ stage: ({ context }) => context.stage + 1, isUnlimited: false }),
    holdForOperator: assign({ heldBy: "operator" }),
    holdForBreach: assign({ heldBy: "breach" }),
    holdForLimit: assign({ heldBy: "limit" }),
    liftLimit: assign({ isUnlimited: true }),
    announcePromoted: () => {},
    announceCompleted: () => {},
    announceHeld: () => {},
    announceResumed: () => {},
    announceRolledBack: () => {},
    announceAborted: () => {},
    announceEnded: () => {},
  },
}).createMachine({
  id: "release",
  version: "1",
  context: ({ input: { stages, holdsOnBreach, by } }) => ({
    ...{ stage: 1, stages, holdsOnBreach },
    ...{ heldBy: null, isUnlimited: false, reason: "", by },
  }),
  initial: "Rolling",
  states: {
    Rolling: {
      on: {
        ...over,
        "stage.promoted": [{ guard: "hasNext", ...nextStage }, allStages],
        "stage.forced": [{ guard: "hasNext", ...nextStage }, allStages],
        "verdict.breached": [
          {
            guard: "holdsOnBreach",
            target: "Held",
            actions: ["noteDecision", "holdForBreach", "announceHeld"],
          },
          rollback,
        ],
        "verdict.inconclusive": {
          guard: "isLimited",
          target: "Held",
          actions: ["noteDecision", "holdForLimit", "announceHeld"],
        },
        "release.paused": { target: "Held", actions: ["noteDecision", "holdForOperator", "announceHeld"] },
      },
    },
    Held: {
      on: {
        ...over,
        "stage.forced": [{ guard: "hasNext", ...nextStage }, allStages],
        // Attempts that execute may end while it is held, and count.
        "verdict.breached": { guard: "rollsBack", ...rollback },
        "release.resumed": [
          {
            guard: "isHeldByLimit",
            target: "Rolling",
            actions: ["noteDecision", "liftLimit", "announceResumed"],
          },
          { target: "Rolling", actions: ["noteDecision", "announceResumed"] },
        ],
      },
    },
    Completed: {},
    RolledBack: {},
    Aborted: {},
    Ended: {},
  },
});
