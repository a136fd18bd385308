import { execution } from "../../machines/execution.ts";
import { ignored, testChartTable } from "../support/chart-table.ts";

const context = {};

/** However it was ended, nothing makes it wanted again. */
const over = ignored(
  "execution.waits",
  "execution.begins",
  "time.over",
  "worker.fenced",
  "worker.leaves",
  "result.unwanted",
);
const endings = {
  "worker.fenced": "Fenced / endAtOnce",
  "worker.leaves": "Abandoned / end",
  "result.unwanted": "Unwanted / end",
};

describe("the chart of an execution", () => {
  testChartTable({
    machine: execution,
    begins: "Executing",
    compiles: true,
    events: {
      "execution.waits": { type: "execution.waits" },
      "execution.begins": { type: "execution.begins" },
      "time.over": { type: "time.over" },
      "worker.fenced": { type: "worker.fenced" },
      "worker.leaves": { type: "worker.leaves" },
      "result.unwanted": { type: "result.unwanted" },
    },
    rows: {
      Executing: {
        context,
        cells: {
          ...endings,
          "execution.waits": "Waiting / stopClock",
          "execution.begins": "Executing / startClock",
          "time.over": "Expired / end, announceExpired",
        },
      },
      Waiting: {
        context,
        cells: {
          ...endings,
          ...ignored("execution.waits", "time.over"),
          "execution.begins": "Executing / startClock",
        },
      },
      Expired: { context, cells: { ...over, "result.unwanted": "Unwanted / end" } },
      Fenced: { context, cells: { ...over, "result.unwanted": "Unwanted / end" } },
      Abandoned: { context, cells: over },
      Unwanted: { context, cells: over },
    },
  });
});
