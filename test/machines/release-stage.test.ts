import { releaseStage } from "../../machines/release-stage.ts";
import { ignored, testChartTable } from "./chart-table.ts";

const waiting = { openedAtMs: null, endedAtMs: null, promotedBy: null };
const opened = { ...waiting, openedAtMs: 5 };
const ended = { ...opened, endedAtMs: 9 };

const over = ignored("stage.opened", "stage.promoted", "stage.forced", "stage.breached", "stage.abandoned");

describe("the chart of a release's stage", () => {
  testChartTable({
    machine: releaseStage,
    begins: "Waiting; openedAtMs = null, endedAtMs = null, promotedBy = null",
    compiles: true,
    events: {
      "stage.opened": { type: "stage.opened", atMs: 5 },
      "stage.promoted": { type: "stage.promoted", atMs: 9 },
      "stage.forced": { type: "stage.forced", atMs: 9 },
      "stage.breached": { type: "stage.breached", atMs: 9 },
      "stage.abandoned": { type: "stage.abandoned", atMs: 9 },
    },
    rows: {
      Waiting: {
        context: waiting,
        cells: {
          "stage.opened": "Active; openedAtMs = 5",
          "stage.abandoned": "Abandoned; endedAtMs = 9",
          ...ignored("stage.promoted", "stage.forced", "stage.breached"),
        },
      },
      Active: {
        context: opened,
        cells: {
          "stage.promoted": "Promoted; endedAtMs = 9, promotedBy = verdict",
          "stage.forced": "Promoted; endedAtMs = 9, promotedBy = operator",
          "stage.breached": "Breached; endedAtMs = 9",
          "stage.abandoned": "Abandoned; endedAtMs = 9",
          ...ignored("stage.opened"),
        },
      },
      Promoted: { context: { ...ended, promotedBy: "verdict" }, cells: over },
      Breached: { context: ended, cells: over },
      Abandoned: { context: ended, cells: over },
    },
  });
});
