import { spotDrain } from "../../machines/spot-drain.ts";
import { ignored, testChartTable } from "./chart-table.ts";

const NEVER = Number.MAX_SAFE_INTEGER;
const idle = {
  ...{ cause: null, sinceMs: 0, deadlineMs: NEVER, untilMs: NEVER },
  ...{ machineEndsMs: null, boot: "this boot", saveCostMs: null },
};
const draining = {
  ...{ cause: "gcp", sinceMs: 85_000, deadlineMs: 100_000, untilMs: 100_000 },
  ...{ machineEndsMs: 115_000, boot: "this boot", saveCostMs: null },
};
const measured = { ...draining, saveCostMs: 5_000 };
/** A first save: half of what was left at 90,000. */
const saving = { ...draining, untilMs: 95_000 };
/** The next process, and the same when it is over. */
const goingOn = { ...draining, sinceMs: 101_000, deadlineMs: 115_000, untilMs: 115_000 };
const over = { ...goingOn, deadlineMs: 100_000, untilMs: 100_000, machineEndsMs: 100_000 };
const flushing = { ...draining, untilMs: 99_000 };

const flushFrom = (atMs: number): string => `Draining.Flushing / flushResults; untilMs = ${atMs + 5_000}`;
const unsavedFrom = (atMs: number): string =>
  `Draining.Flushing / forgoTrainState, flushResults; untilMs = ${atMs + 5_000}`;
const abandonAndFlush = "Draining.Flushing / forgoTrainState, abandonRunning, flushResults; untilMs = 105000";
const begun = (cause: string, atMs: number, deadlineMs: number, ends: string): string =>
  `Draining.HandingBack / handBackBacklog; cause = ${cause}, sinceMs = ${atMs}, deadlineMs = ${deadlineMs}, untilMs = ${deadlineMs}${ends}`;
const goesOn = "Draining.GoingOn / handBackBacklog; sinceMs = 101000, deadlineMs = 115000, untilMs = 115000";
const forgotten = `Idle; cause = null, sinceMs = 0, deadlineMs = ${NEVER}, untilMs = ${NEVER}, machineEndsMs = null`;

const requests = ["drain.requested, looser", "drain.requested, without a notice"] as const;
const emptied = [
  "slots.emptied",
  "slots.emptied, with something to save",
  "slots.emptied, a millisecond later",
  "slots.emptied, too late",
] as const;
const settled = ["trainState.settled", "trainState.settled, unsaved"] as const;
const starts = {
  "worker.started, the machine taken away": forgotten,
  "worker.started, on another boot": `${forgotten}, boot = another boot`,
  "worker.started, nobody knows the boot": `${forgotten}, boot = ""`,
};

/** Cells of a drain that waits for what runs, but for a save that the budget may cover. */
const finishing = {
  "drain.requested": "Draining.Finishing",
  "drain.requested, tighter": `Draining.Finishing; cause = sigterm, deadlineMs = 94000, untilMs = 94000`,
  "drain.requested, looser": "Draining.Finishing; machineEndsMs = 206000",
  "drain.requested, without a notice": "Draining.Finishing",
  ...ignored("backlog.handedBack"),
  "slots.emptied": unsavedFrom(90_000),
  "slots.emptied, too late": unsavedFrom(100_000),
  ...ignored(...settled, "results.flushed", "time.isUp, early"),
  "time.isUp": abandonAndFlush,
  "worker.started": goesOn,
  ...starts,
};

