import { coordinatorRole } from "../../machines/coordinator-role.ts";
import { ignored, testChartTable } from "../support/chart-table.ts";

describe("the chart of a coordinator's role", () => {
  testChartTable({
    machine: coordinatorRole,
    begins: "Candidate; epoch = null",
    // The words of the abort come from the event.
    compiles: false,
    events: {
      "lease.won": { type: "lease.won", epoch: 8 },
      "lease.lost": { type: "lease.lost", reason: "stolen", seenEpoch: 9 },
      "lease.resigned": { type: "lease.resigned" },
    },
    rows: {
      Candidate: {
        context: { epoch: null },
        cells: {
          "lease.won": "Leader / startLeading; epoch = 8",
          ...ignored("lease.lost", "lease.resigned"),
        },
      },
      "Candidate again": {
        state: "Candidate",
        context: { epoch: 7 },
        cells: {
          "lease.won": "Leader / startLeading; epoch = 8",
          ...ignored("lease.lost", "lease.resigned"),
        },
      },
      Leader: {
        context: { epoch: 7 },
        cells: {
          ...ignored("lease.won"),
          "lease.lost": "Fenced / abortFenced(reason = stolen, seenEpoch = 9)",
          "lease.resigned": "Candidate / stopLeading",
        },
      },
      Fenced: { context: { epoch: 7 }, cells: ignored("lease.won", "lease.lost", "lease.resigned") },
    },
  });
});
