import { workItem } from "../../machines/work-item.ts";
import { ignored, testChartTable } from "./chart-table.ts";

const current = { worker: "w1", incarnation: "i1", attempt: 2, epoch: 5 };
const older = { ...current, attempt: 1 };
const unassigned = { worker: "", incarnation: "", attempt: 0, epoch: 0 };
const maxima = { maxAttempts: 3, maxLost: 5, maxReturns: 10 };
const budgets = {
  charged: 0,
  lost: 0,
  failedBy: "",
  blamed: "",
  isApart: false,
  returnedAtMs: [] as number[],
  trial: "",
  tried: "",
  ...maxima,
};

/** Moments of a wall clock, in milliseconds before the one at which things are told. */
const NOW = 1_000_000;
const ago = (...before: number[]): number[] => before.map((ms) => NOW - ms);

/** Reports of attempts that are not the current one change nothing. */
const stale = ignored(
  "item.succeeded, older attempt",
  "item.succeeded, another worker",
  "item.succeeded, another incarnation",
  "item.succeeded, older epoch",
  "item.erred, older attempt",
  "item.tooLarge, older attempt",
  "item.returned, older attempt",
  "item.lost, older attempt",
  "item.crashedTogether, older attempt",
  "item.erredOnTrial, older attempt",
);

/** A late success is of use only while the item is nobody's. */
const late = ignored(
  "item.succeededLate",
  "item.succeededLate, last attempt",
  "item.succeededLate, never given out",
  "item.succeededLate, no attempt",
);

/** An attempt that is on record is not adopted, whoever says that he has it. */
const notAdopted = ignored("item.adopted, on record");

/** An attempt that is no trial does not fail as one. */
const noTrial = ignored("item.erredOnTrial");

const pending = {
  ...notAdopted,
  ...noTrial,
  ...ignored("item.crashedTogether"),
  "item.cancelled": "Failed / recordFailure",
  ...stale,
  ...ignored("item.succeededLate, never given out", "item.succeededLate, no attempt"),
  ...ignored("item.succeeded", "item.erred", "item.tooLarge", "item.returned", "item.lost"),
  ...ignored("item.lost, not counted", "item.retried"),
};

const running = {
  "item.succeeded": "Done / recordResult",
  "item.erred": "Pending / queueAfterBackoff; charged = 1, failedBy = w1, blamed = w1",
  "item.tooLarge": "Failed / recordFailure",
  "item.returned": "Pending / queueAtOldPlace; returnedAtMs = [1000000]",
  "item.crashedTogether": "Pending / queueAtOldPlace; isApart = true",
  "item.lost": "Pending / queueAtOldPlace; lost = 1",
  "item.lost, not counted": "Pending / queueAtOldPlace",
  "item.cancelled": "Failed / recordFailure",
  ...stale,
  ...ignored("item.assigned", "item.assigned, on trial"),
  ...ignored("item.adopted", "item.adopted, on trial", "item.retried"),
  ...notAdopted,
  ...noTrial,
  ...late,
};

const final = {
  ...notAdopted,
  ...noTrial,
  ...ignored("item.adopted", "item.adopted, on trial", "item.crashedTogether"),
  ...stale,
  ...ignored("item.assigned", "item.assigned, on trial", "item.succeeded", "item.erred", "item.tooLarge"),
  ...ignored("item.returned", "item.lost", "item.lost, not counted", "item.cancelled"),
  ...late,
};

