import { workerTrust } from "../../machines/worker-trust.ts";
import { ignored, testChartTable } from "./chart-table.ts";

const [older, current, newer] = ["01A", "01B", "01C"] as const;
const context = {
  ...{ incarnation: current, failuresInRow: 0, failingSinceMs: 0, maxFailuresInRow: 5 },
  triedAtMs: 0,
};
const failed = { type: "item.failed", incarnation: current, atMs: 900 } as const;

/** The doings of another process of the worker say nothing of this one. */
const everywhere = ignored(
  "item.succeeded, older",
  "item.failed, older",
  "worker.tried, older",
  "worker.started, same",
  "worker.started, older",
);

describe("the chart of the trust in a worker", () => {
  testChartTable({
    machine: workerTrust,
    input: { incarnation: current },
    begins:
      "Trusted; incarnation = 01B, failuresInRow = 0, failingSinceMs = 0, triedAtMs = 0, maxFailuresInRow = 5",
    compiles: true,
    events: {
      "item.succeeded": { type: "item.succeeded", incarnation: current },
      "item.succeeded, older": { type: "item.succeeded", incarnation: older },
      "item.failed": { ...failed, othersSucceededAtMs: 500 },
      "item.failed, others do not succeed": { ...failed, othersSucceededAtMs: 499 },
      "item.failed, older": { ...failed, incarnation: older, othersSucceededAtMs: 500 },
      "item.failedElsewhere": { type: "item.failedElsewhere" },
      "worker.tried": { type: "worker.tried", incarnation: current, atMs: 7_000 },
      "worker.tried, older": { type: "worker.tried", incarnation: older, atMs: 7_000 },
      "worker.started, newer": { type: "worker.started", incarnation: newer },
      "worker.started, same": { type: "worker.started", incarnation: current },
      "worker.started, older": { type: "worker.started", incarnation: older },
    },
    rows: {
      Trusted: {
        context,
        cells: {
          ...everywhere,
          ...ignored("item.succeeded", "item.failedElsewhere", "worker.tried"),
          "item.failed": "Trusted; failuresInRow = 1, failingSinceMs = 900",
          "item.failed, others do not succeed": "Trusted; failuresInRow = 1, failingSinceMs = 900",
          "worker.started, newer": "Trusted; incarnation = 01C",
        },
      },
      "Trusted, after one failure": {
        state: "Trusted",
        context: { ...context, failuresInRow: 1, failingSinceMs: 500 },
        cells: {
          ...everywhere,
          ...ignored("worker.tried"),
          "item.succeeded": "Trusted; failuresInRow = 0",
          "item.failed": "Trusted; failuresInRow = 2",
          "item.failed, others do not succeed": "Trusted; failuresInRow = 2",
          "item.failedElsewhere": "Trusted; failuresInRow = 0",
          "worker.started, newer": "Trusted; incarnation = 01C, failuresInRow = 0",
        },
      },
      // Others have succeeded, but not since this failure.
      "Trusted, where one failure is too many": {
        state: "Trusted",
        context: { ...context, maxFailuresInRow: 1 },
        cells: {
          ...everywhere,
          ...ignored("item.succeeded", "item.failedElsewhere", "worker.tried"),
          "item.failed": "Trusted; failuresInRow = 1, failingSinceMs = 900",
          "item.failed, others do not succeed": "Trusted; failuresInRow = 1, failingSinceMs = 900",
          "worker.started, newer": "Trusted; incarnation = 01C",
        },
      },
      "Trusted, after four failures": {
        state: "Trusted",
        context: { ...context, failuresInRow: 4, failingSinceMs: 500 },
        cells: {
          ...everywhere,
          ...ignored("worker.tried"),
          "item.succeeded": "Trusted; failuresInRow = 0",
          "item.failed": "Cordoned / announceCordoned; failuresInRow = 5, triedAtMs = 900",
          "item.failed, others do not succeed": "Trusted; failuresInRow = 5",
          "item.failedElsewhere": "Trusted; failuresInRow = 3",
          "worker.started, newer": "Trusted; incarnation = 01C, failuresInRow = 0",
        },
      },
      Cordoned: {
        context: { ...context, failuresInRow: 5, failingSinceMs: 500, triedAtMs: 900 },
        cells: {
          ...everywhere,
          "item.succeeded": "Trusted / announceTrusted; failuresInRow = 0, triedAtMs = 0",
          "worker.tried": "Cordoned; triedAtMs = 7000",
          "item.failed": "Cordoned; failuresInRow = 6",
          "item.failed, others do not succeed": "Cordoned; failuresInRow = 6",
          "item.failedElsewhere": "Trusted / announceTrusted; failuresInRow = 4, triedAtMs = 0",
          "worker.started, newer":
            "Trusted / announceTrusted; incarnation = 01C, failuresInRow = 0, triedAtMs = 0",
        },
      },
      "Cordoned, with more against it": {
        state: "Cordoned",
        context: { ...context, failuresInRow: 9, failingSinceMs: 500, triedAtMs: 6_000 },
        cells: {
          ...everywhere,
          "worker.tried": "Cordoned; triedAtMs = 7000",
          "item.succeeded": "Trusted / announceTrusted; failuresInRow = 0, triedAtMs = 0",
          "item.failed": "Cordoned; failuresInRow = 10",
          "item.failed, others do not succeed": "Cordoned; failuresInRow = 10",
          "item.failedElsewhere": "Cordoned; failuresInRow = 8",
          "worker.started, newer":
            "Trusted / announceTrusted; incarnation = 01C, failuresInRow = 0, triedAtMs = 0",
        },
      },
    },
  });
});
