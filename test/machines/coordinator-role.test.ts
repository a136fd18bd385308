import { expect } from "chai";
import { coordinatorRole } from "../../machines/coordinator-role.ts";
import { TransitionPlanner } from "../../src/runtime/transition.ts";
import { ignored, testChartTable } from "./chart-table.ts";

describe("the chart of a coordinator's role", () => {
  const ending = { kind: "killed", epoch: 5 };

  const electable = { weight: 1, isItsTurn: true, hasQuorum: true };
  const started = { "coordinator.started": "Candidate.Following.Willing; epoch = null" };
  const rolledBack = { "store.rolledBack": "Halted / haltRolledBack(reason = older, missing = 3)" };
  const openings = [
    "lease.quiet",
    "lease.free",
    "lease.quiet, not electable",
    "lease.free, not electable",
  ] as const;

  const following = {
    ...started,
    "lease.quiet": "Candidate.Claiming",
    "lease.free": "Candidate.Claiming",
    ...ignored("lease.quiet, not electable", "lease.free, not electable"),
    ...ignored("lease.held", "claim.beaten", "lease.won", "lease.lost", "lease.resigned", "lease.yielded"),
    ...rolledBack,
  };

  testChartTable({
    machine: coordinatorRole,
    begins: "Candidate.Following.Willing; epoch = null, ending = null",
    // The words of the abort come from the event.
    compiles: false,
    events: {
      "coordinator.started": { type: "coordinator.started" },
      "lease.quiet": { type: "lease.quiet", ...electable },
      "lease.free": { type: "lease.free", ...electable },
      "lease.quiet, not electable": { type: "lease.quiet", ...electable, hasQuorum: false },
      "lease.free, not electable": { type: "lease.free", ...electable, weight: 0 },
      "lease.held": { type: "lease.held" },
      "claim.beaten": { type: "claim.beaten" },
      "lease.won": { type: "lease.won", epoch: 8 },
      "lease.lost": { type: "lease.lost", reason: "stolen", seenEpoch: 9, by: "01X" },
      "lease.resigned": { type: "lease.resigned" },
      "lease.yielded": { type: "lease.yielded" },
      "store.rolledBack": { type: "store.rolledBack", reason: "older", missing: 3 },
    },
    rows: {
      "Candidate.Following.Willing": {
        context: { epoch: null, ending: null },
        cells: { ...following, "coordinator.started": "Candidate.Following.Willing" },
      },
      "Candidate.Following.Willing again": {
        state: "Candidate.Following.Willing",
        context: { epoch: 7, ending },
        cells: following,
      },
      "Candidate.Following.Yielding": {
        context: { epoch: 7, ending },
        cells: { ...following, "lease.held": "Candidate.Following.Willing" },
      },
      "Candidate.Claiming": {
        context: { epoch: 7, ending },
        cells: {
          ...started,
          ...ignored(...openings, "lease.held"),
          "claim.beaten": "Candidate.Following.Willing",
          "lease.won": "Leader / startLeading; epoch = 8",
          ...ignored("lease.lost", "lease.resigned", "lease.yielded"),
          ...rolledBack,
        },
      },
      Leader: {
        context: { epoch: 7, ending },
        cells: {
          "coordinator.started":
            'Candidate.Following.Willing; epoch = null, ending = {"kind":"killed","epoch":7}',
          ...ignored(...openings, "lease.held", "claim.beaten", "lease.won"),
          "lease.lost":
            "Fenced / abortFenced(reason = stolen, seenEpoch = 9); " +
            'ending = {"kind":"fenced","epoch":7,"seenEpoch":9,"by":"01X"}',
          "lease.resigned":
            'Candidate.Following.Willing / resignLease; ending = {"kind":"resigned","epoch":7}',
          "lease.yielded":
            'Candidate.Following.Yielding / resignLease; ending = {"kind":"resigned","epoch":7}',
          "store.rolledBack":
            'Halted / haltRolledBack(reason = older, missing = 3); ending = {"kind":"halted","epoch":7}',
        },
      },
      Fenced: {
        context: { epoch: 7, ending },
        cells: {
          ...started,
          ...ignored(...openings, "lease.held", "claim.beaten", "lease.won", "lease.lost"),
          ...ignored("lease.resigned", "lease.yielded", "store.rolledBack"),
        },
      },
      Halted: {
        context: { epoch: 7, ending },
        cells: {
          ...started,
          ...ignored(...openings, "lease.held", "claim.beaten", "lease.won", "lease.lost"),
          ...ignored("lease.resigned", "lease.yielded", "store.rolledBack"),
        },
      },
    },
  });

  for (const [lacking, candidacy] of Object.entries({
    weight: { ...electable, weight: 0 },
    "its turn": { ...electable, isItsTurn: false },
    "a quorum": { ...electable, hasQuorum: false },
  }))
    it(`claims nothing without ${lacking}`, () => {
      const planner = new TransitionPlanner(coordinatorRole);
      const from = { value: { Candidate: { Following: "Willing" } }, context: { epoch: null, ending: null } };
      for (const type of ["lease.quiet", "lease.free"] as const)
        expect(planner.plan(from, { type, ...candidacy }).kind).to.equal("ignored");
    });
});