describe("the chart of an item", () => {
  testChartTable({
    machine: workItem,
    input: { maxAttempts: 3, maxLost: 5 },
    begins:
      'Pending; worker = "", incarnation = "", attempt = 0, epoch = 0, charged = 0, lost = 0, failedBy = "", blamed = "", ' +
      'isApart = false, returnedAtMs = [], trial = "", tried = "", maxAttempts = 3, maxLost = 5, maxReturns = 10',
    compiles: true,
    events: {
      "item.assigned": { type: "item.assigned", worker: "w2", incarnation: "i2", epoch: 6 },
      "item.assigned, on trial": {
        type: "item.assigned",
        ...{ worker: "w2", incarnation: "i2", epoch: 6, trial: "r2" },
      },
      "item.adopted": { type: "item.adopted", worker: "w2", incarnation: "i2", attempt: 7, epoch: 4 },
      "item.adopted, on trial": {
        type: "item.adopted",
        ...{ worker: "w2", incarnation: "i2", attempt: 7, epoch: 4, trial: "r2" },
      },
      "item.adopted, on record": { type: "item.adopted", ...current, attempt: 0 },
      "item.succeeded": { type: "item.succeeded", ...current },
      "item.succeeded, older attempt": { type: "item.succeeded", ...older },
      "item.succeeded, another worker": { type: "item.succeeded", ...current, worker: "w2" },
      "item.succeeded, another incarnation": { type: "item.succeeded", ...current, incarnation: "i2" },
      "item.succeeded, older epoch": { type: "item.succeeded", ...current, epoch: 4 },
      "item.succeededLate": { type: "item.succeededLate", ...older },
      "item.succeededLate, last attempt": { type: "item.succeededLate", ...current },
      "item.succeededLate, never given out": { type: "item.succeededLate", ...current, attempt: 3 },
      "item.succeededLate, no attempt": { type: "item.succeededLate", ...current, attempt: 0 },
      "item.erred": { type: "item.erred", ...current },
      "item.erred, older attempt": { type: "item.erred", ...older },
      "item.tooLarge": { type: "item.tooLarge", ...current },
      "item.tooLarge, older attempt": { type: "item.tooLarge", ...older },
      "item.crashedTogether": { type: "item.crashedTogether", ...current },
      "item.crashedTogether, older attempt": { type: "item.crashedTogether", ...older },
      "item.erredOnTrial": { type: "item.erredOnTrial", ...current },
      "item.erredOnTrial, older attempt": { type: "item.erredOnTrial", ...older },
      "item.returned": { type: "item.returned", ...current, atMs: NOW },
      "item.returned, older attempt": { type: "item.returned", ...older, atMs: NOW },
      "item.lost": { type: "item.lost", ...current, counted: true },
      "item.lost, not counted": { type: "item.lost", ...current, counted: false },
      "item.lost, older attempt": { type: "item.lost", ...older, counted: true },
      "item.cancelled": { type: "item.cancelled" },
      "item.retried": { type: "item.retried" },
    },
    rows: {
      Pending: {
        context: { ...unassigned, ...budgets },
        cells: {
          ...pending,
          ...ignored("item.succeededLate", "item.succeededLate, last attempt"),
          "item.assigned": "Running; worker = w2, incarnation = i2, attempt = 1, epoch = 6",
          "item.assigned, on trial":
            "Running; worker = w2, incarnation = i2, attempt = 1, epoch = 6, trial = r2",
          "item.adopted": "Running; worker = w2, incarnation = i2, attempt = 7, epoch = 4",
          "item.adopted, on trial":
            "Running; worker = w2, incarnation = i2, attempt = 7, epoch = 4, trial = r2",
        },
      },
      // The attempt that was given up still stands in the context; its reports come too late.
      "Pending again": {
        state: "Pending",
        context: { ...current, ...budgets },
        cells: {
          ...pending,
          "item.succeededLate": "Done / recordResult",
          "item.succeededLate, last attempt": "Done / recordResult",
          "item.assigned": "Running; worker = w2, incarnation = i2, attempt = 3, epoch = 6",
          "item.assigned, on trial":
            "Running; worker = w2, incarnation = i2, attempt = 3, epoch = 6, trial = r2",
          "item.adopted": "Running; worker = w2, incarnation = i2, attempt = 7, epoch = 4",
          "item.adopted, on trial":
            "Running; worker = w2, incarnation = i2, attempt = 7, epoch = 4, trial = r2",
        },
      },
      // It goes to the other version next, or to another release's candidate.
      "Pending after a trial": {
        state: "Pending",
        context: { ...current, ...budgets, trial: "r1", tried: "r1" },
        cells: {
          ...pending,
          "item.succeededLate": "Done / recordResult",
          "item.succeededLate, last attempt": "Done / recordResult",
          "item.assigned": 'Running; worker = w2, incarnation = i2, attempt = 3, epoch = 6, trial = ""',
          "item.assigned, on trial":
            "Running; worker = w2, incarnation = i2, attempt = 3, epoch = 6, trial = r2",
          "item.adopted": 'Running; worker = w2, incarnation = i2, attempt = 7, epoch = 4, trial = ""',
          "item.adopted, on trial":
            "Running; worker = w2, incarnation = i2, attempt = 7, epoch = 4, trial = r2",
        },
      },
      Running: { context: { ...current, ...budgets }, cells: running },
      "Running for the last time": {
        state: "Running",
        context: { ...current, ...budgets, charged: 2 },
        cells: {
          ...running,
          "item.erred": "Failed / recordFailure; charged = 3, failedBy = w1, blamed = w1",
        },
      },
      // Blame is of one worker, and of nobody when a second one has failed it too.
      "Running, after another worker has failed it": {
        state: "Running",
        context: { ...current, ...budgets, charged: 1, failedBy: "w2", blamed: "w2" },
        cells: {
          ...running,
          "item.erred": 'Pending / queueAfterBackoff; charged = 2, failedBy = w1, blamed = ""',
        },
      },
      "Running, after this worker has failed it": {
        state: "Running",
        context: { ...current, ...budgets, charged: 1, failedBy: "w1", blamed: "w1" },
        cells: { ...running, "item.erred": "Pending / queueAfterBackoff; charged = 2" },
      },
      "Running, after two losses": {
        state: "Running",
        context: { ...current, ...budgets, lost: 2 },
        cells: {
          ...running,
          "item.lost": "Pending / queueAtOldPlace; lost = 3",
          // It was alone, so it has done it by itself.
          "item.crashedTogether": "Pending / queueAfterBackoff; charged = 1, failedBy = w1, blamed = w1",
        },
      },
      "Running, one loss from poison": {
        state: "Running",
        context: { ...current, ...budgets, lost: 4 },
        cells: {
          ...running,
          "item.lost": "Failed / recordFailure; lost = 5",
          "item.crashedTogether": "Pending / queueAfterBackoff; charged = 1, failedBy = w1, blamed = w1",
        },
      },
      "Running apart for the last time": {
        state: "Running",
        context: { ...current, ...budgets, charged: 2, isApart: true },
        cells: {
          ...running,
          "item.erred": "Failed / recordFailure; charged = 3, failedBy = w1, blamed = w1",
          "item.crashedTogether": "Failed / recordFailure; charged = 3, failedBy = w1, blamed = w1",
        },
      },
      "Running, given back nine times within a minute": {
        state: "Running",
        context: {
          ...current,
          ...budgets,
          returnedAtMs: ago(59_999, 800, 700, 600, 500, 400, 300, 200, 100),
        },
        cells: {
          ...running,
          "item.returned": `Pending / queueAfterBackoff; returnedAtMs = ${JSON.stringify(
            ago(59_999, 800, 700, 600, 500, 400, 300, 200, 100, 0),
          )}`,
        },
      },
      "Running, given back nine times within more than a minute": {
        state: "Running",
        context: {
          ...current,
          ...budgets,
          returnedAtMs: ago(60_000, 800, 700, 600, 500, 400, 300, 200, 100),
        },
        cells: {
          ...running,
          "item.returned": `Pending / queueAtOldPlace; returnedAtMs = ${JSON.stringify(
            ago(800, 700, 600, 500, 400, 300, 200, 100, 0),
          )}`,
        },
      },
      // Nothing is charged, whatever it is near to.
      "Running on trial for the last time": {
        state: "Running",
        context: { ...current, ...budgets, trial: "r1", charged: 2, lost: 4, isApart: true },
        cells: {
          ...running,
          "item.erred": "Failed / recordFailure; charged = 3, failedBy = w1, blamed = w1",
          "item.lost": "Failed / recordFailure; lost = 5",
          "item.crashedTogether": "Failed / recordFailure; charged = 3, failedBy = w1, blamed = w1",
          "item.erredOnTrial": "Pending / queueAfterTrial; tried = r1",
        },
      },
      Done: { context: { ...current, ...budgets }, cells: { ...final, ...ignored("item.retried") } },
      Failed: {
        context: { ...current, ...budgets, charged: 3, lost: 2, failedBy: "w1", blamed: "w1", isApart: true },
        cells: {
          ...final,
          "item.retried": 'Pending / queueAtOldPlace; charged = 0, lost = 0, failedBy = "", blamed = ""',
        },
      },
    },
  });
});
