import { fleet } from "../../machines/fleet.ts";
import { ignored, testChartTable } from "./chart-table.ts";

const fresh = { failuresInRow: 0, maxFailuresInRow: 2, fullsInRow: 0, untilMs: 0, reason: "", by: "" };
const failed = { ...fresh, failuresInRow: 1, untilMs: 5, reason: "no image" };

/** It starts nobody, whatever comes of earlier starts. */
const stopped = ignored(
  "start.failed",
  "provider.full",
  "start.joined",
  "time.passed, too early",
  "time.passed",
  "budget.spent",
);

describe("the chart of a fleet", () => {
  testChartTable({
    machine: fleet,
    input: { maxFailuresInRow: 2 },
    begins:
      'Active; failuresInRow = 0, maxFailuresInRow = 2, fullsInRow = 0, untilMs = 0, reason = "", by = ""',
    compiles: true,
    events: {
      "start.failed": { type: "start.failed", untilMs: 5, reason: "no image" },
      "provider.full": { type: "provider.full", untilMs: 6, reason: "quota" },
      "start.joined": { type: "start.joined" },
      "time.passed, too early": { type: "time.passed", atMs: 4 },
      "time.passed": { type: "time.passed", atMs: 5 },
      "budget.spent": { type: "budget.spent", reason: "max_cost" },
      "budget.left": { type: "budget.left" },
      "run.paused": { type: "run.paused" },
      "help.came": { type: "help.came" },
      "fleet.paused": { type: "fleet.paused", reason: "at night", by: "ada" },
      "fleet.resumed": { type: "fleet.resumed", by: "bob" },
    },
    rows: {
      Active: {
        context: fresh,
        cells: {
          "start.failed": "Cooling; failuresInRow = 1, untilMs = 5, reason = no image",
          "provider.full": "Cooling; fullsInRow = 1, untilMs = 6, reason = quota",
          "budget.spent": "Spent / announceSpent; reason = max_cost",
          "fleet.paused": "Paused; reason = at night, by = ada",
          ...ignored("start.joined", "time.passed, too early", "time.passed", "budget.left", "fleet.resumed"),
          ...ignored("run.paused", "help.came"),
        },
      },
      "Active, after a failure": {
        state: "Active",
        context: { ...failed, untilMs: 0 },
        cells: {
          "start.failed": "Halted / announceHalted; failuresInRow = 2, untilMs = 5",
          "provider.full": "Cooling; fullsInRow = 1, untilMs = 6, reason = quota",
          "start.joined": 'Active; failuresInRow = 0, reason = ""',
          "budget.spent": "Spent / announceSpent; reason = max_cost",
          "fleet.paused": "Paused; reason = at night, by = ada",
          ...ignored("time.passed, too early", "time.passed", "budget.left", "fleet.resumed"),
          ...ignored("run.paused", "help.came"),
        },
      },
      "Active, after there was no room": {
        state: "Active",
        context: { ...fresh, fullsInRow: 1 },
        cells: {
          "start.failed": "Cooling; failuresInRow = 1, untilMs = 5, reason = no image",
          "provider.full": "Cooling; fullsInRow = 2, untilMs = 6, reason = quota",
          "start.joined": "Active; fullsInRow = 0",
          "budget.spent": "Spent / announceSpent; reason = max_cost",
          "fleet.paused": "Paused; reason = at night, by = ada",
          ...ignored("time.passed, too early", "time.passed", "budget.left", "fleet.resumed"),
          ...ignored("run.paused", "help.came"),
        },
      },
      Cooling: {
        context: failed,
        cells: {
          "start.failed": "Halted / announceHalted; failuresInRow = 2",
          "provider.full": "Cooling; fullsInRow = 1, untilMs = 6, reason = quota",
          "start.joined": 'Active; failuresInRow = 0, untilMs = 0, reason = ""',
          "time.passed": "Active; untilMs = 0",
          "budget.spent": "Spent / announceSpent; reason = max_cost",
          "fleet.paused": "Paused; reason = at night, by = ada",
          ...ignored("time.passed, too early", "budget.left", "fleet.resumed"),
          ...ignored("run.paused", "help.came"),
        },
      },
      "Cooling, until there is room": {
        state: "Cooling",
        context: { ...fresh, fullsInRow: 1, untilMs: 5, reason: "quota" },
        cells: {
          "start.failed": "Cooling; failuresInRow = 1, reason = no image",
          "provider.full": "Cooling; fullsInRow = 2, untilMs = 6",
          "start.joined": 'Active; fullsInRow = 0, untilMs = 0, reason = ""',
          "time.passed": "Active; untilMs = 0",
          "budget.spent": "Spent / announceSpent; reason = max_cost",
          "fleet.paused": "Paused; reason = at night, by = ada",
          ...ignored("time.passed, too early", "budget.left", "fleet.resumed"),
          ...ignored("run.paused", "help.came"),
        },
      },
      Halted: {
        context: { ...failed, failuresInRow: 2 },
        cells: {
          "fleet.paused": "Paused; reason = at night, by = ada",
          "fleet.resumed": 'Active; failuresInRow = 0, untilMs = 0, reason = "", by = bob',
          ...stopped,
          ...ignored("budget.left", "run.paused", "help.came"),
        },
      },
      Paused: {
        context: { ...fresh, reason: "at night", by: "ada" },
        cells: {
          "fleet.resumed": 'Active; reason = "", by = bob',
          ...stopped,
          ...ignored("budget.left", "run.paused", "help.came", "fleet.paused"),
        },
      },
      Spent: {
        context: { ...fresh, reason: "max_cost" },
        cells: {
          "budget.left": 'Active; reason = ""',
          "run.paused": "Deferred",
          "fleet.paused": "Paused; reason = at night, by = ada",
          ...stopped,
          ...ignored("help.came", "fleet.resumed"),
        },
      },
      Deferred: {
        context: { ...fresh, reason: "max_cost" },
        cells: {
          "budget.left": 'Active; reason = ""',
          "help.came": "Spent",
          "fleet.paused": "Paused; reason = at night, by = ada",
          ...stopped,
          ...ignored("run.paused", "fleet.resumed"),
        },
      },
    },
  });
});
