import { run } from "../../machines/run.ts";
import { ignored, testChartTable } from "./chart-table.ts";

const active = { pauseReason: null };
const paused = { pauseReason: "over budget" };

describe("the chart of a run", () => {
  testChartTable({
    machine: run,
    begins: "Open.Active; pauseReason = null",
    compiles: true,
    events: {
      "run.sealed": { type: "run.sealed" },
      "run.completed": { type: "run.completed" },
      "run.cancelled": { type: "run.cancelled" },
      "run.paused": { type: "run.paused", reason: "over budget" },
      "run.resumed": { type: "run.resumed" },
      "run.reopened": { type: "run.reopened" },
      "run.extended": { type: "run.extended" },
    },
    rows: {
      "Open.Active": {
        context: active,
        cells: {
          "run.sealed": "Sealed.Active",
          "run.cancelled": "Cancelled / announceCancelled",
          "run.paused": "Open.Paused / announcePaused; pauseReason = over budget",
          ...ignored("run.completed", "run.resumed", "run.reopened", "run.extended"),
        },
      },
      "Open.Paused": {
        context: paused,
        cells: {
          "run.sealed": "Sealed.Paused",
          "run.cancelled": "Cancelled / announceCancelled; pauseReason = null",
          "run.resumed": "Open.Active / announceResumed; pauseReason = null",
          ...ignored("run.completed", "run.paused", "run.reopened", "run.extended"),
        },
      },
      "Sealed.Active": {
        context: active,
        cells: {
          "run.completed": "Complete / announceCompleted",
          "run.cancelled": "Cancelled / announceCancelled",
          "run.paused": "Sealed.Paused / announcePaused; pauseReason = over budget",
          "run.extended": "Open.Active",
          ...ignored("run.sealed", "run.resumed", "run.reopened"),
        },
      },
      "Sealed.Paused": {
        context: paused,
        cells: {
          "run.completed": "Complete / announceCompleted; pauseReason = null",
          "run.cancelled": "Cancelled / announceCancelled; pauseReason = null",
          "run.resumed": "Sealed.Active / announceResumed; pauseReason = null",
          "run.extended": "Open.Paused",
          ...ignored("run.sealed", "run.paused", "run.reopened"),
        },
      },
      Complete: {
        context: active,
        cells: {
          "run.reopened": "Sealed.Active / announceReopened",
          "run.extended": "Open.Active / announceReopened",
          ...ignored("run.sealed", "run.completed", "run.cancelled", "run.paused", "run.resumed"),
        },
      },
      Cancelled: {
        context: active,
        cells: ignored(
          "run.sealed",
          "run.completed",
          "run.cancelled",
          "run.paused",
          "run.resumed",
          "run.reopened",
          "run.extended",
        ),
      },
    },
  });
});