describe("the chart of a drain", () => {
  testChartTable({
    machine: spotDrain,
    begins: `Idle; cause = null, sinceMs = 0, deadlineMs = ${NEVER}, untilMs = ${NEVER}, machineEndsMs = null, boot = "", saveCostMs = null`,
    compiles: true,
    events: {
      "drain.requested": {
        ...{ type: "drain.requested", cause: "gcp" },
        ...{ atMs: 85_000, deadlineMs: 100_000, machineEndsMs: 115_000 },
      },
      // Less than what was left then, and more than what is left now.
      "drain.requested, tighter": {
        ...{ type: "drain.requested", cause: "sigterm" },
        ...{ atMs: 86_000, deadlineMs: 94_000, machineEndsMs: null },
      },
      "drain.requested, looser": {
        ...{ type: "drain.requested", cause: "aws" },
        ...{ atMs: 86_000, deadlineMs: 101_000, machineEndsMs: 206_000 },
      },
      "drain.requested, without a notice": {
        ...{ type: "drain.requested", cause: "operator" },
        ...{ atMs: 86_000, deadlineMs: 101_000, machineEndsMs: null },
      },
      "backlog.handedBack": { type: "backlog.handedBack" },
      "slots.emptied": { type: "slots.emptied", atMs: 90_000, hasTrainState: false },
      "slots.emptied, with something to save": { type: "slots.emptied", atMs: 90_000, hasTrainState: true },
      "slots.emptied, a millisecond later": { type: "slots.emptied", atMs: 90_001, hasTrainState: true },
      "slots.emptied, too late": { type: "slots.emptied", atMs: 100_000, hasTrainState: true },
      "trainState.settled": { type: "trainState.settled", atMs: 93_000, tookMs: 3_000 },
      "trainState.settled, unsaved": { type: "trainState.settled", atMs: 93_000, tookMs: null },
      "results.flushed": { type: "results.flushed" },
      "time.isUp": { type: "time.isUp", atMs: 100_000 },
      // For a state before this one.
      "time.isUp, early": { type: "time.isUp", atMs: 94_999 },
      "worker.started": { type: "worker.started", atMs: 101_000, boot: "this boot" },
      "worker.started, the machine taken away": { type: "worker.started", atMs: 115_000, boot: "this boot" },
      "worker.started, on another boot": { type: "worker.started", atMs: 101_000, boot: "another boot" },
      "worker.started, nobody knows the boot": { type: "worker.started", atMs: 101_000, boot: "" },
    },
    rows: {
      Idle: {
        context: idle,
        cells: {
          "drain.requested": begun("gcp", 85_000, 100_000, ", machineEndsMs = 115000"),
          "drain.requested, tighter": begun("sigterm", 86_000, 94_000, ""),
          "drain.requested, looser": begun("aws", 86_000, 101_000, ", machineEndsMs = 206000"),
          "drain.requested, without a notice": begun("operator", 86_000, 101_000, ""),
          ...ignored("backlog.handedBack", ...emptied, ...settled, "results.flushed"),
          ...ignored("time.isUp", "time.isUp, early"),
          "worker.started": "Idle",
          "worker.started, the machine taken away": "Idle",
          "worker.started, on another boot": "Idle; boot = another boot",
          "worker.started, nobody knows the boot": 'Idle; boot = ""',
        },
      },
      "Draining.GoingOn": {
        context: goingOn,
        cells: {
          "drain.requested": "Draining.GoingOn",
          "drain.requested, tighter": flushFrom(86_000),
          "drain.requested, looser":
            "Draining.GoingOn; deadlineMs = 206000, untilMs = 206000, machineEndsMs = 206000",
          "drain.requested, without a notice": flushFrom(86_000),
          ...ignored("backlog.handedBack", ...emptied, ...settled, "results.flushed"),
          ...ignored("time.isUp", "time.isUp, early"),
          "worker.started": "Draining.GoingOn / handBackBacklog",
          ...starts,
        },
      },
      "Draining.GoingOn, the machine still there": {
        state: "Draining.GoingOn",
        context: over,
        cells: {
          "drain.requested":
            "Draining.GoingOn; deadlineMs = 115000, untilMs = 115000, machineEndsMs = 115000",
          "drain.requested, tighter": flushFrom(86_000),
          "drain.requested, looser":
            "Draining.GoingOn; deadlineMs = 206000, untilMs = 206000, machineEndsMs = 206000",
          "drain.requested, without a notice": flushFrom(86_000),
          ...ignored("backlog.handedBack", ...emptied, ...settled, "results.flushed", "time.isUp, early"),
          "time.isUp": abandonAndFlush,
          "worker.started": forgotten,
          ...starts,
        },
      },
      "Draining.HandingBack": {
        context: draining,
        cells: {
          "drain.requested": "Draining.HandingBack",
          "drain.requested, tighter": `Draining.HandingBack; cause = sigterm, deadlineMs = 94000, untilMs = 94000`,
          "drain.requested, looser": "Draining.HandingBack; machineEndsMs = 206000",
          "drain.requested, without a notice": "Draining.HandingBack",
          "backlog.handedBack": "Draining.Finishing / awaitRunning",
          ...ignored(...emptied, ...settled, "results.flushed", "time.isUp, early"),
          "time.isUp": abandonAndFlush,
          "worker.started": goesOn,
          ...starts,
        },
      },
      "Draining.Finishing": {
        context: draining,
        cells: {
          ...finishing,
          "slots.emptied, with something to save": "Draining.Saving / saveTrainState; untilMs = 95000",
          "slots.emptied, a millisecond later": "Draining.Saving / saveTrainState; untilMs = 95000.5",
        },
      },
      "Draining.Finishing, the cost of a save known": {
        state: "Draining.Finishing",
        context: measured,
        cells: {
          ...finishing,
          "slots.emptied, with something to save": "Draining.Saving / saveTrainState",
          "slots.emptied, a millisecond later": unsavedFrom(90_001),
        },
      },
      "Draining.Saving": {
        context: saving,
        cells: {
          "drain.requested": "Draining.Saving",
          "drain.requested, tighter": `Draining.Saving; cause = sigterm, deadlineMs = 94000, untilMs = 94000`,
          "drain.requested, looser": "Draining.Saving; machineEndsMs = 206000",
          "drain.requested, without a notice": "Draining.Saving",
          ...ignored("backlog.handedBack", ...emptied, "results.flushed", "time.isUp, early"),
          "trainState.settled": `${flushFrom(93_000)}, saveCostMs = 3000`,
          "trainState.settled, unsaved": flushFrom(93_000),
          "time.isUp": unsavedFrom(100_000),
          "worker.started": goesOn,
          ...starts,
        },
      },
      "Draining.Flushing": {
        context: flushing,
        cells: {
          "drain.requested": "Draining.Flushing",
          "drain.requested, tighter": "Draining.Flushing",
          "drain.requested, looser": "Draining.Flushing; machineEndsMs = 206000",
          "drain.requested, without a notice": "Draining.Flushing",
          ...ignored("backlog.handedBack", ...emptied, ...settled, "time.isUp, early"),
          "results.flushed": "Drained / sayGoodbye",
          "time.isUp": "Drained / sayGoodbye",
          "worker.started": goesOn,
          ...starts,
        },
      },
      Drained: {
        context: { ...flushing, saveCostMs: 3_000 },
        cells: {
          ...ignored("drain.requested", "drain.requested, tighter", ...requests),
          ...ignored("backlog.handedBack", ...emptied, ...settled, "results.flushed"),
          ...ignored("time.isUp", "time.isUp, early"),
          "worker.started": goesOn,
          ...starts,
        },
      },
    },
  });
});
