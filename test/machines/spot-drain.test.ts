import { spotDrain } from "../../machines/spot-drain.ts";
import { ignored, testChartTable } from "../support/chart-table.ts";

const idle = { cause: null, deadlineMs: Number.MAX_SAFE_INTEGER };
const draining = { cause: "gcp", deadlineMs: 100_000 };

const armDeadline = (delayMs: number): string =>
  `armTimer(name = deadline, delayMs = ${delayMs}, event = deadline.reached)`;
const flush = "armTimer(name = flush, delayMs = 5000, event = flush.expired), flushResults";
const cancelTimers = "cancelTimer(name = deadline), cancelTimer(name = flush)";
const forget = `Idle / ${cancelTimers}; cause = null, deadlineMs = 9007199254740991`;
const tightened = `/ ${armDeadline(9_000)}; cause = sigterm, deadlineMs = 94000`;
const emptied = ["slots.emptied", "slots.emptied, time to save", "slots.emptied, no time to save"] as const;

describe("the chart of a drain", () => {
  testChartTable({
    machine: spotDrain,
    begins: "Idle; cause = null, deadlineMs = 9007199254740991",
    // The deadline's delay comes from the event.
    compiles: false,
    events: {
      "drain.requested": { type: "drain.requested", cause: "gcp", deadlineMs: 100_000, budgetMs: 15_000 },
      // Less than what was left then, and more than what is left now.
      "drain.requested, tighter": {
        type: "drain.requested",
        cause: "sigterm",
        deadlineMs: 94_000,
        budgetMs: 9_000,
      },
      "drain.requested, looser": {
        type: "drain.requested",
        cause: "aws",
        deadlineMs: 101_000,
        budgetMs: 1_000,
      },
      "backlog.handedBack": { type: "backlog.handedBack" },
      "slots.emptied": { type: "slots.emptied", leftMs: 10_000, trainStateCostMs: null },
      "slots.emptied, time to save": { type: "slots.emptied", leftMs: 10_000, trainStateCostMs: 5_000 },
      "slots.emptied, no time to save": { type: "slots.emptied", leftMs: 9_999, trainStateCostMs: 5_000 },
      "trainState.settled": { type: "trainState.settled" },
      "results.flushed": { type: "results.flushed" },
      "deadline.reached": { type: "deadline.reached" },
      "flush.expired": { type: "flush.expired" },
      "worker.started": { type: "worker.started" },
    },
    rows: {
      Idle: {
        context: idle,
        cells: {
          "drain.requested": `Draining.HandingBack / ${armDeadline(15_000)}, handBackBacklog; cause = gcp, deadlineMs = 100000`,
          "drain.requested, tighter": `Draining.HandingBack / ${armDeadline(9_000)}, handBackBacklog; cause = sigterm, deadlineMs = 94000`,
          "drain.requested, looser": `Draining.HandingBack / ${armDeadline(1_000)}, handBackBacklog; cause = aws, deadlineMs = 101000`,
          ...ignored("backlog.handedBack", ...emptied, "trainState.settled", "results.flushed"),
          ...ignored("deadline.reached", "flush.expired"),
          "worker.started": `Idle / ${cancelTimers}`,
        },
      },
      "Draining.HandingBack": {
        context: draining,
        cells: {
          ...ignored("drain.requested", "drain.requested, looser"),
          "drain.requested, tighter": `Draining.HandingBack ${tightened}`,
          "backlog.handedBack": "Draining.Finishing / awaitRunning",
          ...ignored(...emptied, "trainState.settled", "results.flushed"),
          "deadline.reached": `Draining.Flushing / abandonRunning, ${flush}`,
          ...ignored("flush.expired"),
          "worker.started": forget,
        },
      },
      "Draining.Finishing": {
        context: draining,
        cells: {
          ...ignored("drain.requested", "drain.requested, looser"),
          "drain.requested, tighter": `Draining.Finishing ${tightened}`,
          ...ignored("backlog.handedBack"),
          "slots.emptied": `Draining.Flushing / ${flush}`,
          "slots.emptied, time to save": "Draining.Saving / saveTrainState",
          "slots.emptied, no time to save": `Draining.Flushing / ${flush}`,
          ...ignored("trainState.settled", "results.flushed"),
          "deadline.reached": `Draining.Flushing / abandonRunning, ${flush}`,
          ...ignored("flush.expired"),
          "worker.started": forget,
        },
      },
      "Draining.Saving": {
        context: draining,
        cells: {
          ...ignored("drain.requested", "drain.requested, looser"),
          "drain.requested, tighter": `Draining.Saving ${tightened}`,
          ...ignored("backlog.handedBack", ...emptied),
          "trainState.settled": `Draining.Flushing / ${flush}`,
          ...ignored("results.flushed"),
          "deadline.reached": `Draining.Flushing / abandonRunning, ${flush}`,
          ...ignored("flush.expired"),
          "worker.started": forget,
        },
      },
      "Draining.Flushing": {
        context: draining,
        cells: {
          ...ignored("drain.requested", "drain.requested, looser"),
          "drain.requested, tighter": `Draining.Flushing ${tightened}`,
          ...ignored("backlog.handedBack", ...emptied, "trainState.settled"),
          "results.flushed": `Drained / ${cancelTimers}, sayGoodbye`,
          // Taken, and on purpose without consequence.
          "deadline.reached": "Draining.Flushing",
          "flush.expired": `Drained / ${cancelTimers}, sayGoodbye`,
          "worker.started": forget,
        },
      },
      Drained: {
        context: draining,
        cells: {
          ...ignored("drain.requested", "drain.requested, tighter", "drain.requested, looser"),
          ...ignored("backlog.handedBack", ...emptied, "trainState.settled", "results.flushed"),
          ...ignored("deadline.reached", "flush.expired"),
          "worker.started": forget,
        },
      },
    },
  });
});
