import { release } from "../../machines/release.ts";
import { ignored, testChartTable } from "./chart-table.ts";

const first = {
  ...{ stage: 1, stages: 2, holdsOnBreach: false },
  ...{ heldBy: null, isUnlimited: false, reason: "", by: "ada" },
};
const last = { ...first, stage: 2 };
const held = { ...first, heldBy: "operator", reason: "lunch" };

const over = ignored(
  ...(["stage.promoted", "stage.forced", "verdict.breached", "verdict.inconclusive"] as const),
  ...(["release.paused", "release.resumed", "release.aborted", "run.over"] as const),
);

describe("the chart of a release", () => {
  testChartTable({
    machine: release,
    input: { stages: 2, holdsOnBreach: false, by: "ada" },
    begins:
      'Rolling; stage = 1, stages = 2, holdsOnBreach = false, heldBy = null, isUnlimited = false, reason = "", by = ada',
    compiles: true,
    events: {
      "stage.promoted": { type: "stage.promoted", reason: "proof", by: "" },
      "stage.forced": { type: "stage.forced", reason: "", by: "bob" },
      "verdict.breached": { type: "verdict.breached", reason: "worse", by: "" },
      "verdict.inconclusive": { type: "verdict.inconclusive", reason: "no verdict", by: "" },
      "release.paused": { type: "release.paused", reason: "lunch", by: "bob" },
      "release.resumed": { type: "release.resumed", reason: "", by: "bob" },
      "release.aborted": { type: "release.aborted", reason: "enough", by: "bob" },
      "run.over": { type: "run.over", reason: "the run is over", by: "" },
    },
    rows: {
      Rolling: {
        context: first,
        cells: {
          "stage.promoted": 'Rolling / announcePromoted; stage = 2, reason = proof, by = ""',
          "stage.forced": "Rolling / announcePromoted; stage = 2, by = bob",
          "verdict.breached": 'RolledBack / announceRolledBack; reason = worse, by = ""',
          "verdict.inconclusive": 'Held / announceHeld; heldBy = limit, reason = no verdict, by = ""',
          "release.paused": "Held / announceHeld; heldBy = operator, reason = lunch, by = bob",
          "release.aborted": "Aborted / announceAborted; reason = enough, by = bob",
          "run.over": 'Ended / announceEnded; reason = the run is over, by = ""',
          ...ignored("release.resumed"),
        },
      },
      "Rolling, in the last stage": {
        state: "Rolling",
        context: last,
        cells: {
          "stage.promoted": 'Completed / announceCompleted; reason = proof, by = ""',
          "stage.forced": "Completed / announceCompleted; by = bob",
          "verdict.breached": 'RolledBack / announceRolledBack; reason = worse, by = ""',
          "verdict.inconclusive": 'Held / announceHeld; heldBy = limit, reason = no verdict, by = ""',
          "release.paused": "Held / announceHeld; heldBy = operator, reason = lunch, by = bob",
          "release.aborted": "Aborted / announceAborted; reason = enough, by = bob",
          "run.over": 'Ended / announceEnded; reason = the run is over, by = ""',
          ...ignored("release.resumed"),
        },
      },
      "Rolling, a breach holds it": {
        state: "Rolling",
        context: { ...first, holdsOnBreach: true, isUnlimited: true },
        cells: {
          "stage.promoted":
            'Rolling / announcePromoted; stage = 2, isUnlimited = false, reason = proof, by = ""',
          "stage.forced": "Rolling / announcePromoted; stage = 2, isUnlimited = false, by = bob",
          "verdict.breached": 'Held / announceHeld; heldBy = breach, reason = worse, by = ""',
          "release.paused": "Held / announceHeld; heldBy = operator, reason = lunch, by = bob",
          "release.aborted": "Aborted / announceAborted; reason = enough, by = bob",
          "run.over": 'Ended / announceEnded; reason = the run is over, by = ""',
          ...ignored("verdict.inconclusive", "release.resumed"),
        },
      },
      Held: {
        context: held,
        cells: {
          "stage.forced": 'Rolling / announcePromoted; stage = 2, heldBy = null, reason = "", by = bob',
          "verdict.breached": 'RolledBack / announceRolledBack; heldBy = null, reason = worse, by = ""',
          "release.resumed": 'Rolling / announceResumed; heldBy = null, reason = "", by = bob',
          "release.aborted": "Aborted / announceAborted; heldBy = null, reason = enough, by = bob",
          "run.over": 'Ended / announceEnded; heldBy = null, reason = the run is over, by = ""',
          ...ignored("stage.promoted", "verdict.inconclusive", "release.paused"),
        },
      },
      "Held, in the last stage": {
        state: "Held",
        context: { ...held, stage: 2 },
        cells: {
          "stage.forced": 'Completed / announceCompleted; heldBy = null, reason = "", by = bob',
          "verdict.breached": 'RolledBack / announceRolledBack; heldBy = null, reason = worse, by = ""',
          "release.resumed": 'Rolling / announceResumed; heldBy = null, reason = "", by = bob',
          "release.aborted": "Aborted / announceAborted; heldBy = null, reason = enough, by = bob",
          "run.over": 'Ended / announceEnded; heldBy = null, reason = the run is over, by = ""',
          ...ignored("stage.promoted", "verdict.inconclusive", "release.paused"),
        },
      },
      "Held by a breach": {
        state: "Held",
        context: { ...held, holdsOnBreach: true, heldBy: "breach" },
        cells: {
          "stage.forced": 'Rolling / announcePromoted; stage = 2, heldBy = null, reason = "", by = bob',
          "release.resumed": 'Rolling / announceResumed; heldBy = null, reason = "", by = bob',
          "release.aborted": "Aborted / announceAborted; heldBy = null, reason = enough, by = bob",
          "run.over": 'Ended / announceEnded; heldBy = null, reason = the run is over, by = ""',
          ...ignored("stage.promoted", "verdict.breached", "verdict.inconclusive", "release.paused"),
        },
      },
      "Held, without a verdict": {
        state: "Held",
        context: { ...held, heldBy: "limit" },
        cells: {
          "stage.forced": 'Rolling / announcePromoted; stage = 2, heldBy = null, reason = "", by = bob',
          "verdict.breached": 'RolledBack / announceRolledBack; heldBy = null, reason = worse, by = ""',
          "release.resumed":
            'Rolling / announceResumed; heldBy = null, isUnlimited = true, reason = "", by = bob',
          "release.aborted": "Aborted / announceAborted; heldBy = null, reason = enough, by = bob",
          "run.over": 'Ended / announceEnded; heldBy = null, reason = the run is over, by = ""',
          ...ignored("stage.promoted", "verdict.inconclusive", "release.paused"),
        },
      },
      Completed: { context: last, cells: over },
      RolledBack: { context: first, cells: over },
      Aborted: { context: first, cells: over },
      Ended: { context: first, cells: over },
    },
  });
});
