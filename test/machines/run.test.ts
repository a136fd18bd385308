import { run } from "../../machines/run.ts";
import { ignored, testChartTable } from "../support/chart-table.ts";

const active = { pauseReason: null };
const paused = { pauseReason: "over budget" };

describe("the chart of a run", () => {
  testChartTable({
    machine: run,
    begins: "Open+Active; pauseReason = null",
    compiles: true,
    events: {
      "run.sealed": { type: "run.sealed" },
      "run.completed": { type: "run.completed" },
      "run.cancelled": { type: "run.cancelled" },
      "run.paused": { type: "run.paused", reason: "over budget" },
      "run.resumed": { type: "run.resumed" },
      "run.reopened": { type: "run.reopened" },
    },
    rows: {
      "Open+Active": {
        context: active,
        cells: {
          "run.sealed": "Sealed+Active",
          "run.cancelled": "Cancelled+Active / announceCancelled",
          "run.paused": "Open+Paused / announcePaused; pauseReason = over budget",
          ...ignored("run.completed", "run.resumed", "run.reopened"),
        },
      },
      "Open+Paused": {
        context: paused,
        cells: {
          "run.sealed": "Sealed+Paused",
          "run.cancelled": "Cancelled+Paused / announceCancelled",
          "run.resumed": "Open+Active / announceResumed; pauseReason = null",
          ...ignored("run.completed", "run.paused", "run.reopened"),
        },
      },
      "Sealed+Active": {
        context: active,
        cells: {
          "run.completed": "Complete+Active / announceCompleted",
          "run.cancelled": "Cancelled+Active / announceCancelled",
          "run.paused": "Sealed+Paused / announcePaused; pauseReason = over budget",
          ...ignored("run.sealed", "run.resumed", "run.reopened"),
        },
      },
      "Sealed+Paused": {
        context: paused,
        cells: {
          "run.completed": "Complete+Paused / announceCompleted",
          "run.cancelled": "Cancelled+Paused / announceCancelled",
          "run.resumed": "Sealed+Active / announceResumed; pauseReason = null",
          ...ignored("run.sealed", "run.paused", "run.reopened"),
        },
      },
      "Complete+Active": {
        context: active,
        cells: {
          "run.paused": "Complete+Paused / announcePaused; pauseReason = over budget",
          "run.reopened": "Sealed+Active",
          ...ignored("run.sealed", "run.completed", "run.cancelled", "run.resumed"),
        },
      },
      "Complete+Paused": {
        context: paused,
        cells: {
          "run.resumed": "Complete+Active / announceResumed; pauseReason = null",
          "run.reopened": "Sealed+Paused",
          ...ignored("run.sealed", "run.completed", "run.cancelled", "run.paused"),
        },
      },
      "Cancelled+Active": {
        context: active,
        cells: {
          "run.paused": "Cancelled+Paused / announcePaused; pauseReason = over budget",
          ...ignored("run.sealed", "run.completed", "run.cancelled", "run.resumed", "run.reopened"),
        },
      },
      "Cancelled+Paused": {
        context: paused,
        cells: {
          "run.resumed": "Cancelled+Active / announceResumed; pauseReason = null",
          ...ignored("run.sealed", "run.completed", "run.cancelled", "run.paused", "run.reopened"),
        },
      },
    },
  });
});
