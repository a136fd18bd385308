import { execution } from "../../machines/execution.ts";
import { ignored, testChartTable } from "./chart-table.ts";

const context = {};

/** However it was ended, nothing makes it wanted again. */
const over = ignored(
  "execution.waits",
  "execution.begins",
  "execution.withheld",
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
      "execution.withheld": { type: "execution.withheld" },
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
          "execution.withheld": "Withheld",
          "time.over": "Expired / end, announceExpired",
        },
      },
      Waiting: {
        context,
        cells: {
          ...endings,
          ...ignored("execution.waits", "time.over"),
          "execution.begins": "Executing / startClock",
          "execution.withheld": "Withheld",
        },
      },
      Withheld: {
        context,
        cells: { ...over, "worker.leaves": "Abandoned", "result.unwanted": "Unwanted" },
      },
      Expired: { context, cells: { ...over, "result.unwanted": "Unwanted / end" } },
      Fenced: { context, cells: { ...over, "result.unwanted": "Unwanted / end" } },
      Abandoned: { context, cells: over },
      Unwanted: { context, cells: over },
    },
  });
});
