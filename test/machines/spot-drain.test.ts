import { spotDrain } from "../../machines/spot-drain.ts";
import { ignored, testChartTable } from "../support/chart-table.ts";

const idle = { cause: null, deadlineMs: Number.MAX_SAFE_INTEGER, flushUntilMs: null };
const draining = { cause: "gcp", deadlineMs: 100_000, flushUntilMs: null };
const flushing = { ...draining, flushUntilMs: 95_000 };

const forget = "Idle; cause = null, deadlineMs = 9007199254740991";
const forgetFlush = `${forget}, flushUntilMs = null`;
const tightened = "cause = sigterm, deadlineMs = 94000";
const flushFrom = (atMs: number): string =>
  `Draining.Flushing / flushResults; flushUntilMs = ${atMs + 5_000}`;
const abandonAndFlush = "Draining.Flushing / abandonRunning, flushResults; flushUntilMs = 105000";
const emptied = ["slots.emptied", "slots.emptied, time to save", "slots.emptied, no time to save"] as const;

describe("the chart of a drain", () => {
  testChartTable({
    machine: spotDrain,
    begins: "Idle; cause = null, deadlineMs = 9007199254740991, flushUntilMs = null",
    compiles: true,
    events: {
      "drain.requested": { type: "drain.requested", cause: "gcp", deadlineMs: 100_000 },
      // Less than what was left then, and more than what is left now.
      "drain.requested, tighter": {
        type: "drain.requested",
        cause: "sigterm",
        deadlineMs: 94_000,
      },
      "drain.requested, looser": {
        type: "drain.requested",
        cause: "aws",
        deadlineMs: 101_000,
      },
      "backlog.handedBack": { type: "backlog.handedBack" },
      "slots.emptied": { type: "slots.emptied", atMs: 90_000, trainStateCostMs: null },
      "slots.emptied, time to save": { type: "slots.emptied", atMs: 90_000, trainStateCostMs: 5_000 },
      "slots.emptied, no time to save": { type: "slots.emptied", atMs: 90_001, trainStateCostMs: 5_000 },
      "trainState.settled": { type: "trainState.settled", atMs: 96_000 },
      "results.flushed": { type: "results.flushed" },
      "deadline.reached": { type: "deadline.reached", atMs: 100_000 },
      "flush.expired": { type: "flush.expired" },
      "worker.started": { type: "worker.started" },
    },
    rows: {
      Idle: {
        context: idle,
        cells: {
          "drain.requested": "Draining.HandingBack / handBackBacklog; cause = gcp, deadlineMs = 100000",
          "drain.requested, tighter":
            "Draining.HandingBack / handBackBacklog; cause = sigterm, deadlineMs = 94000",
          "drain.requested, looser":
            "Draining.HandingBack / handBackBacklog; cause = aws, deadlineMs = 101000",
          ...ignored("backlog.handedBack", ...emptied, "trainState.settled", "results.flushed"),
          ...ignored("deadline.reached", "flush.expired"),
          "worker.started": "Idle",
        },
      },
      "Draining.HandingBack": {
        context: draining,
        cells: {
          ...ignored("drain.requested", "drain.requested, looser"),
          "drain.requested, tighter": `Draining.HandingBack; ${tightened}`,
          "backlog.handedBack": "Draining.Finishing / awaitRunning",
          ...ignored(...emptied, "trainState.settled", "results.flushed"),
          "deadline.reached": abandonAndFlush,
          ...ignored("flush.expired"),
          "worker.started": forget,
        },
      },
      "Draining.Finishing": {
        context: draining,
        cells: {
          ...ignored("drain.requested", "drain.requested, looser"),
          "drain.requested, tighter": `Draining.Finishing; ${tightened}`,
          ...ignored("backlog.handedBack"),
          "slots.emptied": flushFrom(90_000),
          "slots.emptied, time to save": "Draining.Saving / saveTrainState",
          "slots.emptied, no time to save": flushFrom(90_001),
          ...ignored("trainState.settled", "results.flushed"),
          "deadline.reached": abandonAndFlush,
          ...ignored("flush.expired"),
          "worker.started": forget,
        },
      },
      "Draining.Saving": {
        context: draining,
        cells: {
          ...ignored("drain.requested", "drain.requested, looser"),
          "drain.requested, tighter": `Draining.Saving; ${tightened}`,
          ...ignored("backlog.handedBack", ...emptied),
          "trainState.settled": flushFrom(96_000),
          ...ignored("results.flushed"),
          "deadline.reached": abandonAndFlush,
          ...ignored("flush.expired"),
          "worker.started": forget,
        },
      },
      "Draining.Flushing": {
        context: flushing,
        cells: {
          ...ignored("drain.requested", "drain.requested, looser"),
          "drain.requested, tighter": `Draining.Flushing; ${tightened}`,
          ...ignored("backlog.handedBack", ...emptied, "trainState.settled"),
          "results.flushed": "Drained / sayGoodbye",
          // Taken, and on purpose without consequence.
          "deadline.reached": "Draining.Flushing",
          "flush.expired": "Drained / sayGoodbye",
          "worker.started": forgetFlush,
        },
      },
      Drained: {
        context: flushing,
        cells: {
          ...ignored("drain.requested", "drain.requested, tighter", "drain.requested, looser"),
          ...ignored("backlog.handedBack", ...emptied, "trainState.settled", "results.flushed"),
          ...ignored("deadline.reached", "flush.expired"),
          "worker.started": forgetFlush,
        },
      },
    },
  });
});
